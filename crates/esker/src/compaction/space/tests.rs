use super::*;
use crate::compaction::partitioning::tests::{partition, segment};

fn moment(flushes: u64, changes: u64) -> Moment {
    let (ingested, trees, oldest, values_died) = (0, 1, None, 7);
    let (still, quiet) = (false, false);
    Moment { flushes, ingested, changes, trees, oldest, values_died, still, quiet }
}

fn ledger(parts: u64, found: u64) -> Ledger {
    let latest = SpaceUse { held: 1, ..SpaceUse::default() };
    Ledger { latest, seen: Some(moment(5, 5)), parts, found, more: found > 0 }
}

#[test]
fn a_look_follows_a_change_that_may_have_made_a_difference() {
    assert!(
        Ledger::default().is_due(moment(0, 0)),
        "of what was there at the open nothing is known"
    );
    let quiet = ledger(10, 0);
    assert!(!quiet.is_due(moment(5, 5)));
    assert!(!quiet.is_due(moment(5, 6)), "a compaction makes nothing dead");
    assert!(quiet.is_due(moment(6, 5)));
    assert!(quiet.is_due(Moment { oldest: Some(1), ..moment(5, 5) }), "a snapshot came or went");
    assert!(quiet.is_due(Moment { trees: 2, ..moment(5, 5) }), "a branch came or went");
    assert!(quiet.is_due(Moment { ingested: 1, ..moment(5, 5) }));
    assert!(quiet.is_due(Moment { quiet: true, ..moment(5, 5) }));
    assert!(ledger(10, 1).is_due(moment(5, 6)), "there may be more");
    let large = ledger(4 * PARTS_PER_CHANGE, 0);
    assert!(!large.is_due(moment(7, 6)) && large.is_due(moment(7, 7)));
    assert!(large.is_due(Moment { quiet: true, ..moment(6, 5) }));
}

#[test]
fn the_end_of_a_reader_matters_where_something_was_held() {
    let oldest = |oldest| Moment { oldest, ..moment(5, 5) };
    let of = |held, seen| {
        let latest = SpaceUse { held, ..SpaceUse::default() };
        Ledger { latest, seen: Some(oldest(seen)), ..ledger(10, 0) }
    };
    let ends = |held, seen| {
        let ledger = of(held, seen);
        (ledger.waits_for_readers(), ledger.is_due(oldest(None)))
    };
    assert_eq!(ends(1, Some(3)), (true, true));
    assert_eq!(ends(0, Some(3)), (false, false));
    assert_eq!(ends(1, None), (false, false), "a branch holds it");
}

/// Otherwise a worker begins something when somebody has waited until nothing was left.
#[test]
fn what_a_quiet_look_left_is_not_looked_at_again() {
    let quiet = Moment { quiet: true, ..moment(5, 5) };
    let ledger = Ledger { seen: Some(quiet), ..ledger(10, 0) };
    assert!(!ledger.is_due(quiet) && !ledger.is_due(moment(5, 5)) && !ledger.is_due(moment(5, 6)));
    assert!(ledger.is_due(moment(6, 5)));
    let released = Moment { values_died: 8, ..quiet };
    assert!(ledger.is_due(released), "a reader has left what kept values");
    let writing = Moment { quiet: false, ..released };
    assert!(!ledger.is_due(writing), "looks beside writes follow flushes");
    assert!(ledger.is_due(Moment { still: true, ..writing }), "nobody would look soon");
    let most = Ledger { found: LOOKS + 20, ..ledger };
    assert!(!most.is_due(released));
}

#[test]
fn looks_that_find_something_without_end_are_ended_until_the_next_flush() {
    let most = LOOKS + 20;
    assert!(ledger(10, most - 1).is_due(moment(5, 6)));
    assert!(!ledger(10, most).is_due(moment(5, 6)));
    assert!(!ledger(10, most).is_due(Moment { quiet: true, ..moment(5, 6) }));
    assert!(ledger(10, most).is_due(moment(6, 6)));
    let ingested = Moment { ingested: 1, ..moment(5, 6) };
    assert!(ledger(10, most).is_due(ingested));
}

#[test]
fn range_tombstones_cover_segments_wholly_or_at_an_end() {
    use crate::base::rangedel::RangeTombstone;
    let range = |start: &str, end: &str, seq| {
        let (start, end) = (Some(start.into()), Some(end.into()));
        Fragments::build(&Bytewise, vec![RangeTombstone { start, end, seq }])
    };
    let found = |list: &Fragments| covered(&Bytewise, list, &segment("d", "f"));
    assert_eq!(found(&range("c", "g", 3)), 1.0);
    assert_eq!(found(&range("c", "e", 3)), 0.5);
    assert_eq!(found(&range("e", "z", 3)), 0.5);
    assert_eq!(found(&range("a", "c", 3)), 0.0);
    assert_eq!(found(&range("c", "g", 2)), 0.0, "the segment is not older");
    let part = partition(Some("d"), Some("m"), &[]);
    assert!(touches(&Bytewise, &range("a", "e", 3), &part));
    assert!(!touches(&Bytewise, &range("a", "d", 3), &part));
    assert!(!touches(&Bytewise, &range("m", "n", 3), &part));
}
