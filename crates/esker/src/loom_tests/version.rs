//! The swap of versions: [`EpochCell`], [`EpochSlot`], [`Current`], and the files of an old version (R22).

use super::{memset, model, version};
use crate::base::FileId;
use crate::manifest::Version;
use crate::run::{Reclaim, RunFile};
use crate::state::State;
use crate::state::current::Current;
use crate::sync::{EpochCell, EpochSlot, pin};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::path::Path;
use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicUsize;

/// The values keep a count of their own here, so that one that is given back too early is counted
/// and not followed.
#[test]
fn a_value_stays_for_guards_and_goes_with_the_last_owner() {
    model(8, || {
        let values = Arc::new([Arc::new(0_usize), Arc::new(1)]);
        let cell = Arc::new(EpochCell::new(Arc::clone(&values[0])));
        let reader = {
            let (cell, values) = (Arc::clone(&cell), Arc::clone(&values));
            thread::spawn(move || {
                let guard = pin();
                let seen = *cell.load(&guard);
                // Somewhere in between, others run.
                let owned = cell.load_arc();
                assert!(*owned >= seen, "back to an older value");
                assert!(Arc::strong_count(&values[seen]) > 1, "released under a guard");
                drop(guard);
                assert!(Arc::strong_count(&values[*owned]) > 1, "released under its owner");
            })
        };
        cell.swap(Arc::clone(&values[1]));
        drop(cell);
        reader.join().unwrap();
        for value in values.iter() {
            assert_eq!(Arc::strong_count(value), 1, "never released");
        }
    });
}

/// As above, for a slot that is emptied and filled again.
#[test]
fn what_a_slot_held_stays_for_guards_and_goes_with_the_last_owner() {
    model(8, || {
        let values = Arc::new([Arc::new(0_usize), Arc::new(1)]);
        let slot = Arc::new(EpochSlot::empty());
        slot.fill(Arc::clone(&values[0]));
        let reader = {
            let (slot, values) = (Arc::clone(&slot), Arc::clone(&values));
            thread::spawn(move || {
                let guard = pin();
                let seen = slot.load(&guard).copied();
                // Somewhere in between, others run.
                let owned = slot.load_arc();
                let is_held = |value: usize| Arc::strong_count(&values[value]) > 1;
                assert!(seen.is_none_or(is_held), "released under a guard");
                drop(guard);
                assert!(owned.is_none_or(|value| is_held(*value)), "released under its owner");
            })
        };
        slot.clear();
        slot.fill(Arc::clone(&values[1]));
        drop(slot);
        reader.join().unwrap();
        for value in values.iter() {
            assert_eq!(Arc::strong_count(value), 1, "never released");
        }
    });
}

#[test]
fn what_a_value_holds_was_written_before_it_is_seen() {
    model(8, || {
        let value = |n| Arc::new(AtomicU64::new(n));
        let cell = Arc::new(EpochCell::new(value(1)));
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let guard = pin();
                assert_eq!(cell.load(&guard).load(Ordering::Relaxed), 1);
            })
        };
        let next = value(0);
        next.store(1, Ordering::Relaxed);
        cell.swap(next);
        reader.join().unwrap();
    });
}

/// Counts files that may be unlinked.
#[derive(Debug, Default)]
struct Unlinked(AtomicUsize);

impl Unlinked {
    fn files(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Reclaim for Unlinked {
    fn file(&self, _: FileId) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn slice(&self, _: FileId, _: u64, _: u64) {}

    fn values(&self) {}
}

/// A reader looks at a version whose only file is dropped meanwhile, as `db::store` does it: first
/// the version, then the marks, and then a worker collects what readers left.
fn swap_and_unlink(read: impl Fn(&Current, &dyn Fn(&State)) + Copy + Send + Sync + 'static) {
    model(8, move || {
        let unlinked = StdArc::new(Unlinked::default());
        let fs = crate::fs::os();
        let file = RunFile::new(&fs, Path::new("nowhere"), 1, Some(unlinked.clone()), None);
        let (first, segment) = version(&file, 0, 8);
        let current = Arc::new(Current::new(State::shared(vec![StdArc::new(memset(8))], first)));
        let reader = {
            let (current, unlinked) = (Arc::clone(&current), unlinked.clone());
            thread::spawn(move || {
                let step = AtomicU64::new(0);
                read(&current, &|state| {
                    let has_file = state.version.segments().next().is_some();
                    // Somewhere in between, others run.
                    step.load(Ordering::Relaxed);
                    assert!(!has_file || unlinked.files() == 0, "unlinked under its reader");
                });
            })
        };
        current.change(|now| now.with_version(Version::default(), None));
        segment.mark_obsolete();
        file.mark_obsolete();
        drop((segment, file));
        current.retired.collect();
        reader.join().unwrap();
        current.retired.collect();
        assert_eq!(unlinked.files(), 1, "unlinked once");
    });
}

#[test]
fn a_file_goes_after_the_last_reader_in_an_epoch() {
    swap_and_unlink(|current, look| {
        let guard = pin();
        look(current.load(&guard));
    });
}

#[test]
fn a_file_goes_after_the_last_owner_of_its_version() {
    swap_and_unlink(|current, look| look(&current.load_arc()));
}
