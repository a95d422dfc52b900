#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::*;
use crate::catalog::BranchState;
use crate::db::write::Write;
use crate::directory::reserve::Use;
use crate::options::{Compression, Options};
use crate::stats::counters::Written;
use crate::wal::ops::Op;
use crate::{Db, Durability};
use std::cell::Cell;

/// Judging takes many looks, and each goes on where the one before ended: so segments are looked at about
/// twice in all, and not once in each look.
#[test]
fn looks_for_raw_data_take_steps_in_proportion_to_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let options = |compression| {
        let mut options = Options::default();
        (options.memory, options.compression) = (Some(32 << 20), compression);
        (options.segment_bytes, options.partition_bytes) = (4 << 10, Some(64 << 10));
        options.durability = Durability::Buffered;
        options
    };
    let db = Db::open_with(directory.path(), options(Compression::None)).unwrap();
    for number in 0..4000_u64 {
        let mut state = number;
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        db.insert(number.to_be_bytes(), bytes.take(500).collect::<Vec<_>>()).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    let core = Core::open(directory.path(), &options(Compression::Auto)).unwrap();
    let version = &core.state_now().version.clone();
    let segments = version.segments().count();
    assert!(segments > 200, "{segments}");
    let (catalog, store, settings) = (&core.catalog, &core.store, &core.settings);
    let view = settle::View { version, catalog, store, settings, room: u64::MAX };
    let (asked, mut looks, mut from) = (Cell::new(0), 0, None);
    loop {
        looks += 1;
        let (keys, more) = view.raw_parts(&mut from, |segment| {
            asked.set(asked.get() + 1);
            core.is_unsettled(segment)
        });
        assert_eq!(keys.len(), 0, "nothing of it shrinks");
        if !more {
            break;
        }
    }
    let asked = asked.get();
    // Each look begins with the partition in which the one before ended, of some 16 segments.
    assert!(looks > segments / 16 && asked <= 2 * segments + 24 * looks, "{asked}, {looks} looks");
    assert!(asked < 5 * segments, "{asked} of {segments}");
    core.close().unwrap();
}

/// A flush makes the reserve larger when it ends, and until then the reserve is not whole.
#[test]
fn a_compaction_puts_the_log_to_rest_although_the_reserve_grows_at_this_moment() {
    let directory = tempfile::tempdir().unwrap();
    let core = Core::open(&directory.path().join("db"), &Options::default()).unwrap();
    let keyspace = &*core.default_keyspace(&BranchState::main()).unwrap();
    let mut payload = Vec::new();
    Op::Put { keyspace: keyspace.id, key: b"key", value: &[7; 2 << 20] }.encode(&mut payload);
    let (terms, counts) = (Durability::Process.into(), Written::Put(0));
    let (payload, keyspaces) = (&payload[..], &[keyspace][..]);
    core.write(&Write { payload, operations: 1, keyspaces, terms, counts }).unwrap();
    core.flush().unwrap();
    let pipeline = core.pipeline.as_ref().unwrap();
    assert!(pipeline.bytes().to_gain > 0, "{:?}", pipeline.bytes());
    assert!(core.reserve.give_up(Use::Freeing));
    core.shrink_flushed_log(pipeline).unwrap();
    assert_eq!(pipeline.bytes().to_gain, 0, "{:?}", pipeline.bytes());
    core.close().unwrap();
}
