//! SplinterDB's C interface, as its headers `splinterdb/splinterdb.h` and `default_data_config.h` declare
//! it since iterators walk in both directions.
//!
//! Versions are tags of its repository, and structures grow from one to the next. Only the four
//! required fields at the head of its configuration are set here; the rest is a block of zeros, which
//! mean the defaults, longer than the structure is in any version. A library that lacks one of the
//! functions below is refused when it is loaded.
//!
//! A thread has to be registered with a database once, while it uses it; the thread that opened the
//! database is registered from the start. [`Registration`] does this for every thread.

#![allow(unsafe_code, reason = "calls through a C interface")]

use super::library::{c_path, functions, load, text};
use crate::{Error, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The head of `splinterdb_config`, and room for all that follows in any version.
#[repr(C)]
struct Config {
    filename: *const c_char,
    cache_size: u64,
    disk_size: u64,
    data_config: *mut c_void,
    defaults: [u64; 128],
}

/// `data_config`, which the library fills: room for it in any version.
#[repr(C, align(16))]
struct DataConfig([u64; 512]);

/// `splinterdb_lookup_result`.
#[repr(C, align(8))]
struct Lookup([usize; 6]);

functions! {
    /// What the adapter uses of the headers.
    struct Functions {
        splinterdb_get_version: fn() -> *const c_char;
        default_data_config_init: fn(u64, *mut DataConfig);
        splinterdb_create: fn(*mut Config, *mut Handle) -> c_int;
        splinterdb_open: fn(*mut Config, *mut Handle) -> c_int;
        splinterdb_close: fn(*mut Handle);
        splinterdb_register_thread: fn(Handle);
        splinterdb_deregister_thread: fn(Handle);
        splinterdb_insert: fn(Handle, Slice, Slice) -> c_int;
        splinterdb_delete: fn(Handle, Slice) -> c_int;
        splinterdb_lookup_result_init: fn(Handle, *mut Lookup, u64, *mut c_char);
        splinterdb_lookup_result_deinit: fn(*mut Lookup);
        splinterdb_lookup_found: fn(*const Lookup) -> bool;
        splinterdb_lookup_result_value: fn(*const Lookup, *mut Slice) -> c_int;
        splinterdb_lookup: fn(Handle, Slice, *mut Lookup) -> c_int;
        splinterdb_iterator_init: fn(Handle, *mut Handle, Slice) -> c_int;
        splinterdb_iterator_deinit: fn(Handle);
        splinterdb_iterator_valid: fn(Handle) -> bool;
        splinterdb_iterator_can_prev: fn(Handle) -> bool;
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

    /// What the library calls its version.
    pub fn version(&self) -> String {
        // SAFETY: the library answers with a text that it keeps.
        unsafe { text((self.functions.splinterdb_get_version)()) }.unwrap_or_default()
    }

    /// Opens the file, or makes it. `disk` bytes are the most that it may take.
    pub fn open(self, file: &Path, key_bytes: u64, cache: u64, disk: u64) -> Result<Database> {
        let functions = self.functions;
        let exists = file.exists();
        let file: CString = c_path(file)?;
        let mut data = Box::new(DataConfig([0; 512]));
        let mut config = Config {
            filename: file.as_ptr(),
            cache_size: cache,
            disk_size: disk,
            data_config: ptr::from_mut(&mut *data).cast(),
            defaults: [0; 128],
        };
        let mut handle = ptr::null_mut();
        // SAFETY: both structures are at least as large as the library's; the first is not retained,
        // the second lives in its box as long as the database.
        let code = unsafe {
            (functions.default_data_config_init)(key_bytes, &raw mut *data);
            let open = if exists { functions.splinterdb_open } else { functions.splinterdb_create };
            open(&raw mut config, &raw mut handle)
        };
        outcome("open", code)?;
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let database = Database { functions, handle, number, _data: data };
        // The thread that opened a database is registered from the start, and stays.
        REGISTERED.with_borrow_mut(|threads| threads.insert(number, 1));
        Ok(database)
    }
}

thread_local! {
    /// By the number of a database, how often this thread asked to be registered.
    static REGISTERED: RefCell<HashMap<u64, u32>> = RefCell::default();
}

/// An open database. Dropping it closes it.
pub struct Database {
    functions: Functions,
    handle: Handle,
    /// No two of a process have the same.
    number: u64,
    _data: Box<DataConfig>,
}

// SAFETY: SplinterDB's header lets registered threads share a database; everything that calls it holds
// a registration of its thread.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Registers this thread for as long as the answer lives, which cannot leave the thread.
    pub fn register(&self) -> Rc<Registration<'_>> {
        self.enter();
        Rc::new(Registration { database: self })
    }

    fn enter(&self) {
        let first = REGISTERED.with_borrow_mut(|threads| {
            let count = threads.entry(self.number).or_default();
            *count += 1;
            *count == 1
        });
        if first {
            // SAFETY: the database is open and the thread is not registered.
            unsafe { (self.functions.splinterdb_register_thread)(self.handle) };
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A close needs a registered thread as well, which it does not ask to deregister.
        self.enter();
        // SAFETY: the database is open and closed once; sessions borrow it and are gone.
        unsafe { (self.functions.splinterdb_close)(&raw mut self.handle) };
        REGISTERED.with_borrow_mut(|threads| threads.remove(&self.number));
    }
}

/// A thread's leave to use a database, which is handed out in an `Rc` and so cannot leave the thread.
pub struct Registration<'a> {
    database: &'a Database,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let database = self.database;
        let last = REGISTERED.with_borrow_mut(|threads| {
            let key = database.number;
            let left = threads.get(&key).map_or(0, |count| count.saturating_sub(1));
            if left == 0 {
                threads.remove(&key);
            } else {
                threads.insert(key, left);
            }
            left == 0
        });
        if last {
            // SAFETY: the database is open and the thread is registered.
            unsafe { (database.functions.splinterdb_deregister_thread)(database.handle) };
        }
    }
}

