//! The memtables of a group: one is added, and pointers to the entries of others are merged, while writers write and
//! readers read (`state/group.rs`).

use super::{RECORD, memset, model, put, reserve, ring};
use crate::base::{Bytewise, Cursor, SEQ_MAX, Seq};
use crate::commit::Ring;
use crate::memtable::{MemorySource, Merged};
use crate::state::group::Group;
use crate::state::memtables::MemtableSet;
use crate::sync::pin;
use loom::sync::Arc;
use loom::thread;

struct World {
    ring: Arc<Ring>,
    set: MemtableSet,
}

impl World {
    /// As in `db`, everybody finds the set inside an epoch. Loom tries all orders in which threads enter one. It does not
    /// try those of a load and a store if others have loaded since.
    fn group(&self) -> &Group {
        drop(pin());
        self.set.bytewise()
    }

    /// What is published.
    fn visible(&self) -> Seq {
        drop(pin());
        self.ring.visible()
    }

    fn write(&self) {
        let ticket = reserve(&self.ring, RECORD);
        let guard = pin();
        put(&self.set, &ticket.start.to_be_bytes(), ticket.start);
        drop(guard);
        self.ring.complete(&ticket);
    }

    /// Adds a memtable, as `MemtableSet::begin_next_table` does once it is due, while the gate is closed for those who
    /// reserve.
    fn add(&self) {
        self.ring.seal(|position| self.add_at(position));
    }

    fn add_at(&self, position: Seq) {
        let table = self.group().table(0).unwrap().beside(1 << 10);
        self.group().add(position, table);
    }

    /// Merges what is complete, as far as a worker knows that it is published.
    fn merge(&self, published: Seq) -> bool {
        drop(pin());
        self.set.merge_tables(published, true)
    }

    fn cursors(&self) -> Vec<MemorySource<Bytewise>> {
        let mut all = Vec::new();
        self.group().cursors(0, |_, cursor, _| all.push(cursor));
        all
    }
}

/// A set with a write in each of two memtables, and a third one that takes the next writes.
fn world() -> Arc<World> {
    let world = World { ring: ring(), set: memset(RECORD) };
    for _ in 0..2 {
        world.write();
        world.add();
    }
    Arc::new(world)
}

fn numbers(mut cursor: impl Cursor) -> Vec<Seq> {
    let mut found = Vec::new();
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        found.push(cursor.seq());
        cursor.next().unwrap();
    }
    found
}

/// Every write below the position stands under exactly one of the cursors.
fn sees_all(cursors: Vec<MemorySource<Bytewise>>, below: Seq) {
    let mut found: Vec<_> = cursors
        .into_iter()
        .flat_map(|cursor| match cursor {
            MemorySource::Table(cursor) => numbers(cursor),
            MemorySource::Merged(cursor) => numbers(cursor),
        })
        .filter(|seq| *seq < below)
        .collect();
    found.sort_unstable();
    let all: Vec<_> = (RECORD..below).step_by(RECORD as usize).collect();
    assert_eq!(found, all, "a reader misses a published write, or sees one twice");
}

fn meanwhile(world: &Arc<World>, act: impl FnOnce(&World) + 'static) -> thread::JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || act(&world))
}

/// A write is on its way to the third memtable, or goes to the fourth, which a worker adds before it merges.
fn merge_while_writing(add: fn(&World), published: fn(&World) -> Seq) {
    model(3, move || {
        let world = world();
        let writer = meanwhile(&world, |world| world.write());
        let worker = meanwhile(&world, move |world| {
            add(world);
            assert!(world.merge(published(world)), "two memtables were complete");
        });
        let below = world.visible();
        sees_all(world.cursors(), below);
        writer.join().unwrap();
        worker.join().unwrap();
        let below = world.visible();
        assert_eq!(below, 4 * RECORD);
        sees_all(world.cursors(), below);
    });
}

#[test]
fn merged_pointers_have_every_entry_of_their_memtables() {
    merge_while_writing(World::add, World::visible);
}

#[test]
#[should_panic(expected = "a reader misses a published write")]
fn a_memtable_that_is_added_while_others_reserve_is_found_out() {
    merge_while_writing(|world| world.add_at(world.visible()), World::visible);
}

#[test]
#[should_panic(expected = "a reader misses a published write")]
fn a_merge_of_memtables_with_late_writes_is_found_out() {
    merge_while_writing(World::add, |_| SEQ_MAX);
}

/// A writer adds a memtable for its next write.
fn read_while_adding(read: impl Fn(&World) + Copy + Send + Sync + 'static) {
    model(3, move || {
        let world = world();
        let writer = meanwhile(&world, |world| {
            world.write();
            world.add();
            world.write();
        });
        let worker = meanwhile(&world, |world| _ = world.merge(world.visible()));
        read(&world);
        writer.join().unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn a_reader_finds_every_published_write_through_what_is_merged() {
    read_while_adding(|world| {
        let below = world.visible();
        sees_all(world.cursors(), below);
    });
}

#[test]
#[should_panic(expected = "a reader misses a published write")]
fn memtables_counted_before_the_position_are_found_out() {
    read_while_adding(|world| {
        let cursors = world.cursors();
        sees_all(cursors, world.visible());
    });
}

/// Two threads merge at once: a worker while writes rest, and one that a new memtable called.
#[test]
fn of_two_that_merge_none_undoes_the_other() {
    model(3, || {
        let world = world();
        world.write();
        let before = world.group().bytes();
        let others = [(); 2].map(|()| {
            meanwhile(&world, |world| {
                world.merge(world.visible());
                world.set.seal(4 * RECORD);
                world.merge(world.visible());
            })
        });
        let below = world.visible();
        sees_all(world.cursors(), below);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(world.cursors().len(), 1, "one list has all entries");
        let tables: Vec<_> = (0..3).map(|n| world.group().table(n).unwrap().clone()).collect();
        let pointers = Merged::new(None, &tables).bytes() as u64;
        assert_eq!(world.group().bytes(), before + pointers, "pointers count twice, or not");
        sees_all(world.cursors(), below);
    });
}
