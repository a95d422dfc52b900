//! LevelDB's C interface, as its header `leveldb/c.h` declares it.
//!
//! Other libraries have the same interface: HyperLevelDB and others kept it, and so does Esker's drop-in
//! library. All databases that a [`Library`] opened share its table of functions.

#![allow(unsafe_code, reason = "calls through a C interface")]

use super::library::{c_path, functions, load, text};
use crate::{Error, Result};
use std::ffi::{CString, OsStr, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::sync::Arc;
use std::{ptr, slice};

type Handle = *mut c_void;
type Bytes = *const c_char;
type Failure = *mut *mut c_char;

functions! {
    /// What the adapters use of `leveldb/c.h`.
    struct Functions {
        leveldb_open: fn(Handle, Bytes, Failure) -> Handle;
        leveldb_close: fn(Handle);
        leveldb_put: fn(Handle, Handle, Bytes, usize, Bytes, usize, Failure);
        leveldb_delete: fn(Handle, Handle, Bytes, usize, Failure);
        leveldb_write: fn(Handle, Handle, Handle, Failure);
        leveldb_get: fn(Handle, Handle, Bytes, usize, *mut usize, Failure) -> *mut c_char;
        leveldb_create_iterator: fn(Handle, Handle) -> Handle;
        leveldb_property_value: fn(Handle, Bytes) -> *mut c_char;
        leveldb_compact_range: fn(Handle, Bytes, usize, Bytes, usize);
        leveldb_iter_destroy: fn(Handle);
        leveldb_iter_valid: fn(Handle) -> c_uchar;
        leveldb_iter_seek_to_first: fn(Handle);
        leveldb_iter_seek_to_last: fn(Handle);
        leveldb_iter_seek: fn(Handle, Bytes, usize);
        leveldb_iter_next: fn(Handle);
        leveldb_iter_prev: fn(Handle);
        leveldb_iter_key: fn(Handle, *mut usize) -> Bytes;
        leveldb_iter_value: fn(Handle, *mut usize) -> Bytes;
        leveldb_iter_get_error: fn(Handle, Failure);
        leveldb_writebatch_create: fn() -> Handle;
        leveldb_writebatch_destroy: fn(Handle);
        leveldb_writebatch_clear: fn(Handle);
        leveldb_writebatch_put: fn(Handle, Bytes, usize, Bytes, usize);
        leveldb_writebatch_delete: fn(Handle, Bytes, usize);
        leveldb_options_create: fn() -> Handle;
        leveldb_options_destroy: fn(Handle);
        leveldb_options_set_create_if_missing: fn(Handle, c_uchar);
        leveldb_options_set_cache: fn(Handle, Handle);
        leveldb_options_set_filter_policy: fn(Handle, Handle);
        leveldb_cache_create_lru: fn(usize) -> Handle;
        leveldb_cache_destroy: fn(Handle);
        leveldb_filterpolicy_create_bloom: fn(c_int) -> Handle;
        leveldb_filterpolicy_destroy: fn(Handle);
        leveldb_readoptions_create: fn() -> Handle;
        leveldb_readoptions_destroy: fn(Handle);
        leveldb_writeoptions_create: fn() -> Handle;
        leveldb_writeoptions_destroy: fn(Handle);
        leveldb_writeoptions_set_sync: fn(Handle, c_uchar);
        leveldb_free: fn(*mut c_void);
        leveldb_major_version: fn() -> c_int;
        leveldb_minor_version: fn() -> c_int;
    }
}

impl Functions {
    /// What a call left in its last argument.
    fn outcome(&self, what: &str, failure: *mut c_char) -> Result<()> {
        // SAFETY: a failure is null or a text that the library allocated, which is read before it is
        // freed, and freed once.
        match unsafe { text(failure) } {
            None => Ok(()),
            Some(cause) => {
                // SAFETY: as above.
                unsafe { (self.leveldb_free)(failure.cast()) };
                Err(Error::engine("leveldb", what, cause))
            }
        }
    }
}

/// A loaded library.
#[derive(Clone)]
pub struct Library {
    functions: Arc<Functions>,
}

impl Library {
    /// Loads the first library of `names` that there is.
    pub fn load<S: AsRef<OsStr>>(names: &[S]) -> Result<Self, String> {
        let functions = Functions::of(load(names)?)?;
        Ok(Self { functions: Arc::new(functions) })
    }

    /// The version of the interface that the library says it has.
    pub fn version(&self) -> (i32, i32) {
        let f = &self.functions;
        // SAFETY: neither function takes anything.
        unsafe { ((f.leveldb_major_version)(), (f.leveldb_minor_version)()) }
    }

    /// Opens or makes a database, with a cache of so many bytes and a Bloom filter of so many bits a
    /// key, or the library's defaults.
    pub fn open(
        &self,
        dir: &Path,
        cache_bytes: Option<usize>,
        bloom_bits: Option<i32>,
    ) -> Result<Database> {
        let f = &self.functions;
        let path = c_path(dir)?;
        // SAFETY: every object is used with the library that made it, while it lives. The cache and
        // the filter outlive the database, which `Database` sees to; the options may go before it.
        unsafe {
            let options = (f.leveldb_options_create)();
            (f.leveldb_options_set_create_if_missing)(options, 1);
            let cache = cache_bytes.map_or(ptr::null_mut(), |bytes| {
                let cache = (f.leveldb_cache_create_lru)(bytes);
                (f.leveldb_options_set_cache)(options, cache);
                cache
            });
            let filter = bloom_bits.map_or(ptr::null_mut(), |bits| {
                let filter = (f.leveldb_filterpolicy_create_bloom)(bits);
                (f.leveldb_options_set_filter_policy)(options, filter);
                filter
            });
            let mut failure = ptr::null_mut();
            let db = (f.leveldb_open)(options, path.as_ptr(), &raw mut failure);
            (f.leveldb_options_destroy)(options);
            let read = (f.leveldb_readoptions_create)();
            let [unsynced, synced] = [0, 1].map(|sync| {
                let write = (f.leveldb_writeoptions_create)();
                (f.leveldb_writeoptions_set_sync)(write, sync);
                write
            });
            let functions = Arc::clone(f);
            let database = Database { functions, db, cache, filter, read, unsynced, synced };
            f.outcome("open", failure)?;
            if db.is_null() {
                return Err(Error::engine("leveldb", "open", "the library gave no database"));
            }
            Ok(database)
        }
    }
}

/// An open database. Dropping it closes it.
pub struct Database {
    functions: Arc<Functions>,
    db: Handle,
    cache: Handle,
    filter: Handle,
    read: Handle,
    unsynced: Handle,
    synced: Handle,
}

// SAFETY: LevelDB's documentation lets threads share a database without locks of their own; options
// are only read once they are set.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        let f = &self.functions;
        // SAFETY: each was made by this library and is destroyed once; iterators and batches borrow
        // the database, so none is left. The cache and the filter go after the database.
        unsafe {
            if !self.db.is_null() {
                (f.leveldb_close)(self.db);
            }
            if !self.cache.is_null() {
                (f.leveldb_cache_destroy)(self.cache);
            }
            if !self.filter.is_null() {
                (f.leveldb_filterpolicy_destroy)(self.filter);
            }
            (f.leveldb_readoptions_destroy)(self.read);
            (f.leveldb_writeoptions_destroy)(self.unsynced);
            (f.leveldb_writeoptions_destroy)(self.synced);
        }
    }
}