impl<'a> Registration<'a> {
    /// Writes an entry.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (insert, handle) = (self.database.functions.splinterdb_insert, self.database.handle);
        // SAFETY: the database is open, the thread registered, and the library copies both ranges.
        outcome("write", unsafe { insert(handle, Slice::of(key), Slice::of(value)) })
    }

    /// Deletes an entry.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let (delete, handle) = (self.database.functions.splinterdb_delete, self.database.handle);
        // SAFETY: as above.
        outcome("delete", unsafe { delete(handle, Slice::of(key)) })
    }

    /// Room for the values that a session reads, used again and again.
    pub fn results(self: &Rc<Self>) -> Results<'a> {
        let mut lookup = Box::new(Lookup([0; 6]));
        let f = &self.database.functions;
        // SAFETY: the room is as large as the header says; the library manages what it points to.
        unsafe {
            let init = f.splinterdb_lookup_result_init;
            init(self.database.handle, &raw mut *lookup, 0, ptr::null_mut());
        }
        Results { registration: Rc::clone(self), lookup }
    }

    /// An iterator at the first entry at or behind `from`, or at the first of all.
    pub fn iter(self: &Rc<Self>, from: Option<&[u8]>) -> Result<Iter<'a>> {
        let f = &self.database.functions;
        let mut handle = ptr::null_mut();
        let from = from.map_or(Slice::NULL, Slice::of);
        // SAFETY: the database is open, the thread registered, and the key lives for the call.
        let code =
            unsafe { (f.splinterdb_iterator_init)(self.database.handle, &raw mut handle, from) };
        outcome("seek", code)?;
        Ok(Iter { registration: Rc::clone(self), handle })
    }
}

/// Room for values that are read.
pub struct Results<'a> {
    registration: Rc<Registration<'a>>,
    lookup: Box<Lookup>,
}

impl Results<'_> {
    /// Reads one entry and lends its value to `found`.
    pub fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let database = self.registration.database;
        let f = &database.functions;
        let lookup = &raw mut *self.lookup;
        let mut value = Slice::NULL;
        // SAFETY: the room belongs to this database and this thread; what the value points to stays
        // until the next lookup.
        unsafe {
            outcome("read", (f.splinterdb_lookup)(database.handle, Slice::of(key), lookup))?;
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
        let f = &self.registration.database.functions;
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

/// A position among the entries. A thread that holds one may have to wait if it writes.
pub struct Iter<'a> {
    registration: Rc<Registration<'a>>,
    handle: Handle,
}

impl Iter<'_> {
    fn functions(&self) -> &Functions {
        &self.registration.database.functions
    }

    /// Goes one entry ahead or back. From behind the last entry, back goes to it.
    pub fn step(&mut self, back: bool) {
        let f = self.functions();
        // SAFETY: the iterator lives, and is asked whether it can.
        unsafe {
            if back && (f.splinterdb_iterator_can_prev)(self.handle) {
                (f.splinterdb_iterator_prev)(self.handle);
            } else if !back && (f.splinterdb_iterator_valid)(self.handle) {
                (f.splinterdb_iterator_next)(self.handle);
            }
        }
    }

    /// Whether there is anything before it.
    pub fn can_go_back(&self) -> bool {
        // SAFETY: the iterator lives.
        unsafe { (self.functions().splinterdb_iterator_can_prev)(self.handle) }
    }

    /// The entry under it.
    pub fn entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let f = self.functions();
        let (mut key, mut value) = (Slice::NULL, Slice::NULL);
        // SAFETY: the iterator lives and is on an entry before that is asked for; what it lends stays
        // until it moves, which takes it exclusively.
        unsafe {
            if !(f.splinterdb_iterator_valid)(self.handle) {
                return outcome("iteration", (f.splinterdb_iterator_status)(self.handle))
                    .map(|()| None);
            }
            (f.splinterdb_iterator_get_current)(self.handle, &raw mut key, &raw mut value);
            Ok(Some((lent(&key), lent(&value))))
        }
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: the iterator lives and is released once.
        unsafe { (self.functions().splinterdb_iterator_deinit)(self.handle) };
    }
}
