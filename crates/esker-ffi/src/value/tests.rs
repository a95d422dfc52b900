#![allow(unsafe_code, reason = "exported functions are called")]

use super::{
    esker_list_free, esker_value_data, esker_value_free, give_found, give_list, give_text,
    give_value,
};
use crate::text::Text;
use esker::internals::kept::get_kept;
use esker::internals::stats::clients::bytes;
use esker::{Db, Options};
use std::collections::BTreeSet;

/// Far more than other tests of this process have.
const LARGE: usize = 256 << 20;

/// Bytes that are counted for what `make` makes, and when `free` has freed it, in units of a large object.
fn counted<T>(make: impl FnOnce() -> T, free: impl FnOnce(T)) -> (i64, i64) {
    let before = bytes() as i64;
    let units = || (bytes() as i64 - before + LARGE as i64 / 2).div_euclid(LARGE as i64);
    let made = make();
    let during = units();
    free(made);
    (during, units())
}

#[test]
fn what_c_was_handed_is_counted_until_it_is_freed() {
    // SAFETY: the handles come from the functions before, and are freed once.
    let value = counted(|| give_value(vec![0; LARGE]), |value| unsafe { esker_value_free(value) });
    let text = || give_text("x".repeat(LARGE));
    // SAFETY: as above.
    let text = counted(text, |value| unsafe { esker_value_free(value) });
    let list = || give_list(vec!["x".repeat(LARGE), String::new()]);
    // SAFETY: as above.
    let list = counted(list, |list| unsafe { esker_list_free(list) });
    // The parts of an error are such texts, too.
    let texts = counted(|| Text::new("x".repeat(LARGE)), drop);
    assert_eq!([value, text, list, texts], [(1, 0); 4]);
}

/// Each handle of a long value in a file shows the same memory, which counts as what readers hold.
#[test]
fn a_value_in_its_block_is_not_copied() {
    let place = tempfile::tempdir().expect("a directory");
    let db = Db::open_with(place.path(), Options::new().memory(64 << 20)).expect("a database");
    db.insert("key", vec![7; 1 << 20]).expect("the value is stored");
    db.flush().expect("it is in a file");
    let all = db.default_keyspace();
    let pinned = || db.stats().held.pinned;
    assert_eq!(pinned(), 0);
    let get = |_| give_found(get_kept(&all, None, b"key").expect("it can be read"));
    let values: Vec<_> = (0..5).map(get).collect();
    assert!((5 << 20..10 << 20).contains(&pinned()));
    let shown: BTreeSet<_> = values
        .iter()
        .map(|value| {
            let mut len = 0;
            // SAFETY: the handle comes from the function before.
            let data = unsafe { esker_value_data(*value, &raw mut len) };
            (data, len)
        })
        .collect();
    assert_eq!(shown.into_iter().map(|(_, len)| len).collect::<Vec<_>>(), [1 << 20]);
    // SAFETY: as above, and each is freed once.
    values.into_iter().for_each(|value| unsafe { esker_value_free(value) });
    assert_eq!(pinned(), 0);
}
