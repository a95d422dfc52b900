#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::Transactions;
use crate::base::Seq;
use crate::budget::ChunkPool;
use crate::options::settings::MemtableSizes;
use crate::state::memtables::MemtableSet;
use std::sync::Arc;

/// A sealed set over a stretch of positions.
fn set(start: Seq, end: Seq) -> Arc<MemtableSet> {
    let sizes = MemtableSizes { set_bytes: 16 << 10, table_bytes: 16 << 10 };
    let set = MemtableSet::new(start, sizes, &Arc::new(ChunkPool::new(1 << 20)));
    set.bytewise().table_for(start).insert(0, b"k", start, crate::base::Kind::Put, b"v");
    set.seal(end);
    Arc::new(set)
}

fn kept(transactions: &Transactions) -> Vec<Seq> {
    transactions.history().0.iter().map(|set| set.start).collect()
}

#[test]
fn flushed_sets_are_kept_while_somebody_began_before_their_end() {
    let transactions = Transactions::new(u64::MAX, Arc::default());
    transactions.flushed(&set(10, 20));
    assert_eq!((kept(&transactions), transactions.history().2), (vec![], 20));
    let first = transactions.register(|| 25);
    let second = transactions.register(|| 25);
    transactions.flushed(&set(20, 30));
    let third = transactions.register(|| 35);
    transactions.flushed(&set(30, 40));
    assert_eq!((kept(&transactions), transactions.history().2), (vec![20, 30], 20));
    assert!(transactions.kept_bytes() > 0);
    transactions.release(first);
    assert_eq!(kept(&transactions), [20, 30]);
    transactions.release(second);
    assert_eq!((kept(&transactions), transactions.history().2), (vec![30], 30));
    transactions.release(third);
    assert_eq!((kept(&transactions), transactions.history().2), (vec![], 40));
    assert_eq!(transactions.kept_bytes(), 0);
    // A transaction that begins where a set ends does not need it.
    transactions.register(|| 50);
    transactions.flushed(&set(40, 50));
    assert_eq!(kept(&transactions), [0_u64; 0]);
}

#[test]
fn what_is_kept_is_bounded_and_the_floor_says_what_is_gone() {
    // Sets differ by the height of a node.
    let one = set(0, 1).bytes();
    let transactions = Transactions::new(2 * one + one / 2, Arc::default());
    transactions.register(|| 10);
    for start in [10, 20, 30, 40] {
        transactions.flushed(&set(start, start + 10));
    }
    assert_eq!((kept(&transactions), transactions.history().2), (vec![30, 40], 30));
    assert!(transactions.kept_bytes() <= 2 * one + one / 2);
    // A set that is too large alone is not kept at all.
    let small = Transactions::new(one / 2, Arc::default());
    small.register(|| 10);
    small.flushed(&set(10, 20));
    assert_eq!((kept(&small), small.history().2), (vec![], 20));
}
