//! Merge operators.

use crate::{Place, fresh, small, text};
use esker::{
    Append, Batch, CounterI64, CounterU64, Db, Durability, ErrorKind, KeyspaceOptions, Max,
    MergeOperator, OperatorResult, Options,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Puts operands behind each other; it can be told to fail or to panic.
#[derive(Default)]
struct Moody {
    fails: AtomicBool,
    panics: AtomicBool,
}

impl MergeOperator for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> OperatorResult<Option<Vec<u8>>> {
        assert!(!self.panics.load(Ordering::SeqCst), "on purpose");
        if self.fails.load(Ordering::SeqCst) {
            return Err("not today".into());
        }
        if operands.last() == Some(&&b"none"[..]) {
            return Ok(None);
        }
        Ok(Some([existing.unwrap_or(b"<"), &operands.concat()].concat()))
    }
}

fn moody() -> (Options, Arc<Moody>) {
    let operator = Arc::new(Moody::default());
    let mut options = small();
    options.merge_operators.push(operator.clone());
    (options, operator)
}

fn number(db: &Db, keyspace: &str, key: &str) -> Option<u64> {
    let keyspace = db.keyspace(keyspace).unwrap();
    keyspace.get(key).unwrap().as_deref().map(|value| CounterU64::decode(value).unwrap())
}

#[test]
fn counters_count_through_memtables_flushes_compactions_and_reopening() {
    let (place, db) = fresh();
    let counters = db.keyspace_with("n", KeyspaceOptions::merging(CounterU64::NAME)).unwrap();
    counters.insert("with base", CounterU64::encode(100)).unwrap();
    for round in 1..=30u64 {
        counters.merge("with base", CounterU64::encode(1)).unwrap();
        counters.merge("without", CounterU64::encode(round)).unwrap();
        match round % 10 {
            3 => db.flush().unwrap(),
            7 => db.compact().unwrap(),
            _ => {}
        }
        assert_eq!(number(&db, "n", "with base"), Some(100 + round));
        assert_eq!(number(&db, "n", "without"), Some(round * (round + 1) / 2));
        assert_eq!(number(&db, "n", "never"), None);
    }
    counters.remove("with base").unwrap();
    counters.merge("with base", CounterU64::encode(7)).unwrap();
    drop((counters, db));
    let db = place.open();
    assert_eq!(number(&db, "n", "with base"), Some(7));
    let before = db.stats().operands_folded;
    db.compact().unwrap();
    assert_eq!(number(&db, "n", "with base"), Some(7));
    assert_eq!(number(&db, "n", "without"), Some(465));
    assert!(db.stats().operands_folded >= before);
    assert_eq!(db.keyspace("n").unwrap().merge_operator().as_deref(), Some(CounterU64::NAME));
}

#[test]
fn the_other_operators_that_come_along() {
    let (_place, db) = fresh();
    let signed = db.keyspace_with("i", KeyspaceOptions::merging(CounterI64::NAME)).unwrap();
    signed.merge("k", CounterI64::encode(3)).unwrap();
    signed.merge("k", CounterI64::encode(-5)).unwrap();
    assert_eq!(CounterI64::decode(&signed.get("k").unwrap().unwrap()), Some(-2));
    let max = db.keyspace_with("max", KeyspaceOptions::merging(Max::NAME)).unwrap();
    let list = KeyspaceOptions::merging(Append::new("; ").name());
    let list = db.keyspace_with("list", list).unwrap();
    for word in ["b", "c", "a"] {
        max.merge("k", word).unwrap();
        list.merge("k", word).unwrap();
    }
    assert_eq!(text(max.get("k").unwrap()).as_deref(), Some("c"));
    assert_eq!(text(list.get("k").unwrap()).as_deref(), Some("b; c; a"));
}

