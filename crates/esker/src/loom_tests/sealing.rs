//! Sealing against writers that are on their way, and what flush and readers find then (R3): the
//! commit ring, [`Current`], and the sets with their memtables.

use super::{RECORD, in_version, memset, model, newest, put, reserve, ring, version};
use crate::base::{Cursor, Seq};
use crate::commit::Ring;
use crate::manifest::Version;
use crate::memtable::MemorySource;
use crate::run::RunFile;
use crate::state::State;
use crate::state::current::Current;
use crate::state::memtables::MemtableSet;
use crate::sync::pin;
use loom::sync::Arc;
use loom::thread;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc as StdArc;

fn current() -> Arc<Current> {
    let first = StdArc::new(memset(RECORD));
    Arc::new(Current::new(State::shared(vec![first], Version::default())))
}

/// The key of the write at a position.
fn key(seq: Seq) -> [u8; 8] {
    seq.to_be_bytes()
}

/// A write, as `db::write` does it. Every write has a key of its own.
fn write(ring: &Ring, current: &Current) {
    let ticket = reserve(ring, RECORD);
    let guard = pin();
    put(current.load(&guard).set_of(ticket.start), &key(ticket.start), ticket.start);
    drop(guard);
    ring.complete(&ticket);
}

fn seal(ring: &Ring, current: &Current) {
    ring.seal(|position| current.seal(memset(position)));
}

/// The numbers of the writes below a position.
fn writes_below(end: Seq) -> impl Iterator<Item = Seq> {
    (RECORD..end).step_by(RECORD as usize)
}

/// The oldest sealed set, which must hold what stands below its end and nothing else.
fn flushable(
    ring: &Ring,
    current: &Current,
    wait_for_writers: bool,
) -> Option<StdArc<MemtableSet>> {
    let wait = |end| {
        assert!(!wait_for_writers || ring.wait_visible(end));
        Ok::<_, Infallible>(())
    };
    let Ok(set) = current.flushable(wait);
    let set = set?;
    let mine = set.start..set.sealed_at().unwrap();
    for seq in writes_below(100) {
        let found = newest(&set, &key(seq), Seq::MAX >> 8).is_some();
        assert!(found || !mine.contains(&seq), "a flush left out what stands below its end");
        assert!(!found || mine.contains(&seq), "a set holds what stands behind its end");
    }
    Some(set)
}

/// Puts what the set holds into the tree.
fn install(current: &Current, set: &StdArc<MemtableSet>) {
    let file = RunFile::new(&crate::fs::os(), Path::new("nowhere"), 1, None, None);
    let (version, _) = version(&file, set.start, set.sealed_at().unwrap() - 1);
    current.change(|now| now.with_version(version, Some(set)));
}

/// Every write below the position must be there, in a memtable or in the tree.
fn sees_all(state: &State, below: Seq) {
    for seq in writes_below(below) {
        let in_memory =
            state.memtable_sets.iter().any(|set| newest(set, &key(seq), below).is_some());
        assert!(in_memory || in_version(state, seq), "a reader misses a published write");
    }
}

fn seal_and_flush(wait_for_writers: bool) {
    model(4, move || {
        let (ring, current) = (ring(), current());
        let writer = {
            let (ring, current) = (Arc::clone(&ring), Arc::clone(&current));
            thread::spawn(move || (0..2).for_each(|_| write(&ring, &current)))
        };
        seal(&ring, &current);
        let set = flushable(&ring, &current, wait_for_writers).unwrap();
        install(&current, &set);
        writer.join().unwrap();
        let (state, below) = current.view(|| ring.visible());
        assert_eq!(below, 3 * RECORD);
        assert_eq!(state.memtable_sets.len(), 1);
        sees_all(&state, below);
    });
}

#[test]
fn a_flush_has_everything_below_its_end() {
    seal_and_flush(true);
}

#[test]
#[should_panic(expected = "a flush left out")]
fn a_flush_that_does_not_wait_is_found_out() {
    seal_and_flush(false);
}

/// The writer seals behind itself, as a writer that fills a set does, and goes on in the next one.
#[test]
fn a_reader_sees_every_published_write_through_seal_and_flush() {
    model(3, || {
        let (ring, current) = (ring(), current());
        let writer = {
            let (ring, current) = (Arc::clone(&ring), Arc::clone(&current));
            thread::spawn(move || {
                write(&ring, &current);
                seal(&ring, &current);
                write(&ring, &current);
            })
        };
        let flush = {
            let (ring, current) = (Arc::clone(&ring), Arc::clone(&current));
            thread::spawn(move || {
                if let Some(set) = flushable(&ring, &current, true) {
                    install(&current, &set);
                }
            })
        };
        let (state, below) = current.view(|| ring.visible());
        sees_all(&state, below);
        writer.join().unwrap();
        flush.join().unwrap();
    });
}

/// Two changes at once: neither is lost.
#[test]
fn a_seal_and_an_install_do_not_undo_each_other() {
    model(8, || {
        let (ring, current) = (ring(), current());
        write(&ring, &current);
        seal(&ring, &current);
        write(&ring, &current);
        let sealer = {
            let (ring, current) = (Arc::clone(&ring), Arc::clone(&current));
            thread::spawn(move || seal(&ring, &current))
        };
        let set = flushable(&ring, &current, true).unwrap();
        install(&current, &set);
        sealer.join().unwrap();
        let (state, below) = current.view(|| ring.visible());
        assert_eq!(state.memtable_sets.len(), 2, "the first set went, and one came");
        assert_eq!(state.active().start, below);
        sees_all(&state, below);
    });
}

/// Writes go to the next memtable of their set while one is on its way.
#[test]
fn a_reader_sees_every_published_write_through_a_new_memtable() {
    model(3, || {
        let (ring, current) = (ring(), current());
        let writer = {
            let (ring, current) = (Arc::clone(&ring), Arc::clone(&current));
            thread::spawn(move || (0..2).for_each(|_| write(&ring, &current)))
        };
        let adder = {
            let (ring, current) = (Arc::clone(&ring), Arc::clone(&current));
            thread::spawn(move || {
                let state = current.load_arc();
                let group = state.active().bytewise();
                let table = group.table(0).unwrap().beside(1 << 10);
                ring.seal(|position| group.add(position, table));
            })
        };
        let (state, below) = current.view(|| ring.visible());
        sees_all(&state, below);
        writer.join().unwrap();
        adder.join().unwrap();
        let group = current.load_arc().active().clone();
        let group = group.bytewise();
        assert_eq!(group.count(), 2);
        for seq in writes_below(3 * RECORD) {
            let found = group.table_for(seq).get(0, &key(seq), Seq::MAX >> 8);
            assert!(found.is_some(), "a write is not in the memtable of its number");
        }
        // Pointers are merged only when every write to these memtables has come.
        let end = 3 * RECORD;
        assert!(group.merge(ring.visible(), Some(end), 1));
        let mut shown = 0;
        group.cursors(0, |_, cursor, _| {
            if let MemorySource::Merged(mut cursor) = cursor {
                cursor.seek_to_first().unwrap();
                while cursor.valid() {
                    shown += 1;
                    cursor.next().unwrap();
                }
            }
        });
        assert_eq!(shown, 2);
    });
}
