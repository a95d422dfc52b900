//! Caches, environments, loggers and filter policies, which Esker takes and does not need.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::border::{copy_text, destroy, hand_over};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// A cache. Esker has its own; the capacity of this one is a hint for its size.
#[derive(Debug)]
pub struct leveldb_cache_t {
    pub(crate) capacity: usize,
}

/// An environment: the operating system's files, always.
#[derive(Debug)]
pub struct leveldb_env_t {
    _private: (),
}

/// A logger. No function makes one.
#[derive(Debug)]
pub struct leveldb_logger_t {
    _private: (),
}

/// A filter policy. Esker has its own filters, so only the destructor is ever called.
#[derive(Debug)]
pub struct leveldb_filterpolicy_t {
    state: *mut c_void,
    // SAFETY: this only names a type; what the call needs is told where it is made.
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for leveldb_filterpolicy_t {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the caller gave the two together, and this is the one call of it.
            unsafe { destructor(self.state) }
        }
    }
}

/// Makes a cache of that many bytes.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> *mut leveldb_cache_t {
    hand_over(leveldb_cache_t { capacity })
}

/// Destroys a cache.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_cache_destroy(cache: *mut leveldb_cache_t) {
    destroy(cache);
}

/// Makes an object for the environment, which is the operating system's.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> *mut leveldb_env_t {
    hand_over(leveldb_env_t { _private: () })
}

/// Destroys an environment object.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_env_destroy(env: *mut leveldb_env_t) {
    destroy(env);
}

/// Makes a directory for tests, named by the variable `TEST_TMPDIR`, or for this user under the
/// temporary directory. Release the name with `leveldb_free`; NULL if the directory cannot be made.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_env_get_test_directory(env: *mut leveldb_env_t) -> *mut c_char {
    let _ = env;
    let directory = match std::env::var_os("TEST_TMPDIR") {
        Some(directory) if !directory.is_empty() => std::path::PathBuf::from(directory),
        _ => {
            // SAFETY: it only asks for a number.
            let user = libc::geteuid();
            std::env::temp_dir().join(format!("leveldbtest-{user}"))
        }
    };
    if std::fs::create_dir_all(&directory).is_err() {
        return ptr::null_mut();
    }
    directory.to_str().map_or(ptr::null_mut(), copy_text)
}

/// Makes a filter policy from the program's functions. Only `destructor` is ever called: Esker has
/// its own filters.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    create_filter: Option<
        unsafe extern "C" fn(
            *mut c_void,
            key_array: *const *const c_char,
            key_length_array: *const usize,
            num_keys: c_int,
            filter_length: *mut usize,
        ) -> *mut c_char,
    >,
    key_may_match: Option<
        unsafe extern "C" fn(
            *mut c_void,
            key: *const c_char,
            length: usize,
            filter: *const c_char,
            filter_length: usize,
        ) -> u8,
    >,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut leveldb_filterpolicy_t {
    let _ = (create_filter, key_may_match, name);
    hand_over(leveldb_filterpolicy_t { state, destructor })
}

/// Destroys a filter policy; calls its destructor.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_destroy(policy: *mut leveldb_filterpolicy_t) {
    destroy(policy);
}

/// A Bloom filter policy. Esker's runs have Bloom filters with or without it.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(
    bits_per_key: c_int,
) -> *mut leveldb_filterpolicy_t {
    let _ = bits_per_key;
    hand_over(leveldb_filterpolicy_t { state: ptr::null_mut(), destructor: None })
}

/// Frees what this library returned from `malloc`; the same as `free`.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_free(ptr: *mut c_void) {
    libc::free(ptr);
}

/// The major version of the LevelDB whose interface this is.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    1
}

/// The minor version of the LevelDB whose interface this is.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    23
}