impl Database {
    fn write_options(&self, sync: bool) -> Handle {
        if sync { self.synced } else { self.unsynced }
    }

    /// Writes one entry.
    pub fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<()> {
        let mut failure = ptr::null_mut();
        // SAFETY: the library copies both ranges, which live for the call.
        unsafe {
            (self.functions.leveldb_put)(
                self.db,
                self.write_options(sync),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut failure,
            );
        }
        self.functions.outcome("write", failure)
    }

    /// Deletes one entry.
    pub fn delete(&self, key: &[u8], sync: bool) -> Result<()> {
        let mut failure = ptr::null_mut();
        let options = self.write_options(sync);
        // SAFETY: the library copies the key, which lives for the call.
        unsafe {
            let delete = self.functions.leveldb_delete;
            delete(self.db, options, key.as_ptr().cast(), key.len(), &raw mut failure);
        }
        self.functions.outcome("delete", failure)
    }

    /// Reads one entry and lends its value to `found`.
    pub fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let f = &self.functions;
        let mut failure = ptr::null_mut();
        let mut length = 0;
        // SAFETY: the key lives for the call; the value is as long as the library says and is freed
        // once, after it was lent. A panic of `found` leaks it.
        unsafe {
            let get = f.leveldb_get;
            let key = (key.as_ptr().cast(), key.len());
            let value = get(self.db, self.read, key.0, key.1, &raw mut length, &raw mut failure);
            f.outcome("read", failure)?;
            if value.is_null() {
                return Ok(false);
            }
            found(slice::from_raw_parts(value.cast(), length));
            (f.leveldb_free)(value.cast());
        }
        Ok(true)
    }

    /// A new batch.
    pub fn batch(&self) -> Batch<'_> {
        // SAFETY: the function takes nothing.
        let handle = unsafe { (self.functions.leveldb_writebatch_create)() };
        Batch { database: self, handle }
    }

    /// A new iterator, on no entry.
    pub fn iter(&self) -> Iter<'_> {
        // SAFETY: the database and the options live longer than the iterator, which borrows them.
        let handle = unsafe { (self.functions.leveldb_create_iterator)(self.db, self.read) };
        Iter { database: self, handle }
    }

    /// Compacts everything.
    pub fn compact(&self) {
        // SAFETY: null pointers stand for the first and the last key.
        unsafe { (self.functions.leveldb_compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
    }

    /// Compacts the range that begins and ends with `key`. The memtable is written out first, even
    /// if no file holds the key.
    pub fn compact_at(&self, key: &[u8]) {
        let compact = self.functions.leveldb_compact_range;
        let (at, length) = (key.as_ptr().cast(), key.len());
        // SAFETY: the key lives for the call.
        unsafe { compact(self.db, at, length, at, length) };
    }

    /// A property of the database as text, if the library has it.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends with a zero byte; the answer is null or a text that is copied and
        // then freed once.
        unsafe {
            let value = (self.functions.leveldb_property_value)(self.db, name.as_ptr());
            let copy = text(value)?;
            (self.functions.leveldb_free)(value.cast());
            Some(copy)
        }
    }
}

