#![allow(unsafe_code, reason = "exported functions are called")]

use super::{esker_list_free, esker_value_free, give_list, give_text, give_value};
use crate::text::Text;
use esker::internals::stats::clients::bytes;

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
