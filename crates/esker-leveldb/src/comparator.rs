//! Custom comparators of the program.
//!
//! 1. The name is read once per open, and copied; this copy is stored and checked.
//! 2. A database holds the program's function and state. If the program destroys the comparator
//!    while it is still in use (L6), comparing panics. The engine contains the panic: it takes no
//!    more writes and returns errors.

#![allow(unsafe_code, reason = "these are exported functions, and they call the program's")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::border::{destroy, hand_over, text};
use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

// SAFETY: these only name types; what calls need is told where they are made.
type Destructor = unsafe extern "C" fn(*mut c_void);
type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// The name of the order that a database has without a comparator.
pub(crate) const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// The longest name that is stored unchanged.
const NAME_BYTES_MAX: usize = 255;

/// A comparator of the program.
#[derive(Debug)]
pub struct leveldb_comparator_t {
    state: *mut c_void,
    destructor: Option<Destructor>,
    compare: Option<Compare>,
    name: Option<Name>,
    destroyed: Arc<AtomicBool>,
}

impl Drop for leveldb_comparator_t {
    fn drop(&mut self) {
        self.destroyed.store(true, Memory::Release);
        if let Some(destructor) = self.destructor {
            // SAFETY: the caller gave the two together, and this is the one call of it.
            unsafe { destructor(self.state) }
        }
    }
}

/// A comparator as an open database knows it.
pub(crate) struct Order {
    name: String,
    state: *mut c_void,
    compare: Compare,
    destroyed: Arc<AtomicBool>,
}

// SAFETY: LevelDB calls comparators from any thread, and the program promises to bear it (L4).
unsafe impl Send for Order {}
// SAFETY: as above.
unsafe impl Sync for Order {}

impl leveldb_comparator_t {
    /// The comparator for a database; `None` if a function is missing.
    pub(crate) fn order(&self) -> Option<Order> {
        let (compare, name) = (self.compare?, self.name?);
        // SAFETY: the caller gave function and state together; the text ends with a zero byte.
        let name = unsafe { text(name(self.state)) }?;
        let name = storable(name.to_bytes());
        Some(Order { name, state: self.state, compare, destroyed: self.destroyed.clone() })
    }
}

impl esker::Comparator for Order {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        assert!(
            !self.destroyed.load(Memory::Acquire),
            "comparator {:?} was destroyed before the database was closed",
            self.name
        );
        let (a_data, b_data) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: the program gave function and state together, both are still there (L6), and the
        // function gets the lengths of the bytes.
        unsafe { (self.compare)(self.state, a_data, a.len(), b_data, b.len()) }.cmp(&0)
    }
}

/// A name as it can be stored: UTF-8 of 1 to 255 bytes. Other bytes are written as `\xNN`, and the
/// tail of a long name is replaced by its hash, so that different names stay different.
fn storable(name: &[u8]) -> String {
    let mut text = match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.escape_ascii().to_string(),
    };
    if text.is_empty() {
        text.push_str("(no name)");
    }
    if text.len() > NAME_BYTES_MAX {
        let hash = xxhash_rust::xxh3::xxh3_128(name);
        let mut kept = NAME_BYTES_MAX - 36;
        while !text.is_char_boundary(kept) {
            kept -= 1;
        }
        text.truncate(kept);
        text.push_str(&format!("...{hash:032x}"));
    }
    text
}

/// Makes a comparator from the program's functions. `name` is called at each open; its result is
/// stored in a new database and checked in an existing one.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    compare: Option<
        unsafe extern "C" fn(
            *mut c_void,
            a: *const c_char,
            alen: usize,
            b: *const c_char,
            blen: usize,
        ) -> c_int,
    >,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut leveldb_comparator_t {
    hand_over(leveldb_comparator_t { state, destructor, compare, name, destroyed: Arc::default() })
}

/// Destroys a comparator; calls its destructor.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_destroy(comparator: *mut leveldb_comparator_t) {
    destroy(comparator);
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, storable};

    #[test]
    fn every_name_can_be_stored_and_different_names_stay_different() {
        assert_eq!(storable(b"reverse"), "reverse");
        assert_eq!(storable(b"a\xff"), "a\\xff");
        assert_eq!(storable(b""), "(no name)");
        let long = |last: u8| storable(&[&[b'x'; 400][..], &[last]].concat());
        assert_ne!(long(b'1'), long(b'2'));
        let wide = "\u{1f980}".repeat(100);
        for name in [long(b'1'), storable(wide.as_bytes()), storable(&[0xfe; 300])] {
            assert!(name.len() <= NAME_BYTES_MAX, "{name}");
        }
    }
}