/// Writes that are made together.
pub struct Batch<'a> {
    database: &'a Database,
    handle: Handle,
}

impl Batch<'_> {
    /// Adds a write.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let put = self.database.functions.leveldb_writebatch_put;
        let (key, value) = ((key.as_ptr().cast(), key.len()), (value.as_ptr().cast(), value.len()));
        // SAFETY: the library copies both ranges, which live for the call.
        unsafe { put(self.handle, key.0, key.1, value.0, value.1) };
    }

    /// Adds a deletion.
    pub fn delete(&mut self, key: &[u8]) {
        let delete = self.database.functions.leveldb_writebatch_delete;
        // SAFETY: the library copies the key, which lives for the call.
        unsafe { delete(self.handle, key.as_ptr().cast(), key.len()) };
    }

    /// Makes the writes and forgets them.
    pub fn commit(&mut self, sync: bool) -> Result<()> {
        let f = &self.database.functions;
        let mut failure = ptr::null_mut();
        let options = self.database.write_options(sync);
        // SAFETY: all three were made by this library and live.
        unsafe {
            (f.leveldb_write)(self.database.db, options, self.handle, &raw mut failure);
            (f.leveldb_writebatch_clear)(self.handle);
        }
        f.outcome("write of a batch", failure)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by this library and is destroyed once.
        unsafe { (self.database.functions.leveldb_writebatch_destroy)(self.handle) };
    }
}

/// A position among the entries.
pub struct Iter<'a> {
    database: &'a Database,
    handle: Handle,
}

impl Iter<'_> {
    /// Goes to the first entry, or to the last.
    pub fn seek_to_end(&mut self, last: bool) {
        let f = &self.database.functions;
        let seek = if last { f.leveldb_iter_seek_to_last } else { f.leveldb_iter_seek_to_first };
        // SAFETY: the iterator lives.
        unsafe { seek(self.handle) };
    }

    /// Goes to the first entry at or behind `key`.
    pub fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator lives, and the key for the call.
        unsafe {
            let seek = self.database.functions.leveldb_iter_seek;
            seek(self.handle, key.as_ptr().cast(), key.len());
        }
    }

    /// Goes one entry ahead, or back. Nothing happens if there is no entry under it.
    pub fn step(&mut self, back: bool) {
        let f = &self.database.functions;
        if self.valid() {
            let step = if back { f.leveldb_iter_prev } else { f.leveldb_iter_next };
            // SAFETY: the iterator lives and is on an entry, as the library asks.
            unsafe { step(self.handle) };
        }
    }

    fn valid(&self) -> bool {
        // SAFETY: the iterator lives.
        unsafe { (self.database.functions.leveldb_iter_valid)(self.handle) != 0 }
    }

    /// The entry under it.
    pub fn entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let f = &self.database.functions;
        if !self.valid() {
            let mut failure = ptr::null_mut();
            // SAFETY: the iterator lives.
            unsafe { (f.leveldb_iter_get_error)(self.handle, &raw mut failure) };
            return f.outcome("iteration", failure).map(|()| None);
        }
        let mut length = 0;
        // SAFETY: the iterator is on an entry; what it lends stays in place until it moves, which
        // takes it exclusively.
        unsafe {
            let key = (f.leveldb_iter_key)(self.handle, &raw mut length);
            let key = slice::from_raw_parts(key.cast(), length);
            let value = (f.leveldb_iter_value)(self.handle, &raw mut length);
            Ok(Some((key, slice::from_raw_parts(value.cast(), length))))
        }
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by this library and is destroyed once.
        unsafe { (self.database.functions.leveldb_iter_destroy)(self.handle) };
    }
}
