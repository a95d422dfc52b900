//! What the cache gets, for all that others may take.

use super::*;
use crate::options::Options;

const MIB: u64 = 1 << 20;

fn taken(memory: u64, sealed: bool, parts: [u64; 3]) -> Taken {
    let [kept, buffers, described] = parts.map(|part| memory / 100 * part);
    Taken { sealed, kept, log: memory / 100, buffers, described, unshared: 0 }
}

fn settings(memory: u64) -> Settings {
    let mut options = Options::default();
    (options.memory, options.workers) = (Some(memory), Some(2));
    Settings::new(&options).unwrap()
}

fn left(memory: u64, taken: Taken) -> u64 {
    left_for_cache(&settings(memory), taken)
}

#[test]
fn what_keeps_to_its_share_leaves_the_sum_within_the_budget() {
    for memory in [16 * MIB, 64 * MIB, 1024 * MIB, 65_536 * MIB] {
        for sealed in [false, true] {
            for percent in 0..27 {
                let parts = [percent % 3 * 2, percent / 3 % 3 * 4, percent / 9 * 20];
                let taken = taken(memory, sealed, parts);
                let cache = left(memory, taken);
                let memtables = if sealed { memory / 8 } else { memory / 16 };
                let kept = taken.kept + taken.log;
                let others = memtables + kept + taken.buffers + taken.described;
                assert!(cache + others <= memory, "{memory} {taken:?}: {cache}");
                assert!(cache >= memory / 16);
            }
        }
    }
}

#[test]
fn what_has_no_share_takes_from_the_cache() {
    let memory = 1024 * MIB;
    for (unshared, log, described) in
        [(40, 1, 0), (30, 1, 10), (0, 1, 40), (0, 19, 0), (5, 12, 5), (0, 900, 0)]
    {
        let (unshared, log) = (memory / 100 * unshared, memory / 100 * log);
        let busy = Taken { unshared, log, ..taken(memory, true, [0, 0, described]) };
        let left = left(memory, busy);
        // What exceeds a sixteenth is taken from five eighths; of the log at most an eighth counts.
        let log = log.min(memory / 8);
        let expected = memory / 8 * 5 - (unshared + log + busy.described - memory / 16);
        assert_eq!(left, expected, "{busy:?}");
    }
    let all = Taken { unshared: memory, ..Taken::default() };
    assert_eq!(left(memory, all), memory / 16);
}

#[test]
fn a_quiet_database_reads_with_more_than_a_busy_one() {
    let memory = 512 * MIB;
    let quiet = left(memory, Taken::default());
    assert!(quiet >= memory / 100 * 78, "{quiet}");
    assert_eq!(left(memory, taken(memory, true, [6, 12, 3])), memory / 8 * 5);
    // What ends soon takes nothing of its share.
    assert_eq!(left(memory, taken(memory, true, [40, 40, 0])), memory / 8 * 5);
    // Descriptions have no bound: the cache gives way to them, down to its least.
    let described = left(memory, taken(memory, false, [0, 0, 40]));
    assert!(described < memory / 100 * 42 && described > memory / 100 * 28, "{described}");
    assert_eq!(left(memory, taken(memory, false, [0, 0, 90])), memory / 16);
}

#[test]
fn of_a_large_budget_little_is_left_out_for_buffers_and_descriptions() {
    let (memory, sets) = (8 * 1024 * MIB, 512 * MIB);
    assert_eq!(left(memory, Taken::default()), memory - sets - 3 * 32 * MIB - 64 * MIB);
    // What they have above that is taken from the cache.
    let (buffers, described) = (100 * MIB, 70 * MIB);
    let busy = Taken { buffers, described, ..Taken::default() };
    assert_eq!(left(memory, busy), memory - sets - buffers - described);
}

#[test]
fn the_cache_gives_way_at_once_and_grows_when_nobody_writes() {
    let memory = 1024 * MIB;
    let settings = settings(memory);
    let decide = |taken, calm| decide(&settings, taken, calm);
    assert_eq!(settings.cache_capacity(), memory / 8 * 5);
    assert_eq!(decide(Taken::default(), false), None);
    let grown = decide(Taken::default(), true).unwrap();
    assert_eq!((grown, settings.cache_capacity()), (left(memory, Taken::default()), grown));
    assert_eq!(decide(Taken::default(), true), None);
    // A little is not worth it.
    let little = Taken { described: memory / 32 + memory / 200, ..Taken::default() };
    assert_eq!(decide(little, true), None);
    let busy = Taken { sealed: true, ..Taken::default() };
    let shrunk = decide(busy, false).unwrap();
    assert_eq!(shrunk, memory / 8 * 5);
    assert_eq!(decide(Taken::default(), false), None);
    assert_eq!(decide(Taken::default(), true), Some(grown));
}