#[test]
fn every_kind_of_read_applies_operands() {
    let (_place, db) = fresh();
    let list = KeyspaceOptions::merging(Append::new("").name());
    let list = db.keyspace_with("list", list).unwrap();
    list.insert("b", "0").unwrap();
    db.flush().unwrap();
    list.merge("b", "1").unwrap();
    list.merge("a", "1").unwrap();
    db.flush().unwrap();
    list.merge("c", "1").unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut batch = Batch::new();
    batch.merge(&list, "b", "2");
    batch.merge(&list, "c", "2");
    batch.remove(&list, "a");
    batch.merge(&list, "a", "9");
    db.write_with(batch, Durability::Disk).unwrap();

    let pairs = |entries: Vec<(Vec<u8>, Vec<u8>)>| -> Vec<String> {
        let pair = |(k, v): (Vec<u8>, Vec<u8>)| String::from_utf8([k, v].join(&b'=')).unwrap();
        entries.into_iter().map(pair).collect()
    };
    for _ in 0..3 {
        let now = ["a=9", "b=012", "c=12"];
        let then = ["a=1", "b=01", "c=1"];
        assert_eq!(pairs(crate::entries(list.iter().unwrap())), now);
        let mut back: Vec<_> = list.iter().unwrap().rev().map(|entry| entry.unwrap()).collect();
        back.reverse();
        assert_eq!(pairs(back), now);
        assert_eq!(pairs(crate::entries(snapshot.iter(&list).unwrap())), then);
        assert_eq!(text(list.get("b").unwrap()).as_deref(), Some("012"));
        assert_eq!(text(snapshot.get(&list, "b").unwrap()).as_deref(), Some("01"));
        assert!(list.contains_key("c").unwrap());
        assert!(!list.contains_key("d").unwrap());
        let several = list.multi_get(["c", "d", "a"]).unwrap();
        assert_eq!(several, [Some(b"12".to_vec()), None, Some(b"9".to_vec())]);
        assert_eq!(list.first_key_value().unwrap().unwrap().1, b"9");
        assert_eq!(list.last_key_value().unwrap().unwrap().1, b"12");
        let mut cursor = list.cursor().unwrap();
        cursor.seek("b").unwrap();
        assert_eq!(cursor.value(), b"012");
        cursor.next().unwrap();
        assert_eq!((cursor.key(), cursor.value()), (&b"c"[..], &b"12"[..]));
        cursor.prev().unwrap();
        cursor.prev().unwrap();
        assert_eq!((cursor.key(), cursor.value()), (&b"a"[..], &b"9"[..]));
        cursor.next().unwrap();
        assert_eq!((cursor.key(), cursor.value()), (&b"b"[..], &b"012"[..]));
        db.compact().unwrap();
    }
    drop(snapshot);
    db.compact().unwrap();
    assert_eq!(db.stats().trees.iter().map(|tree| tree.base.entries).sum::<u64>(), 3);
}

#[test]
fn an_operator_may_leave_no_value() {
    let (options, _) = moody();
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::merging("moody")).unwrap();
    keyspace.insert("a", "1").unwrap();
    db.compact().unwrap();
    keyspace.merge("a", "none").unwrap();
    assert_eq!(keyspace.get("a").unwrap(), None);
    assert_eq!(keyspace.iter().unwrap().count(), 0);
    db.compact().unwrap();
    assert_eq!(keyspace.get("a").unwrap(), None);
    keyspace.merge("a", "2").unwrap();
    assert_eq!(text(keyspace.get("a").unwrap()).as_deref(), Some("<2"));
}

/// What a walk showed: keys, and `!` for an error.
fn shown(entries: impl Iterator<Item = esker::Result<(Vec<u8>, Vec<u8>)>>) -> String {
    let name = |entry: esker::Result<(Vec<u8>, Vec<u8>)>| match entry {
        Ok((key, _)) => String::from_utf8(key).unwrap(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::MergeFailed);
            "!".to_owned()
        }
    };
    entries.map(name).collect()
}

#[test]
fn the_error_of_one_entry_keeps_no_other_from_being_read() {
    let (options, operator) = moody();
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::merging("moody")).unwrap();
    for key in ["b", "e", "g"] {
        keyspace.insert(key, "1").unwrap();
    }
    for key in ["a", "c", "d", "f", "h"] {
        keyspace.merge(key, "1").unwrap();
    }
    for flushed in [false, true] {
        operator.fails.store(true, Ordering::SeqCst);
        if flushed {
            // It keeps what it cannot apply.
            db.flush().unwrap();
        }
        assert_eq!(shown(keyspace.iter().unwrap()), "!b!!e!g!");
        assert_eq!(shown(keyspace.iter().unwrap().rev()), "!g!e!!b!");
        let tx = db.begin().unwrap();
        tx.insert(&keyspace, "cc", "own").unwrap();
        tx.merge(&keyspace, "e", "own").unwrap();
        // What the database refuses is met while looking for what stands next to the own write.
        assert_eq!(shown(tx.iter(&keyspace).unwrap()), "!b!!cc!!g!");
        assert_eq!(shown(tx.iter(&keyspace).unwrap().rev()), "!g!!!!ccb!");
        tx.rollback();

        // From both ends in turns, each entry and each error once.
        let mut iter = keyspace.iter().unwrap();
        let mut met = 0;
        while iter.next().is_some() {
            met += 1 + u32::from(iter.next_back().is_some());
        }
        assert_eq!((met, iter.next_back().is_none()), (8, true));

        let mut cursor = keyspace.cursor().unwrap();
        assert!(cursor.seek_to_first().is_err() && !cursor.valid());
        cursor.next().unwrap();
        assert_eq!(cursor.key(), b"b");
        assert!(cursor.next().is_err() && cursor.next().is_err());
        cursor.next().unwrap();
        assert_eq!(cursor.key(), b"e");
        assert!(cursor.prev().is_err() && cursor.prev().is_err());
        cursor.prev().unwrap();
        assert_eq!(cursor.key(), b"b");
        // What is refused behind the key that is sought is not in the way.
        cursor.seek_back("bb").unwrap();
        assert_eq!(cursor.key(), b"b");
    }
}

