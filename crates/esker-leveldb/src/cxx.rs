//! Functions that the C++ half, `cxx/leveldb.cc`, needs beyond LevelDB's C interface, to avoid
//! copies. The shared library made of both halves does not export them.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::border::{answer, bytes, object};
use crate::database::{durability, snapshot_of, write};
use crate::handles::leveldb_t;
use crate::options::{leveldb_readoptions_t, leveldb_writeoptions_t};
use std::ffi::{c_char, c_void};

/// Writes a batch that is given in LevelDB's form.
// SAFETY: nobody else uses names that begin like this; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_leveldb_write_rep(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    rep: *const c_char,
    len: usize,
    errptr: *mut *mut c_char,
) {
    answer(errptr, (), || write(object(db, "the database")?, bytes(rep, len), durability(options)));
}

/// Passes the value under a key to a function; 0 if there is none.
// SAFETY: nobody else uses names that begin like this; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_leveldb_get_with(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    take: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
    state: *mut c_void,
    errptr: *mut *mut c_char,
) -> u8 {
    answer(errptr, 0, || {
        let entries = &object(db, "the database")?.entries;
        let key = bytes(key, keylen);
        let hand = |value: &[u8]| {
            if let Some(take) = take {
                // SAFETY: the caller gave function and state together.
                take(state, value.as_ptr().cast(), value.len());
            }
        };
        let found = match snapshot_of(options) {
            None => entries.get_with(key, hand),
            Some(snapshot) => snapshot.get_with(entries, key, hand),
        };
        Ok(u8::from(found?.is_some()))
    })
}
