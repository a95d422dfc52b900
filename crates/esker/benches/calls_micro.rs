//! Puts, gets and seeks in functions of their own, to be counted by callgrind: what statistics cost.
//!
//! The last argument is a directory, which is removed first; without one a temporary directory is
//! used. `docs/operations.md` says how to run it and what it printed.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a measurement")]
#![allow(missing_docs)]

use esker::{Db, Durability, Options};

const SEED: u64 = 88_172_645_463_325_252;

struct Keys(u64);

impl Keys {
    fn next(&mut self) -> [u8; 8] {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.to_be_bytes()
    }
}

macro_rules! gets {
    ($($name:ident)*) => {
        $(
            #[inline(never)]
            fn $name(db: &Db, calls: usize) {
                let mut keys = Keys(SEED);
                let found = (0..calls).filter(|_| db.get(keys.next()).unwrap().is_some());
                assert_eq!(found.count(), calls);
            }
        )*
    };
}

// Each is a line of its own in callgrind's output.
gets! { do_memtable_gets do_first_gets do_cached_gets do_delta_gets }

#[inline(never)]
fn do_puts(db: &Db, calls: usize) {
    let mut keys = Keys(SEED);
    (0..calls).for_each(|_| db.insert(keys.next(), [7; 100]).unwrap());
}

#[inline(never)]
fn do_buffered_puts(db: &Db, calls: usize) {
    let (mut keys, space) = (Keys(SEED + 1), db.default_keyspace());
    let put = |_| space.insert_with(keys.next(), [7; 100], Durability::Buffered).unwrap();
    (0..calls).for_each(put);
}

#[inline(never)]
fn do_absent_gets(db: &Db, calls: usize) {
    let mut keys = Keys(1_234_567);
    (0..calls).for_each(|_| assert!(db.get(keys.next()).unwrap().is_none()));
}

#[inline(never)]
fn do_seeks(db: &Db, calls: usize) {
    let mut keys = Keys(SEED);
    for _ in 0..calls {
        let entries = db.range(&keys.next()[..]..).unwrap().take(10);
        entries.for_each(|entry| assert_eq!(entry.unwrap().1.len(), 100));
    }
}

fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let given = std::env::args().skip(1).rfind(|argument| !argument.starts_with("--"));
    let dir = given.map_or(temporary.path().join("db"), Into::into);
    let _ = std::fs::remove_dir_all(&dir);
    let mut options = Options::default();
    options.memory = Some(1 << 30);
    options.workers = Some(1);
    let db = Db::open_with(&dir, options).unwrap();
    do_puts(&db, 60_000);
    do_memtable_gets(&db, 60_000);
    db.compact().unwrap();
    do_first_gets(&db, 60_000);
    do_cached_gets(&db, 60_000);
    do_absent_gets(&db, 20_000);
    do_seeks(&db, 5_000);
    do_buffered_puts(&db, 20_000);
    db.flush().unwrap();
    do_delta_gets(&db, 40_000);
    db.close().unwrap();
}
