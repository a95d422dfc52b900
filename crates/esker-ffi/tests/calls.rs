//! Random sequences of calls of the C interface, wrong ones among them. `ESKER_C_CALLS` says how
//! many sequences, `ESKER_SEED` replays one. The fuzz target `c_calls` runs the same from bytes
//! that a fuzzer finds.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

#[path = "support/calls.rs"]
mod calls;

/// Bytes from a seed.
fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(next).collect()
}

/// Tells the seed of a sequence that failed.
struct Tell(u64);

impl Drop for Tell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with ESKER_SEED={}", self.0);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn any_sequence_of_calls_gives_right_answers_or_typed_errors() {
    let sequences = number("ESKER_C_CALLS").unwrap_or(20);
    let seeds = number("ESKER_SEED").map_or(1..sequences + 1, |seed| seed..seed + 1);
    for seed in seeds {
        let tell = Tell(seed);
        let directory = tempfile::tempdir().unwrap();
        // It begins with a database and keyspaces, so that there is something to call.
        let mut input = vec![0, 0, 0, 1, 0, 1, 1, 0, 3];
        input.extend(random(seed, 2000));
        calls::run(&input, directory.path());
        drop(tell);
    }
}
