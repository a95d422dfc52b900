#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::*;
use crate::base::Kind;
use crate::base::codec::hash_key;
use crate::budget::ChunkPool;

const TABLE_BYTES: u64 = 8 << 10;

fn group() -> Group {
    let pool = Arc::new(ChunkPool::new(0));
    let all = TABLE_BYTES as usize * TABLES_MAX;
    Group::new(Memtable::first_of_several(Bytewise, TABLE_BYTES as usize, all, pool), TABLE_BYTES)
}

fn put(group: &Group, key: u64, seq: Seq) {
    let table = group.table_for(seq);
    table.insert(0, &key.to_be_bytes(), seq, Kind::Put, &[1; 100]);
}

/// Writes from `seq` on until the next memtable is due, and adds it. Returns where it begins.
fn fill(group: &Group, mut seq: Seq) -> Seq {
    loop {
        put(group, seq.wrapping_mul(0x9E37_79B9_7F4A_7C15), seq);
        seq += 1;
        if let Some(table) = group.take_next(false) {
            group.add(seq, table);
            return seq;
        }
    }
}

/// The numbers behind the entries of each cursor, and how many entries it shows.
fn cursors(group: &Group) -> Vec<(usize, Seq, usize)> {
    let mut found = Vec::new();
    group.cursors(0, |newer, cursor, end| {
        let count = |cursor: &mut dyn crate::base::Cursor| {
            cursor.seek_to_first().unwrap();
            let mut count = 0;
            while cursor.valid() {
                assert!(cursor.seq() < end, "an entry stands behind its end");
                count += 1;
                cursor.next().unwrap();
            }
            count
        };
        let count = match cursor {
            MemorySource::Table(mut cursor) => count(&mut cursor),
            MemorySource::Merged(mut cursor) => count(&mut cursor),
        };
        found.push((newer, end, count));
    });
    found
}

#[test]
fn a_late_write_goes_where_its_number_belongs() {
    let group = group();
    let second = fill(&group, 1);
    let third = fill(&group, second);
    for (seq, at) in [(second - 1, 0), (second, 1), (third - 1, 1), (third, 2)] {
        assert!(std::ptr::eq(group.table_for(seq), Arc::as_ptr(group.table(at).unwrap())));
    }
    assert_eq!(group.newest_first().count(), 3);
}

#[test]
fn one_thread_adds_the_next_memtable_and_there_is_a_greatest_number_of_them() {
    let group = group();
    let mut seq = 1;
    while group.count() < TABLES_MAX {
        seq = fill(&group, seq);
    }
    for seq in seq..seq + 1000 {
        put(&group, seq, seq);
        assert!(group.take_next(false).is_none(), "the last memtable takes the rest");
    }
    let other = self::group();
    while !other.is_next_due(other.bytes()) {
        put(&other, seq, seq);
        seq += 1;
    }
    let mine = other.take_next(false);
    assert!(mine.is_some() && other.take_next(false).is_none());
}

#[test]
fn bytes_count_every_memtable_once() {
    let group = group();
    let (mut seq, empty) = (1, group.bytes());
    for tables in 1..=3 {
        seq = fill(&group, seq);
        let (entries, bytes) = (seq - 1, group.bytes() - empty);
        assert!(bytes >= tables * TABLE_BYTES && bytes >= entries * 108, "{bytes}");
        assert!(bytes <= entries * 200 + tables * 2048, "{bytes} for {entries} entries");
    }
    let before = group.bytes();
    assert!(group.merge(seq, None, 1));
    assert!(group.bytes() > before, "merged pointers count");
}

#[test]
fn pointers_are_merged_when_all_writes_have_come() {
    let group = group();
    let second = fill(&group, 1);
    let third = fill(&group, second);
    assert!(!group.merge(second - 1, None, 1), "a write to the first one may still come");
    assert!(!group.merge(third, None, 3), "too few");
    assert!(group.merge(third, None, 2));
    let entries = third - 1;
    assert_eq!(cursors(&group), [(1, third, entries as usize)], "the newest is empty");
    assert!(!group.merge(third, None, 1), "nothing new is complete");
    // At the end of a set the newest one is complete, too.
    put(&group, 1, third);
    assert!(!group.merge(third + 1, Some(third + 2), 1), "the set ends later");
    assert!(group.merge(third + 1, Some(third + 1), 1));
    assert_eq!(cursors(&group), [(0, SEQ_MAX, entries as usize + 1)]);
}

