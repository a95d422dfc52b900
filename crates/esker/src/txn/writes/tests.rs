#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::{OPERATION_BYTES, OwnOrder, OwnValue, OwnWrites, Undo};
use crate::base::{Comparator, CustomOrder};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// What a transaction says about each key, in the simplest form: by rank in the order.
type Plain = BTreeMap<u8, Option<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Remove(Option<u8>, Option<u8>),
    Save,
    Back(u8),
}

const KEYS: u8 = 16;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0..KEYS;
    let bound = || proptest::option::weighted(0.9, 0..KEYS);
    let step = prop_oneof![
        4 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        2 => key().prop_map(Step::Delete),
        2 => (bound(), bound()).prop_map(|(start, end)| Step::Remove(start, end)),
        1 => Just(Step::Save),
        1 => any::<u8>().prop_map(Step::Back),
    ];
    proptest::collection::vec(step, 1..60)
}

fn run(order: OwnOrder, backwards: bool, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut own = OwnWrites::new(order);
    let mut plain = Plain::new();
    let mut undo: Vec<Undo> = Vec::new();
    let mut saves = vec![(0, plain.clone())];
    // The rank of a key is its byte, or the reverse of it.
    let byte = |rank: u8| [if backwards { KEYS - 1 - rank } else { rank }];
    for step in steps {
        match step {
            Step::Put(rank, value) => {
                undo.push(own.put(&byte(rank), OwnValue::Put([value][..].into())));
                plain.insert(rank, Some(value));
            }
            Step::Delete(rank) => {
                undo.push(own.put(&byte(rank), OwnValue::Deleted));
                plain.insert(rank, None);
            }
            Step::Remove(start, end) => {
                let (low, high) = (start.map(byte), end.map(byte));
                undo.push(
                    own.remove_range(low.as_ref().map(|b| &b[..]), high.as_ref().map(|b| &b[..])),
                );
                let inside = start.unwrap_or(0)..end.unwrap_or(KEYS);
                plain.extend(inside.map(|rank| (rank, None)));
            }
            Step::Save => saves.push((undo.len(), plain.clone())),
            Step::Back(which) => {
                saves.truncate(which as usize % saves.len() + 1);
                let (len, then) = saves.last().unwrap();
                while undo.len() > *len {
                    own.undo(undo.pop().unwrap());
                }
                plain = then.clone();
            }
        }
        compare(&own, &plain, byte)?;
    }
    Ok(())
}

fn compare(
    own: &OwnWrites,
    plain: &Plain,
    byte: impl Fn(u8) -> [u8; 1],
) -> Result<(), TestCaseError> {
    for rank in 0..KEYS {
        let want = plain.get(&rank).map(|value| match value {
            Some(value) => OwnValue::Put([*value][..].into()),
            None => OwnValue::Deleted,
        });
        prop_assert_eq!(own.get(&byte(rank)), want, "rank {}", rank);
    }
    // The writes are as large as `bytes` says, and stretches are disjoint and in order.
    let keys: u64 = own
        .keys()
        .map(|(key, value)| key.len() as u64 + value.value().map_or(0, <[u8]>::len) as u64)
        .sum();
    let ends = own.removed().iter().map(|(a, b)| (a.is_some() as u64) + (b.is_some() as u64));
    let count = (own.keys().count() + own.removed().len()) as u64;
    prop_assert_eq!(own.bytes(), keys + ends.sum::<u64>() + count * OPERATION_BYTES);
    for pair in own.removed().windows(2) {
        let (end, start) = (pair[0].1.as_ref().unwrap(), pair[1].0.as_ref().unwrap());
        prop_assert!(own.order().compare(end, start).is_lt());
    }
    // From either end, the written keys come in order.
    let in_order: Vec<_> = own.keys().map(|(key, _)| key.to_vec()).collect();
    let (mut forward, mut low) = (Vec::new(), Bound::Unbounded);
    while let Some((key, _)) = own.find(low, Bound::Unbounded, true) {
        forward.push(key.to_vec());
        low = Bound::Excluded(key);
    }
    let (mut backward, mut high) = (Vec::new(), Bound::Unbounded);
    while let Some((key, _)) = own.find(Bound::Unbounded, high, false) {
        backward.push(key.to_vec());
        high = Bound::Excluded(key);
    }
    backward.reverse();
    prop_assert_eq!(&forward, &in_order);
    prop_assert_eq!(&backward, &in_order);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_was_written_last_counts_and_every_step_can_be_taken_back(steps in steps()) {
        run(OwnOrder::Bytewise, false, steps.clone())?;
        let order = CustomOrder::new(Arc::new(Backwards));
        run(OwnOrder::Custom(order), true, steps)?;
    }
}

