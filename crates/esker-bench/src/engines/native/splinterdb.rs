//! SplinterDB's C interface, as its headers `splinterdb/splinterdb.h`, `data.h` and
//! `default_data_config.h` declare it at revision `d2173e0e` of June 2026.
//!
//! The interface has no version: functions got and lost parameters under the same names, last in June
//! 2026, and a library cannot be asked which it has. A library that lacks one of the functions below is
//! refused when it is loaded. `splinterdb_optimize` is the newest of them and came after all these
//! changes, so older libraries are refused. A newer library may differ again: compare the headers.
//!
//! Structures grow from one revision to the next. Only the four required fields at the head of the
//! configuration and the numbers of background threads are set here. The rest is zeros, which mean the
//! defaults, more of them than the structure has.
//!
//! SplinterDB registers a thread when it first calls, and forgets it when it ends.

#![allow(unsafe_code, reason = "calls through a C interface")]

use super::library::{c_path, functions, load, text};
use crate::{Error, Result};
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::num::NonZero;
use std::path::Path;
use std::{ptr, slice};

type Handle = *mut c_void;

/// `slice`: a range of bytes, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
struct Slice {
    length: u64,
    data: *const c_void,
}

impl Slice {
    const NULL: Self = Self { length: 0, data: ptr::null() };

    fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, data: bytes.as_ptr().cast() }
    }
}

/// Background threads for memtables: the header asks for one for ten threads that insert. For everything
/// else it asks for one or two for each thread that inserts; here there is one for each processor, at
/// least two. Without any, the threads that write would do all the work.
pub const MEMTABLE_THREADS: u64 = 1;

/// The head of `splinterdb_config`, and room for all that follows: 208 bytes in all at the revision.
#[repr(C)]
struct Config {
    filename: *const c_char,
    cache_size: u64,
    disk_size: u64,
    data_cfg: *mut DataConfig,
    /// Heap, shared memory, pages, input and output, cache.
    defaults: [u64; 10],
    memtable_threads: u64,
    other_threads: u64,
    more_defaults: [u64; 116],
}

/// `data_config`, which the library fills: room for more than its six pointers.
#[repr(C, align(16))]
struct DataConfig([u64; 512]);

/// `splinterdb_lookup_result`, which points into itself. As it may hold what its thread has locked, it
/// does not leave the thread: pointers see to that.
#[repr(C)]
struct Lookup([*mut c_void; 20]);

/// `SPLINTERDB_LOOKUP_VALUE`: a lookup that wants the value.
const LOOKUP_VALUE: u64 = 0;

/// `splinterdb_notification`, which the library fills.
#[repr(C, align(8))]
struct Notification([u64; 32]);

/// `comparison`: where an iterator begins. Without a key, at the last entry or at the first.
type Comparison = c_int;
const LESS_THAN_OR_EQUAL: Comparison = 1;
const GREATER_THAN_OR_EQUAL: Comparison = 3;

functions! {
    /// What the adapter uses of the headers.
    struct Functions {
        splinterdb_get_version: fn() -> *const c_char;
        default_data_config_init: fn(*mut DataConfig);
        splinterdb_create: fn(*const Config, *mut Handle) -> c_int;
        splinterdb_open: fn(*const Config, *mut Handle) -> c_int;
        splinterdb_close: fn(*mut Handle);
        splinterdb_insert: fn(Handle, Slice, Slice, *mut Lookup) -> c_int;
        splinterdb_delete: fn(Handle, Slice, *mut Lookup) -> c_int;
        splinterdb_optimize: fn(Handle, Slice, Slice, bool, *mut Notification) -> c_int;
        splinterdb_notification_init_blocking: fn(*mut Notification);
        splinterdb_notification_deinit: fn(*mut Notification);
        splinterdb_lookup_result_init: fn(Handle, *mut Lookup, u64, u64, *mut c_char);
        splinterdb_lookup_result_deinit: fn(*mut Lookup);
        splinterdb_lookup_found: fn(*const Lookup) -> bool;
        splinterdb_lookup_result_value: fn(*const Lookup, *mut Slice) -> c_int;
        splinterdb_lookup: fn(Handle, Slice, *mut Lookup) -> c_int;
        splinterdb_iterator_init: fn(Handle, *mut Handle, Comparison, Slice) -> c_int;
        splinterdb_iterator_deinit: fn(Handle);
        splinterdb_iterator_valid: fn(Handle) -> bool;
        splinterdb_iterator_can_prev: fn(Handle) -> bool;
        splinterdb_iterator_can_next: fn(Handle) -> bool;
        splinterdb_iterator_next: fn(Handle);
        splinterdb_iterator_prev: fn(Handle);
        splinterdb_iterator_get_current: fn(Handle, *mut Slice, *mut Slice);
        splinterdb_iterator_status: fn(Handle) -> c_int;
    }
}