#[test]
fn several_memtables_give_few_cursors() {
    let group = group();
    let (mut seq, mut merges) = (1, 0);
    for _ in 1..TABLES_MAX {
        seq = fill(&group, seq);
        if group.is_merge_due() {
            assert!(group.merge(seq, None, group.merged_at()));
            merges += 1;
        }
        assert!(cursors(&group).len() <= TABLES_MAX / MERGED_DIVISOR + 1);
        assert!(group.count() > TABLES_MAX / 2 || cursors(&group).len() <= MERGED_AT + 1);
    }
    assert!(merges <= 14, "{merges} times");
    let shown: usize = cursors(&group).iter().map(|(_, _, count)| count).sum();
    assert_eq!(shown as u64, seq - 1);
}

#[test]
fn one_filter_answers_for_all_memtables() {
    let group = group();
    let seq = fill(&group, 1);
    fill(&group, seq);
    for written in 1..seq {
        let key = written.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        assert!(group.may_hold(0, hash_key(&key)));
    }
    let absent = |n: &u64| group.may_hold(0, hash_key(&n.to_le_bytes()));
    assert!((0..1000).filter(absent).count() < 50, "the filter denies most absent keys");
    let tombstone = crate::state::memtables::tombstone(Some(b"a"), Some(b"b"), seq);
    group.table_for(seq).delete_range(0, tombstone);
    assert!(group.may_hold(0, hash_key(&[9; 8])), "a range tombstone may cover any key");
}

#[test]
fn a_pause_begins_a_memtable_early_where_there_are_few() {
    let group = group();
    let (now, later) = (Instant::now(), Instant::now() + MERGE_AFTER);
    assert!(!group.is_calm(2, now) && !group.is_calm(2, now) && group.is_calm(2, later));
    assert!(!group.is_calm(3, later) && group.is_calm(3, later + MERGE_AFTER));
    let mut seq = 1;
    for count in [8, 16, 32] {
        while group.count() < count {
            seq = fill(&group, seq);
        }
        let before = group.bytes();
        let table = loop {
            put(&group, seq, seq);
            seq += 1;
            if let Some(table) = group.take_next(true) {
                break table;
            }
        };
        let (bytes, part) = (group.bytes() - before, TABLE_BYTES * count as u64 / 64);
        assert!((part..part + 600).contains(&bytes), "{bytes} with {count} memtables");
        group.add(seq, table);
    }
}

#[test]
fn a_pause_is_looked_for_where_pointers_are_merged_then() {
    let group = group();
    let waits =
        || (group.begins_to_wait(), group.begins_to_wait(), group.waits_for_pause().is_some());
    assert_eq!(waits(), (false, false, false), "nothing is written");
    let (mut seq, empty) = (1, group.bytes());
    while group.bytes() < empty + TABLE_BYTES / 64 {
        put(&group, seq, seq);
        seq += 1;
    }
    assert_eq!(waits(), (true, false, true), "somebody is told once");
    assert_eq!(waits(), (false, false, true));
    let table = group.take_next(true).unwrap();
    group.add(seq, table);
    assert!(group.waits_for_pause().is_some() && group.merge(seq, None, 1));
    assert_eq!(group.waits_for_pause(), None);
    for count in 2..16 {
        assert_eq!(group.count(), count);
        seq = fill(&group, seq);
    }
    assert!(group.merge(seq, None, 1));
    // A few more entries are not worth a memtable then, however long nobody writes.
    put(&group, seq, seq);
    assert_eq!(waits(), (false, false, false));
    while group.count() < TABLES_MAX {
        seq = fill(&group, seq + 1);
    }
    assert!(group.merge(seq, None, 1));
    for seq in seq..seq + 1000 {
        put(&group, seq, seq);
    }
    assert_eq!(waits(), (false, false, false), "there is no further memtable");
}