#[test]
fn bounds_that_hold_nothing_find_nothing() {
    let mut own = OwnWrites::new(OwnOrder::Bytewise);
    own.put(b"b", OwnValue::Deleted);
    let find = |low, high| own.find(low, high, true).or(own.find(low, high, false)).is_some();
    assert!(find(Bound::Included(b"b"), Bound::Included(b"b")));
    assert!(!find(Bound::Included(b"b"), Bound::Excluded(b"b")));
    assert!(!find(Bound::Excluded(b"b"), Bound::Included(b"b")));
    assert!(!find(Bound::Included(b"c"), Bound::Included(b"a")));
    assert!(!find(Bound::Excluded(b"b"), Bound::Excluded(b"b")));
}

struct Liar(std::sync::atomic::AtomicU32);

impl Comparator for Liar {
    fn name(&self) -> &str {
        "liar"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let call = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(call % 97 != 96, "a comparator that panics now and then");
        if call.is_multiple_of(3) { a.cmp(b) } else { b.cmp(a) }
    }
}

/// A comparator that is no total order, or panics, gives wrong answers and does no other harm.
#[test]
fn an_order_without_laws_does_no_harm() {
    let order = OwnOrder::Custom(CustomOrder::new(Arc::new(Liar(0.into()))));
    let mut own = OwnWrites::new(order.clone());
    let mut undo = Vec::new();
    for step in 0..2_000_u32 {
        let key = [(step * 7 % 64) as u8];
        match step % 5 {
            0 => undo.push(own.remove_range(Some(&key), Some(&[key[0] ^ 5]))),
            4 => drop(undo.pop().map(|last| own.undo(last))),
            _ => undo.push(own.put(&key, OwnValue::Deleted)),
        }
        own.get(&key);
        own.find(Bound::Included(&key), Bound::Excluded(&[9]), step % 2 == 0);
    }
    assert!(order.custom().unwrap().panicked());
}

#[test]
fn operands_gather_over_what_was_written_before_and_can_be_taken_back() {
    let operands = |value: Option<OwnValue>| match value {
        Some(OwnValue::Merged(base, operands)) => {
            (base.map(|base| *base), operands.iter().map(|o| o.to_vec()).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    let put = |text: &str| OwnValue::Put(text.as_bytes().into());
    let mut own = OwnWrites::new(OwnOrder::Bytewise);
    own.put(b"put", put("base"));
    own.remove_range(Some(b"r"), Some(b"s"));
    let before = own.bytes();
    let mut undo = Vec::new();
    for key in [&b"put"[..], b"r1", b"x"] {
        undo.push(own.merge(key, b"1"));
        undo.push(own.merge(key, b"22"));
    }
    let both = vec![b"1".to_vec(), b"22".to_vec()];
    assert_eq!(operands(own.get(b"put")), (Some(put("base")), both.clone()));
    assert_eq!(operands(own.get(b"r1")), (Some(OwnValue::Deleted), both.clone()));
    assert_eq!(operands(own.get(b"x")), (None, both.clone()));
    // An earlier reader keeps what it saw.
    let then = own.clone();
    undo.push(own.merge(b"x", b"3"));
    assert_eq!(operands(then.get(b"x")).1, both);
    undo.push(own.put(b"x", OwnValue::Deleted));
    undo.push(own.merge(b"x", b"4"));
    assert_eq!(operands(own.get(b"x")), (Some(OwnValue::Deleted), vec![b"4".to_vec()]));
    for last in undo.into_iter().rev() {
        own.undo(last);
    }
    assert_eq!((own.get(b"put"), own.get(b"x"), own.bytes()), (Some(put("base")), None, before));
}

/// Spaces at the end mean nothing.
struct Padded;

impl Comparator for Padded {
    fn name(&self) -> &str {
        "padded"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.trim_ascii_end().cmp(b.trim_ascii_end())
    }
}

#[test]
fn the_newer_bytes_of_equal_keys_count_for_operands_too() {
    let mut own = OwnWrites::new(OwnOrder::Custom(CustomOrder::new(Arc::new(Padded))));
    let first = own.merge(b"key", b"1");
    let before = own.bytes();
    let second = own.merge(b"key   ", b"2");
    let third = own.merge(b"key   ", b"3");
    let shown = |own: &OwnWrites| own.keys().map(|(key, _)| key.to_vec()).collect::<Vec<_>>();
    assert_eq!(shown(&own), [b"key   ".to_vec()]);
    let Some(OwnValue::Merged(None, operands)) = own.get(b"key") else { panic!("no operands") };
    assert_eq!(operands.concat(), b"123");
    own.undo(third);
    own.undo(second);
    assert_eq!((shown(&own), own.bytes()), (vec![b"key".to_vec()], before));
    own.undo(first);
    assert_eq!((shown(&own).len(), own.bytes()), (0, 0));
}
