//! Times the operations of the memtable one by one, and prints nanoseconds for each.
//!
//! `cargo bench -p esker --bench memtable_micro -- [MiB]`: entries of 16 + 100 bytes, 64 MiB of
//! them unless told otherwise. Keys are the 16 decimal digits that `db_bench` made customary, or
//! 16 random bytes.

use esker::internals::base::{Bytewise, Cursor, Kind, SEQ_MAX};
use esker::internals::memtable::Memtable;
use esker_testkit::mix;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const VALUE: [u8; 100] = [7; 100];

fn decimal(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    let mut rest = number;
    for place in key.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn binary(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(number).to_be_bytes());
    key[8..].copy_from_slice(&mix(!number).to_be_bytes());
    key
}

fn report(what: &str, operations: u64, start: Instant) {
    println!("{what:44} {:7.1} ns/op", start.elapsed().as_nanos() as f64 / operations as f64);
}

fn fill(name: &str, count: u64, key: impl Fn(u64) -> [u8; 16]) -> Arc<Memtable<Bytewise>> {
    let table = Arc::new(Memtable::new(Bytewise, 116 * count as usize));
    let start = Instant::now();
    for index in 0..count {
        table.insert(1, &key(index), index + 1, Kind::Put, &VALUE);
    }
    report(&format!("insert {name}"), count, start);
    table
}

/// The tail of sequential inserts: what a fresh chunk and its page faults cost the one who gets it.
fn slowest(count: u64) {
    let table = Memtable::new(Bytewise, 116 * count as usize);
    let mut times = Vec::with_capacity(count as usize);
    for index in 0..count {
        let start = Instant::now();
        table.insert(1, &decimal(index), index + 1, Kind::Put, &VALUE);
        times.push(start.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    for (name, of_million) in [("p99", 990_000), ("p99.99", 999_900), ("slowest", 1_000_000)] {
        let rank = (count * of_million / 1_000_000).clamp(1, count) - 1;
        println!("insert sequential, {name:25} {:7} ns", times[rank as usize]);
    }
}

fn fill_by_two(name: &str, count: u64, key: impl Fn(u64) -> [u8; 16] + Sync) {
    let table = Memtable::new(Bytewise, 116 * count as usize);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (table, key) = (&table, &key);
            scope.spawn(move || {
                for index in (half..count).step_by(2) {
                    table.insert(1, &key(index), index + 1, Kind::Put, &VALUE);
                }
            });
        }
    });
    report(&format!("insert {name}, two threads"), count, start);
}

fn read(name: &str, table: &Arc<Memtable<Bytewise>>, count: u64, key: impl Fn(u64) -> [u8; 16]) {
    let start = Instant::now();
    for index in 0..count {
        let key = key(mix(index) % count);
        assert!(black_box(table.get(1, &key, SEQ_MAX)).is_some(), "an inserted key is found");
    }
    report(&format!("get {name}, present"), count, start);
    let start = Instant::now();
    let found = (0..count).filter(|index| table.get(2, &key(*index), SEQ_MAX).is_some()).count();
    report(&format!("get {name}, absent (found {found})"), count, start);
    let mut cursor = table.cursor(1);
    let start = Instant::now();
    let mut seen = 0u64;
    cursor.seek_to_first().expect("memtable cursors do not fail");
    while cursor.valid() {
        seen += u64::from(black_box(cursor.key())[0] != 1) | 1;
        cursor.next().expect("memtable cursors do not fail");
    }
    report(&format!("scan {name} forward"), seen, start);
    let start = Instant::now();
    cursor.seek_to_last().expect("memtable cursors do not fail");
    while cursor.valid() {
        black_box(cursor.key());
        cursor.prev().expect("memtable cursors do not fail");
    }
    report(&format!("scan {name} backward"), seen, start);
}

fn main() {
    let mebibytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(64u64);
    let count = (mebibytes << 20) / 116;
    println!("{count} entries of 16 + 100 bytes, {mebibytes} MiB");
    let random = |index| decimal(mix(index) % 1_000_000_000);
    let _warm = fill("warm-up", count, binary);
    let table = fill("sequential, decimal", count, decimal);
    println!("{:44} {:7.1} bytes/entry", "memory", table.bytes() as f64 / count as f64);
    read("sequential, decimal", &table, count, decimal);
    drop(table);
    drop(fill("random, decimal", count, random));
    let table = fill("random, binary", count, binary);
    read("random, binary", &table, count, binary);
    drop(table);
    slowest(count);
    fill_by_two("sequential, decimal", count, decimal);
    fill_by_two("random, binary", count, binary);
}
