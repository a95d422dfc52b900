//! Snapshots and readers against compactions (R17) and against changes that take away what a
//! snapshot would see (R21): the registry, the rule and stream of compactions, [`Current`] and the
//! commit ring.

use super::{RECORD, memset, model, newest, put, put_value, reserve, ring};
use crate::base::rangedel::Fragments;
use crate::base::{Bytewise, Kind, Moment, Seq};
use crate::commit::{Ring, Ticket};
use crate::compaction::{CompactionRule, CompactionStream, Depth};
use crate::manifest::Version;
use crate::state::State;
use crate::state::current::Current;
use crate::state::snapshots::Snapshots;
use loom::sync::Arc;
use loom::thread;
use std::sync::Arc as StdArc;

struct World {
    ring: Arc<Ring>,
    current: Current,
    snapshots: Snapshots,
}

/// A key with one version that is published, and a second one that is applied and not published.
fn world() -> (Arc<World>, Ticket) {
    let (ring, set) = (ring(), memset(RECORD));
    let [first, second] = [(); 2].map(|()| reserve(&ring, RECORD));
    put(&set, b"key", first.start);
    ring.complete(&first);
    put(&set, b"key", second.start);
    let state = State::shared(vec![StdArc::new(set)], Version::default());
    let (current, snapshots) = (Current::new(state), Snapshots::default());
    (Arc::new(World { ring, current, snapshots }), second)
}

impl World {
    fn moment(&self) -> Moment {
        Moment { seq: self.ring.visible(), time: 0 }
    }

    /// What of the key is found at a position in a state.
    fn find(state: &State, below: Seq) -> Option<Seq> {
        newest(state.active(), b"key", below)
    }

    /// What a snapshot finds now.
    fn find_at(&self, at: Moment) -> Option<Seq> {
        let (state, _) = self.current.view(|| at.seq);
        Self::find(&state, at.seq)
    }

    /// Compacts what is in memory, and puts the result in its place.
    fn merge(&self) {
        let (snapshots, now) = self.snapshots.moments(|| 0);
        let gc = CompactionRule { snapshots, now }.at(Depth::Bottom);
        let cursor = self.current.load_arc().active().bytewise().table(0).unwrap().cursor(0);
        let none = Vec::<StdArc<Fragments>>::new();
        let mut stream = CompactionStream::new(Bytewise, vec![cursor], none, gc);
        let merged = memset(RECORD);
        let mut out = |key: &[u8], seq: Seq, kind: Kind, value: &[u8]| {
            assert_eq!(kind, Kind::Put);
            put_value(&merged, key, seq, value);
            Ok(())
        };
        while stream.step(&mut out, 10).unwrap() {}
        let version = StdArc::new(Version::default());
        self.current.change(|_| State::of(vec![StdArc::new(merged)], version));
    }
}

/// Version 2 is published, and a compaction reads both versions, while another thread reads.
fn read_while_compacting(read: impl Fn(&World) + Copy + Send + Sync + 'static) {
    model(4, move || {
        let (world, second) = world();
        let merge = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.ring.complete(&second);
                world.merge();
            })
        };
        read(&world);
        merge.join().unwrap();
        assert_eq!(world.find_at(world.moment()), Some(second.start));
    });
}

/// Takes a snapshot; what it sees must be there at once and later.
fn snapshot(world: &World, read_under_lock: bool) {
    let at = if read_under_lock {
        world.snapshots.register(|| world.moment())
    } else {
        let moment = world.moment();
        world.snapshots.register(|| moment)
    };
    for _ in 0..2 {
        assert_eq!(world.find_at(at), Some(at.seq - RECORD), "a snapshot lost its version");
    }
}

#[test]
fn a_compaction_keeps_what_a_snapshot_sees() {
    read_while_compacting(|world| snapshot(world, true));
}

#[test]
#[should_panic(expected = "a snapshot lost its version")]
fn a_position_read_before_the_lock_is_found_out() {
    read_while_compacting(|world| snapshot(world, false));
}

#[test]
fn of_two_snapshots_at_one_position_the_second_outlives_the_first() {
    read_while_compacting(|world| {
        let first = world.snapshots.register(|| world.moment());
        let second = world.snapshots.register(|| first);
        world.snapshots.release(first.seq);
        assert_eq!(world.find_at(second), Some(second.seq - RECORD), "a snapshot lost its version");
    });
}

#[test]
fn a_reader_without_a_snapshot_finds_what_was_newest() {
    read_while_compacting(|world| {
        let (state, below) = world.current.view(|| world.ring.visible());
        assert_eq!(World::find(&state, below), Some(below - RECORD), "a reader found nothing");
    });
}

/// A filter takes the key away, which snapshots that it does not know must not see happen, as
/// `db::store` makes such a change: no thread takes a snapshot until it is visible.
fn remove_under_hold(hold_until_visible: bool) {
    model(4, move || {
        let (world, second) = world();
        world.ring.complete(&second);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let at = world.snapshots.register(|| world.moment());
                let [before, after] = [(); 2].map(|()| world.find_at(at));
                assert_eq!(before, after, "a snapshot saw a change");
            })
        };
        let known = world.snapshots.list();
        let held = world.snapshots.hold(&known);
        let respected = held.is_some();
        let held = held.filter(|_| hold_until_visible);
        if respected && known.is_empty() {
            let version = StdArc::new(Version::default());
            let memtable_sets = vec![StdArc::new(memset(RECORD))];
            world.current.change(|_| State::of(memtable_sets, version));
        }
        drop(held);
        reader.join().unwrap();
    });
}

#[test]
fn a_snapshot_comes_before_or_behind_what_a_filter_removes() {
    remove_under_hold(true);
}

#[test]
#[should_panic(expected = "a snapshot saw a change")]
fn a_hold_that_ends_too_early_is_found_out() {
    remove_under_hold(false);
}
