//! The work of `tests/clients/bench.c` through Esker's own interface: puts, gets, and seeks with
//! ten steps. It prints nanoseconds per operation. `cargo xtask leveldb-bench` runs both in turns.
//!
//! `cargo bench -p esker-leveldb --bench puts_gets_seeks -- DIR ENTRIES GETS SEEKS`

use std::path::Path;
use std::time::Instant;

const STEPS: usize = 10;

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The key of a number, scattered over all keys.
fn name(number: u64) -> [u8; 16] {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::array::from_fn(|i| b"0123456789abcdef"[(scattered >> (60 - 4 * i) & 15) as usize])
}

fn report(what: &str, start: Instant, count: u64) {
    if count > 0 {
        println!("{what} {:.1}", start.elapsed().as_nanos() as f64 / count as f64);
    }
}

fn run(dir: &Path, entries: u64, gets: u64, seeks: u64) -> esker::Result<usize> {
    let db = esker::Db::open(dir)?;
    let map = db.default_keyspace();
    let mut dice = 88_172_645_463_325_252;
    let mut seen = 0;

    let start = Instant::now();
    for i in 0..entries {
        let value = [(next(&mut dice) & 127) as u8; 100];
        map.insert(name(i), value)?;
    }
    report("put", start, entries);

    map.compact()?;

    let start = Instant::now();
    for _ in 0..gets {
        let value = map.get(name(next(&mut dice) % entries))?;
        seen += value.map_or(0, |value| value.len());
    }
    report("get", start, gets);

    let start = Instant::now();
    for _ in 0..seeks {
        let mut at = map.cursor()?;
        at.seek(name(next(&mut dice) % entries))?;
        for _ in 0..STEPS {
            if !at.valid() {
                break;
            }
            seen += at.key().len() + at.value().len();
            at.next()?;
        }
    }
    report("seek+10", start, seeks);
    db.close()?;
    Ok(seen)
}

fn main() {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let arguments: Vec<String> = arguments.collect();
    let numbers: Vec<u64> = arguments.iter().skip(1).filter_map(|text| text.parse().ok()).collect();
    let (Some(dir), &[entries, gets, seeks]) = (arguments.first(), &numbers[..]) else {
        eprintln!("usage: puts_gets_seeks DIR ENTRIES GETS SEEKS");
        std::process::exit(2);
    };
    match run(Path::new(dir), entries, gets, seeks) {
        Ok(seen) if seen > 0 || gets == 0 => {}
        Ok(_) => std::process::exit(1),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
