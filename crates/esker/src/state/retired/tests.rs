//! What old states hold.

use super::*;
use crate::manifest::Version;
use crate::state::memtables::MemtableSet;
use crate::state::tests::set;

/// The governor asks after each flush and compaction: that must not take longer in a larger tree.
#[test]
fn the_memory_of_old_states_is_counted_without_looking_at_trees() {
    let sets: Vec<_> = (1..5).map(|number| set(number * 8)).collect();
    let state = |sets: &[Arc<MemtableSet>]| State::shared(sets.to_vec(), Version::default());
    let retired = Retired::default();
    retired.push(state(&sets[2..]));
    retired.push(state(&sets[1..3]));
    let present = state(&sets[..2]);
    assert_eq!(retired.held_memory(&present), sets[2].bytes() + sets[3].bytes());
    assert_eq!(retired.held_memory(&present), retired.held(&present).memory);
    let mut seen = Seen::default();
    seen.memory(&present);
    assert_eq!(seen.0.len(), 2, "only the sets are looked at");
}
