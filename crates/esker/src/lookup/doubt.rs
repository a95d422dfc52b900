//! Whether a thread's point reads mostly find nothing.
//!
//! A read that gets as far as a base mostly finds its key there, so the filter of the base would only cost it a cache line.
//! Where keys are asked for that are not there (a set that is filled once per key, a join with few matches), the filter
//! saves the search of an index and of a block instead. Each thread notes what its timed reads found, one in about 128, and
//! asks the filters of bases first while most of them found nothing.
//!
//! 1. A read that is not timed only loads the note; nothing that threads share is written.
//! 2. A found key weighs twice as much as one that is absent, so that where half of the keys are there, filters of bases are
//!    seldom asked first.

use std::cell::Cell;

/// The note's highest value.
const HIGHEST: u8 = 8;
/// From here on filters of bases are asked first.
const HIGH: u8 = 4;

thread_local! {
    static DOUBT: Cell<u8> = const { Cell::new(0) };
}

/// Whether the calling thread should ask the filter of a base before its index.
#[inline]
pub fn is_high() -> bool {
    DOUBT.with(Cell::get) >= HIGH
}

/// Notes what a timed read of the calling thread found.
pub fn note(found: bool) {
    // Seeded: filters of bases are asked for ever once many keys were absent.
    let found = found && !bug!("lookup_doubt_never_ends");
    let next = |doubt: u8| if found { doubt.saturating_sub(2) } else { (doubt + 1).min(HIGHEST) };
    DOUBT.with(|doubt| doubt.set(next(doubt.get())));
}