#[test]
fn counters_refuse_malformed_operands_before_anything_is_written() {
    let (_place, db) = fresh();
    let counters = db.keyspace_with("n", KeyspaceOptions::merging(CounterU64::NAME)).unwrap();
    counters.merge("a", CounterU64::encode(1)).unwrap();
    let refused = counters.merge("a", "xyz").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::MergeFailed);
    assert!(refused.to_string().contains("8 bytes"), "{refused}");
    let mut batch = Batch::new();
    batch.insert(&counters, "b", CounterU64::encode(1));
    batch.merge(&counters, "a", "xyz");
    assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::MergeFailed);
    let tx = db.begin().unwrap();
    assert_eq!(tx.merge(&counters, "a", "").unwrap_err().kind(), ErrorKind::MergeFailed);
    tx.merge(&counters, "a", CounterU64::encode(1)).unwrap();
    tx.commit().unwrap();
    assert_eq!(number(&db, "n", "a"), Some(2));
    assert_eq!(counters.iter().unwrap().flatten().count(), 1);
}

#[test]
fn an_operator_that_fails_or_panics_is_reported_and_nothing_is_lost() {
    let (options, operator) = moody();
    let place = Place::new();
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::merging("moody")).unwrap();
    keyspace.insert("a", "1").unwrap();
    keyspace.insert("b", "1").unwrap();
    for (flag, kind) in
        [(&operator.fails, ErrorKind::MergeFailed), (&operator.panics, ErrorKind::UserCodePanicked)]
    {
        flag.store(true, Ordering::SeqCst);
        keyspace.merge("a", "2").unwrap();
        for _ in 0..2 {
            assert_eq!(keyspace.get("a").unwrap_err().kind(), kind);
            let mut iter = keyspace.iter().unwrap();
            assert_eq!(iter.next().unwrap().unwrap_err().kind(), kind);
            assert_eq!(iter.next().unwrap().unwrap().0, b"b");
            assert!(iter.next().is_none() && iter.next_back().is_none());
            assert_eq!(iter.seek("a").unwrap_err().kind(), kind);
            assert_eq!(iter.next().unwrap().unwrap().0, b"b");
            let mut back = keyspace.iter().unwrap();
            assert_eq!(back.next_back().unwrap().unwrap().0, b"b");
            assert_eq!(back.next_back().unwrap().unwrap_err().kind(), kind);
            assert!(back.next_back().is_none() && back.next().is_none());
            // Flushes and compactions keep what they cannot apply, and other keys are not affected.
            db.compact().unwrap();
            keyspace.insert("b", "2").unwrap();
        }
        flag.store(false, Ordering::SeqCst);
        assert!(text(keyspace.get("a").unwrap()).unwrap().ends_with('2'));
    }
    assert_eq!(text(keyspace.get("a").unwrap()).as_deref(), Some("122"));
    drop((keyspace, db));
    let db = Db::open_with(place.path(), options).unwrap();
    db.compact().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(text(keyspace.get("a").unwrap()).as_deref(), Some("122"));
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn a_missing_operator_is_a_typed_error_and_the_rest_works() {
    let (options, _) = moody();
    let place = Place::new();
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::merging("moody")).unwrap();
    keyspace.merge("a", "1").unwrap();
    db.insert("other", "1").unwrap();
    drop((keyspace, db));

    let db = place.open();
    let error = db.keyspace("k").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MergeOperatorMissing);
    assert!(error.to_string().contains("\"moody\""), "{error}");
    let asked = db.keyspace_with("k", KeyspaceOptions::merging("moody")).unwrap_err();
    assert_eq!(asked.kind(), ErrorKind::MergeOperatorMissing);
    assert!(db.get("other").unwrap().is_some());
    db.insert("other", "2").unwrap();
    // Compactions keep operands whose operator is missing.
    db.compact().unwrap();
    assert!(db.verify().unwrap().problems.is_empty());
    drop(db);

    let db = Db::open_with(place.path(), options).unwrap();
    assert_eq!(text(db.keyspace("k").unwrap().get("a").unwrap()).as_deref(), Some("<1"));
}

#[test]
fn an_operator_is_kept_and_may_be_added_later() {
    let (options, _) = moody();
    let place = Place::new();
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("a", "1").unwrap();
    let refused = keyspace.merge("a", "2").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let mut batch = Batch::new();
    batch.insert(&keyspace, "b", "1");
    batch.merge(&keyspace, "a", "2");
    assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(keyspace.get("b").unwrap(), None, "a batch is written whole or not at all");

    let unknown = db.keyspace_with("k", KeyspaceOptions::merging("unknown")).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::MergeOperatorMissing);
    db.keyspace_with("k", KeyspaceOptions::merging("moody")).unwrap();
    keyspace.merge("a", "2").unwrap();
    assert_eq!(text(keyspace.get("a").unwrap()).as_deref(), Some("12"));
    let other = db.keyspace_with("k", KeyspaceOptions::merging(Max::NAME)).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::MergeOperatorMismatch);
    drop((keyspace, db));
    let db = Db::open_with(place.path(), options).unwrap();
    let other = db.keyspace_with("k", KeyspaceOptions::merging(Max::NAME)).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::MergeOperatorMismatch);
    let keyspace = db.keyspace_with("k", KeyspaceOptions::merging("moody")).unwrap();
    assert_eq!(text(keyspace.get("a").unwrap()).as_deref(), Some("12"));
}