fn outcome(what: &str, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    Err(Error::engine("splinterdb", what, std::io::Error::from_raw_os_error(code)))
}

/// A loaded library.
pub struct Library {
    functions: Functions,
}

impl Library {
    /// Loads a library.
    pub fn load<S: AsRef<OsStr>>(name: S) -> Result<Self, String> {
        Ok(Self { functions: Functions::of(load(&[name])?)? })
    }

    /// What the library calls its version: the tag or the revision that it was built from.
    pub fn version(&self) -> String {
        // SAFETY: the library answers with a text that it keeps.
        let version =
            unsafe { text((self.functions.splinterdb_get_version)()) }.unwrap_or_default();
        version.trim_start_matches("splinterdb_build_version ").into()
    }

    /// Opens the file, or makes it. `disk` bytes are the most that it may take; an existing file keeps
    /// what it was made with.
    pub fn open(self, file: &Path, cache: u64, disk: u64) -> Result<Database> {
        let functions = self.functions;
        let exists = file.exists();
        let file: CString = c_path(file)?;
        let mut data = Box::new(DataConfig([0; 512]));
        let config = Config {
            filename: file.as_ptr(),
            cache_size: cache,
            disk_size: if exists { 0 } else { disk },
            data_cfg: &raw mut *data,
            defaults: [0; 10],
            memtable_threads: MEMTABLE_THREADS,
            other_threads: std::thread::available_parallelism().map_or(1, NonZero::get).max(2)
                as u64,
            more_defaults: [0; 116],
        };
        let mut handle = ptr::null_mut();
        // SAFETY: both structures are at least as large as the library's; the first is not retained,
        // the second lives in its box as long as the database.
        let code = unsafe {
            (functions.default_data_config_init)(&raw mut *data);
            let open = if exists { functions.splinterdb_open } else { functions.splinterdb_create };
            open(&raw const config, &raw mut handle)
        };
        outcome("open", code)?;
        Ok(Database { functions, handle, _data: data })
    }
}

/// An open database. Dropping it closes it.
pub struct Database {
    functions: Functions,
    handle: Handle,
    _data: Box<DataConfig>,
}

// SAFETY: SplinterDB's header lets threads share a database, and registers them itself.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the database is open and closed once; results and iterators borrow it and are gone.
        unsafe { (self.functions.splinterdb_close)(&raw mut self.handle) };
    }
}

