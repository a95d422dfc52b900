//! Options. Few of LevelDB's change anything here; the others are taken and do nothing.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::border::{destroy, hand_over, object_mut};
use crate::comparator::leveldb_comparator_t;
use crate::handles::leveldb_snapshot_t;
use crate::objects::{leveldb_cache_t, leveldb_env_t, leveldb_filterpolicy_t, leveldb_logger_t};
use std::ffi::c_int;
use std::ptr;

/// Options to open, destroy or repair a database.
#[derive(Debug)]
pub struct leveldb_options_t {
    pub(crate) comparator: *const leveldb_comparator_t,
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) compress: bool,
    pub(crate) write_buffer_bytes: usize,
    /// The capacity of the cache that was given.
    pub(crate) cache_bytes: Option<usize>,
}

impl Default for leveldb_options_t {
    fn default() -> Self {
        Self {
            comparator: ptr::null(),
            create_if_missing: false,
            error_if_exists: false,
            compress: true,
            write_buffer_bytes: 4 << 20,
            cache_bytes: None,
        }
    }
}

/// What to read.
#[derive(Debug)]
pub struct leveldb_readoptions_t {
    pub(crate) snapshot: *const leveldb_snapshot_t,
}

/// How to write.
#[derive(Debug, Default)]
pub struct leveldb_writeoptions_t {
    pub(crate) sync: bool,
}

/// Options with LevelDB's defaults.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> *mut leveldb_options_t {
    hand_over(leveldb_options_t::default())
}

/// Destroys options.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_destroy(options: *mut leveldb_options_t) {
    destroy(options);
}

/// Sets the order of the keys; NULL: byte order.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_comparator(
    options: *mut leveldb_options_t,
    comparator: *mut leveldb_comparator_t,
) {
    if let Some(options) = object_mut(options) {
        options.comparator = comparator;
    }
}

/// Takes a filter policy. Esker has its own filters.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_filter_policy(
    options: *mut leveldb_options_t,
    policy: *mut leveldb_filterpolicy_t,
) {
    let _ = (options, policy);
}

/// Whether open makes a missing database. Default: 0.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_create_if_missing(
    options: *mut leveldb_options_t,
    value: u8,
) {
    if let Some(options) = object_mut(options) {
        options.create_if_missing = value != 0;
    }
}

/// Whether open fails if the database exists. Default: 0.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_error_if_exists(
    options: *mut leveldb_options_t,
    value: u8,
) {
    if let Some(options) = object_mut(options) {
        options.error_if_exists = value != 0;
    }
}

/// Does nothing: Esker always checks.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_paranoid_checks(
    options: *mut leveldb_options_t,
    value: u8,
) {
    let _ = (options, value);
}

/// Takes an environment, of which there is one.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_env(
    options: *mut leveldb_options_t,
    env: *mut leveldb_env_t,
) {
    let _ = (options, env);
}

/// Does nothing: Esker logs through the logger of the Rust program, if there is one.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_info_log(
    options: *mut leveldb_options_t,
    logger: *mut leveldb_logger_t,
) {
    let _ = (options, logger);
}

/// With a cache given, write buffers may take 8 times this, in bytes. Otherwise it does nothing.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_write_buffer_size(
    options: *mut leveldb_options_t,
    size: usize,
) {
    if let Some(options) = object_mut(options) {
        options.write_buffer_bytes = size;
    }
}

/// Does nothing: Esker has few files.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_max_open_files(
    options: *mut leveldb_options_t,
    count: c_int,
) {
    let _ = (options, count);
}

/// Takes a cache. The memory budget then follows from the cache and the write buffers, and is at
/// least 256 MiB; without a cache it is a quarter of the machine's memory.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_cache(
    options: *mut leveldb_options_t,
    cache: *mut leveldb_cache_t,
) {
    if let Some(options) = object_mut(options) {
        // SAFETY: NULL, or a cache of the program (L1).
        options.cache_bytes = cache.as_ref().map(|cache| cache.capacity);
    }
}

/// Does nothing: blocks have about 4 KiB.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_block_size(
    options: *mut leveldb_options_t,
    size: usize,
) {
    let _ = (options, size);
}

/// Does nothing: Esker searches blocks in another way.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_block_restart_interval(
    options: *mut leveldb_options_t,
    interval: c_int,
) {
    let _ = (options, interval);
}

/// Does nothing: Esker chooses the size of files.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_max_file_size(
    options: *mut leveldb_options_t,
    size: usize,
) {
    let _ = (options, size);
}

/// 0: data is never compressed; 1 (the default): settled data is compressed, but not by Snappy.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_compression(
    options: *mut leveldb_options_t,
    compression: c_int,
) {
    if let Some(options) = object_mut(options) {
        options.compress = compression != 0;
    }
}

/// Read options with LevelDB's defaults.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> *mut leveldb_readoptions_t {
    hand_over(leveldb_readoptions_t { snapshot: ptr::null() })
}

/// Destroys read options.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_destroy(options: *mut leveldb_readoptions_t) {
    destroy(options);
}

/// Does nothing: Esker always checks.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_set_verify_checksums(
    options: *mut leveldb_readoptions_t,
    value: u8,
) {
    let _ = (options, value);
}

/// Does nothing: scans do not evict blocks that are read often.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_set_fill_cache(
    options: *mut leveldb_readoptions_t,
    value: u8,
) {
    let _ = (options, value);
}

/// Reads as of a snapshot; NULL: as of now.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_set_snapshot(
    options: *mut leveldb_readoptions_t,
    snapshot: *const leveldb_snapshot_t,
) {
    if let Some(options) = object_mut(options) {
        options.snapshot = snapshot;
    }
}

/// Write options with LevelDB's defaults.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> *mut leveldb_writeoptions_t {
    hand_over(leveldb_writeoptions_t::default())
}

/// Destroys write options.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writeoptions_destroy(options: *mut leveldb_writeoptions_t) {
    destroy(options);
}

/// Whether a write returns only when it survives power loss. Default: 0, it survives the process.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writeoptions_set_sync(
    options: *mut leveldb_writeoptions_t,
    value: u8,
) {
    if let Some(options) = object_mut(options) {
        options.sync = value != 0;
    }
}
