#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::*;
use crate::model::{Model, Op, SLOTS};

/// A value of which the filter makes `like`: nothing of `Remove`, less of `Change`, itself of `Keep`.
fn value(like: &Decision) -> Vec<u8> {
    let kind = std::mem::discriminant(like);
    let mut all = (0_u8..=255).map(|byte| [&[byte][..], &[b'0'; 60]].concat());
    all.find(|value| std::mem::discriminant(&Trimmed.filter(b"", value)) == kind).unwrap()
}

fn cut(value: &[u8]) -> Vec<u8> {
    let Decision::Change(cut) = Trimmed.filter(b"", value) else { panic!("it is not cut") };
    cut
}

fn model() -> Model {
    let mut model = Model::filtering([true; SLOTS]);
    model.apply(&Op::Create(2));
    model
}

fn sees(model: &mut Model, slot: usize, found: Option<&[u8]>) -> bool {
    model.see(slot, b"k", |shown| shown.map(|(_, value)| &value[..]) == found)
}

#[test]
fn the_filter_makes_nothing_more_of_what_it_made() {
    for byte in 0..=255_u8 {
        for len in [0, 1, 3, 4, 8, 9, 40, 41, 200] {
            let value = vec![byte; len];
            if let Decision::Change(cut) = Trimmed.filter(b"", &value) {
                assert!(cut.len() < len);
                assert_eq!(Trimmed.filter(b"", &cut), Decision::Keep);
            }
        }
    }
    assert_eq!(Trimmed.filter(b"", b""), Decision::Remove);
}

#[test]
fn what_was_filtered_does_not_come_back_in_the_present() {
    let long = value(&Decision::Change(Vec::new()));
    let mut model = model();
    model.apply(&Op::Put(0, b"k".to_vec(), long.clone()));
    assert!(sees(&mut model, 0, Some(&long)) && sees(&mut model, 0, Some(&long)));
    assert!(!sees(&mut model, 0, None));
    assert!(sees(&mut model, 0, Some(&cut(&long))));
    assert!(!sees(&mut model, 0, Some(&long)));
    let kept = value(&Decision::Keep);
    model.apply(&Op::Put(0, b"k".to_vec(), kept.clone()));
    assert!(sees(&mut model, 0, Some(&kept)) && !sees(&mut model, 0, None));
}

#[test]
fn a_snapshot_shows_the_same_every_time() {
    let gone = value(&Decision::Remove);
    let mut model = model();
    model.apply(&Op::Put(0, b"k".to_vec(), gone.clone()));
    let (mut before, mut after) = (model.frozen(), model.frozen());
    assert!(sees(&mut before, 0, Some(&gone)) && !sees(&mut before, 0, None));
    assert!(sees(&mut after, 0, None) && !sees(&mut after, 0, Some(&gone)));
    // A branch of it has a present of its own.
    let mut branch = before.thawed();
    assert!(sees(&mut branch, 0, Some(&gone)) && sees(&mut branch, 0, None));
    assert!(sees(&mut before, 0, Some(&gone)));
}

#[test]
fn operands_stand_above_what_was_filtered() {
    let gone = value(&Decision::Remove);
    let kept = value(&Decision::Keep);
    let mut model = model();
    model.apply(&Op::Put(2, b"k".to_vec(), gone.clone()));
    model.apply(&Op::Merge(2, b"k".to_vec(), kept.clone()));
    let whole = merged(Some(&gone), &kept);
    let mut other = model.clone();
    assert!(sees(&mut other, 2, Some(&whole)) && sees(&mut other, 2, Some(&kept)));
    assert!(!sees(&mut other, 2, Some(&whole)));
    // The filter may also be asked about the whole, which begins as the value does.
    assert!(sees(&mut model, 2, None) && !sees(&mut model, 2, Some(&kept)));
}

#[test]
fn after_a_compaction_everything_is_filtered() {
    let (gone, kept) = (value(&Decision::Remove), value(&Decision::Keep));
    let mut model = model();
    model.apply(&Op::Put(0, b"k".to_vec(), gone.clone()));
    model.apply(&Op::Put(2, b"k".to_vec(), kept.clone()));
    model.filter_all(|_| true);
    assert!(!sees(&mut model, 0, Some(&gone)) && sees(&mut model, 0, None));
    assert!(sees(&mut model, 2, Some(&kept)));
}

#[test]
fn an_iterator_may_pass_over_what_a_filter_removes() {
    let (gone, kept) = (value(&Decision::Remove), value(&Decision::Keep));
    let mut model = model();
    model.apply(&Op::Put(0, b"a".to_vec(), gone.clone()));
    model.apply(&Op::Put(0, b"b".to_vec(), kept.clone()));
    let all = model.map(0).unwrap().expected(Bound::Unbounded, Bound::Unbounded);
    let (first, second) = ((&b"a"[..], &gone[..]), (&b"b"[..], &kept[..]));
    let mut both = all.clone();
    assert!(both.take(true, Some(first)) && both.take(true, Some(second)));
    assert!(both.take(true, None));
    let mut one = all.clone();
    assert!(one.take(true, Some(second)) && one.take(false, None));
    one.seek(|_| false);
    assert!(!one.take(true, Some(first)), "it was not there before");
    let mut backward = all;
    assert!(!backward.take(false, Some(first)), "the second cannot be passed over");
}