impl Database {
    /// Writes an entry.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let insert = self.functions.splinterdb_insert;
        let (key, value) = (Slice::of(key), Slice::of(value));
        // SAFETY: the database is open, the library copies both ranges, and nobody asks for the value
        // that was there before.
        outcome("write", unsafe { insert(self.handle, key, value, ptr::null_mut()) })
    }

    /// Deletes an entry.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let delete = self.functions.splinterdb_delete;
        // SAFETY: as above.
        outcome("delete", unsafe { delete(self.handle, Slice::of(key), ptr::null_mut()) })
    }

    /// Flushes what has left the buffer for writes down to the leaves, compacts them, and waits for it.
    pub fn optimize(&self) -> Result<()> {
        let f = &self.functions;
        let mut done = Notification([0; 32]);
        let done = &raw mut done;
        // SAFETY: the database is open, and the call returns when the notification is done with.
        let code = unsafe {
            (f.splinterdb_notification_init_blocking)(done);
            let code = (f.splinterdb_optimize)(self.handle, Slice::NULL, Slice::NULL, true, done);
            (f.splinterdb_notification_deinit)(done);
            code
        };
        outcome("compaction", code)
    }

    /// Room for the values that a session reads, used again and again.
    pub fn results(&self) -> Results<'_> {
        let mut lookup = Box::new(Lookup([ptr::null_mut(); 20]));
        // SAFETY: the room is as large as the header says and stays in its box; the library manages
        // what it points to.
        unsafe {
            let init = self.functions.splinterdb_lookup_result_init;
            init(self.handle, &raw mut *lookup, LOOKUP_VALUE, 0, ptr::null_mut());
        }
        Results { database: self, lookup }
    }

    /// An iterator at the first entry at or behind `from`, or at the first of all; backwards, at the
    /// last at or before it, or at the last of all.
    pub fn iter(&self, from: Option<&[u8]>, back: bool) -> Result<Iter<'_>> {
        let begin = if back { LESS_THAN_OR_EQUAL } else { GREATER_THAN_OR_EQUAL };
        let mut handle = ptr::null_mut();
        let from = from.map_or(Slice::NULL, Slice::of);
        let init = self.functions.splinterdb_iterator_init;
        // SAFETY: the database is open, and the key lives for the call.
        outcome("seek", unsafe { init(self.handle, &raw mut handle, begin, from) })?;
        Ok(Iter { database: self, handle })
    }
}

/// Room for values that are read.
pub struct Results<'a> {
    database: &'a Database,
    lookup: Box<Lookup>,
}

impl Results<'_> {
    /// Reads one entry and lends its value to `found`.
    pub fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (f, handle) = (&self.database.functions, self.database.handle);
        let lookup = &raw mut *self.lookup;
        let mut value = Slice::NULL;
        // SAFETY: the room belongs to this database and this thread; what the value points to stays
        // until the next lookup.
        unsafe {
            outcome("read", (f.splinterdb_lookup)(handle, Slice::of(key), lookup))?;
            if !(f.splinterdb_lookup_found)(lookup) {
                return Ok(false);
            }
            outcome("read", (f.splinterdb_lookup_result_value)(lookup, &raw mut value))?;
            found(lent(&value));
        }
        Ok(true)
    }
}

impl Drop for Results<'_> {
    fn drop(&mut self) {
        let f = &self.database.functions;
        // SAFETY: it was initialised and is released once.
        unsafe { (f.splinterdb_lookup_result_deinit)(&raw mut *self.lookup) };
    }
}

/// What a library lent.
///
/// # Safety
///
/// The slice is empty or points at as many bytes as it says, which stay for `'a`.
unsafe fn lent<'a>(value: &Slice) -> &'a [u8] {
    if value.length == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(value.data.cast(), value.length as usize) }
}

/// A position among the entries, or beside them. A thread that holds one may have to wait if it writes.
pub struct Iter<'a> {
    database: &'a Database,
    handle: Handle,
}

impl Iter<'_> {
    fn functions(&self) -> &Functions {
        &self.database.functions
    }

    /// Goes one entry ahead or back, at most to beside the last or the first.
    pub fn step(&mut self, back: bool) {
        let f = self.functions();
        // SAFETY: the iterator lives, and is asked whether it can.
        unsafe {
            if back && (f.splinterdb_iterator_can_prev)(self.handle) {
                (f.splinterdb_iterator_prev)(self.handle);
            } else if !back && (f.splinterdb_iterator_can_next)(self.handle) {
                (f.splinterdb_iterator_next)(self.handle);
            }
        }
    }

    /// The entry under it.
    pub fn entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let f = self.functions();
        let (mut key, mut value) = (Slice::NULL, Slice::NULL);
        // SAFETY: the iterator lives and is on an entry before that is asked for; what it lends stays
        // until it moves, which takes it exclusively.
        unsafe {
            let there = (f.splinterdb_iterator_valid)(self.handle);
            if there {
                (f.splinterdb_iterator_get_current)(self.handle, &raw mut key, &raw mut value);
            }
            // The entry is no entry if its value could not be read.
            outcome("iteration", (f.splinterdb_iterator_status)(self.handle))?;
            Ok(there.then(|| (lent(&key), lent(&value))))
        }
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: the iterator lives and is released once.
        unsafe { (self.functions().splinterdb_iterator_deinit)(self.handle) };
    }
}
