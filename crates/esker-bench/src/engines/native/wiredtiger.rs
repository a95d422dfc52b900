//! WiredTiger's C interface, as the header of Debian's version declares it.
//!
//! WiredTiger exports a handful of functions; everything else is a pointer in the structures that they
//! return, at a place that differs between versions. The structures here are those of version 3.2, up
//! to the last pointer that is used. A library of another version is refused when it is loaded.

#![allow(unsafe_code, reason = "calls through a C interface")]

use super::library::{c_path, functions, load, text};
use crate::{Error, Result};
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::{ptr, slice};

/// The version whose structures these are.
const MAJOR: c_int = 3;
const MINOR: c_int = 2;

const NOT_FOUND: c_int = -31803;
/// The transaction lost against another and has to begin again.
const ROLLBACK: c_int = -31800;

type Text = *const c_char;
/// A pointer that is not used here.
type Unused = *const c_void;

// SAFETY: of every method below, the type is the one that `wiredtiger.h` of version 3.2 gives it, and
// the caller passes an object that is open.
/// Pointers of `WT_CONNECTION`, up to the last that is used.
#[repr(C)]
struct Connection {
    async_flush: Unused,
    async_new_op: Unused,
    close: unsafe extern "C" fn(*mut Connection, Text) -> c_int,
    debug_info: Unused,
    reconfigure: Unused,
    get_home: Unused,
    configure_method: Unused,
    is_new: Unused,
    open_session:
        unsafe extern "C" fn(*mut Connection, Unused, Text, *mut *mut RawSession) -> c_int,
}

// SAFETY: as for the connection.
/// Pointers of `WT_SESSION`, up to the last that is used.
#[repr(C)]
struct RawSession {
    connection: Unused,
    app_private: Unused,
    close: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    reconfigure: Unused,
    strerror: Unused,
    open_cursor: unsafe extern "C" fn(
        *mut RawSession,
        Text,
        *mut RawCursor,
        Text,
        *mut *mut RawCursor,
    ) -> c_int,
    alter: Unused,
    create: unsafe extern "C" fn(*mut RawSession, Text, Text) -> c_int,
    import: Unused,
    compact: unsafe extern "C" fn(*mut RawSession, Text, Text) -> c_int,
    drop: Unused,
    join: Unused,
    log_flush: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    log_printf: Unused,
    rebalance: Unused,
    rename: Unused,
    reset: Unused,
    salvage: Unused,
    truncate:
        unsafe extern "C" fn(*mut RawSession, Text, *mut RawCursor, *mut RawCursor, Text) -> c_int,
    upgrade: Unused,
    verify: Unused,
    begin_transaction: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    commit_transaction: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    prepare_transaction: Unused,
    rollback_transaction: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    timestamp_transaction: Unused,
    query_timestamp: Unused,
    checkpoint: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
}

// SAFETY: as for the connection; the arguments that vary are items or pointers to them.
/// Pointers of `WT_CURSOR`, up to the last that is used.
#[repr(C)]
struct RawCursor {
    session: Unused,
    uri: Unused,
    key_format: Unused,
    value_format: Unused,
    get_key: unsafe extern "C" fn(*mut RawCursor, ...) -> c_int,
    get_value: unsafe extern "C" fn(*mut RawCursor, ...) -> c_int,
    set_key: unsafe extern "C" fn(*mut RawCursor, ...),
    set_value: unsafe extern "C" fn(*mut RawCursor, ...),
    compare: Unused,
    equals: Unused,
    next: unsafe extern "C" fn(*mut RawCursor) -> c_int,
    prev: unsafe extern "C" fn(*mut RawCursor) -> c_int,
    reset: unsafe extern "C" fn(*mut RawCursor) -> c_int,
    search: unsafe extern "C" fn(*mut RawCursor) -> c_int,
    search_near: unsafe extern "C" fn(*mut RawCursor, *mut c_int) -> c_int,
    insert: unsafe extern "C" fn(*mut RawCursor) -> c_int,
    modify: Unused,
    update: Unused,
    remove: unsafe extern "C" fn(*mut RawCursor) -> c_int,
    reserve: Unused,
    close: unsafe extern "C" fn(*mut RawCursor) -> c_int,
}

/// `WT_ITEM`: a range of bytes, and what the library keeps beside it.
#[repr(C)]
struct Item {
    data: *const c_void,
    size: usize,
    mem: *mut c_void,
    memsize: usize,
    flags: u32,
}

impl Item {
    fn of(bytes: &[u8]) -> Self {
        let data = bytes.as_ptr().cast();
        Self { data, size: bytes.len(), mem: ptr::null_mut(), memsize: 0, flags: 0 }
    }
}

functions! {
    /// What the library exports.
    struct Functions {
        wiredtiger_version: fn(*mut c_int, *mut c_int, *mut c_int) -> Text;
        wiredtiger_open: fn(Text, *const c_void, Text, *mut *mut Connection) -> c_int;
        wiredtiger_strerror: fn(c_int) -> Text;
    }
}

impl Functions {
    fn outcome(&self, what: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library answers with a text that it keeps.
        let cause = unsafe { text((self.wiredtiger_strerror)(code)) };
        Err(Error::engine("wiredtiger", what, cause.unwrap_or_else(|| code.to_string())))
    }
}

/// A configuration text as C wants it.
fn config(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::usage("a setting of WiredTiger has a zero byte in it"))
}

/// A loaded library.
pub struct Library {
    functions: Arc<Functions>,
    version: (i32, i32, i32),
}

impl Library {
    /// Loads the first library of `names` that there is, if it is of the version that this module
    /// knows.
    pub fn load<S: AsRef<OsStr>>(names: &[S]) -> Result<Self, String> {
        let functions = Functions::of(load(names)?)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the library writes three numbers.
        unsafe { (functions.wiredtiger_version)(&raw mut major, &raw mut minor, &raw mut patch) };
        if (major, minor) != (MAJOR, MINOR) {
            return Err(format!(
                "it is WiredTiger {major}.{minor}.{patch}, and this program knows the interface of \
                 {MAJOR}.{MINOR}"
            ));
        }
        Ok(Self { functions: Arc::new(functions), version: (major, minor, patch) })
    }

    /// The library's version.
    pub fn version(&self) -> (i32, i32, i32) {
        self.version
    }

    /// Opens a directory that exists.
    pub fn open(&self, dir: &Path, settings: &str) -> Result<Database> {
        let (dir, settings) = (c_path(dir)?, config(settings)?);
        let mut connection = ptr::null_mut();
        // SAFETY: both texts live for the call; no handler of events is given.
        let code = unsafe {
            let open = self.functions.wiredtiger_open;
            open(dir.as_ptr(), ptr::null(), settings.as_ptr(), &raw mut connection)
        };
        self.functions.outcome("open", code)?;
        Ok(Database { functions: Arc::clone(&self.functions), connection })
    }
}

/// An open database. Dropping it closes it; [`Database::close`] says how that went.
pub struct Database {
    functions: Arc<Functions>,
    connection: *mut Connection,
}

// SAFETY: WiredTiger's documentation lets threads share a connection; sessions and cursors, which
// are for one thread at a time, are neither `Send` nor `Sync`.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// A session for one thread.
    pub fn session(&self) -> Result<Rc<Session<'_>>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open; no handler and no settings are given.
        let code = unsafe {
            let open = (*self.connection).open_session;
            open(self.connection, ptr::null(), ptr::null(), &raw mut raw)
        };
        self.functions.outcome("open of a session", code)?;
        Ok(Rc::new(Session { database: self, raw }))
    }

    /// Closes it; sessions and cursors borrow it and are gone.
    pub fn close(mut self) -> Result<()> {
        let code = self.close_now();
        self.functions.outcome("close", code)
    }

    fn close_now(&mut self) -> c_int {
        if self.connection.is_null() {
            return 0;
        }
        // SAFETY: the connection is open, and forgotten afterwards.
        let code = unsafe { ((*self.connection).close)(self.connection, ptr::null()) };
        self.connection = ptr::null_mut();
        code
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.close_now();
    }
}

/// One thread's access. Its cursors keep it open.
pub struct Session<'a> {
    database: &'a Database,
    raw: *mut RawSession,
}

impl<'a> Session<'a> {
    fn outcome(&self, what: &str, code: c_int) -> Result<()> {
        self.database.functions.outcome(what, code)
    }

    /// Makes a table if it is not there.
    pub fn create(&self, name: &str, settings: &str) -> Result<()> {
        let (name, settings) = (config(name)?, config(settings)?);
        // SAFETY: the session is open and the texts live for the call. So it is below.
        let code = unsafe { ((*self.raw).create)(self.raw, name.as_ptr(), settings.as_ptr()) };
        self.outcome("make of a table", code)
    }

    /// Rewrites a table into less space.
    pub fn compact(&self, name: &str, settings: &str) -> Result<()> {
        let (name, settings) = (config(name)?, config(settings)?);
        // SAFETY: as above.
        let code = unsafe { ((*self.raw).compact)(self.raw, name.as_ptr(), settings.as_ptr()) };
        self.outcome("compact", code)
    }

    /// Writes everything out and makes it the state that a restart begins with.
    pub fn checkpoint(&self) -> Result<()> {
        // SAFETY: as above.
        self.outcome("checkpoint", unsafe { ((*self.raw).checkpoint)(self.raw, ptr::null()) })
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Result<()> {
        // SAFETY: as above.
        let code = unsafe { ((*self.raw).begin_transaction)(self.raw, ptr::null()) };
        self.outcome("begin of a transaction", code)
    }

    /// Begins a transaction that sees one state throughout, and loses against another that wrote what
    /// it writes. Without, each read sees what is committed then, and writes of two pass unnoticed.
    pub fn begin_snapshot(&self) -> Result<()> {
        let settings = c"isolation=snapshot".as_ptr();
        // SAFETY: as above.
        let code = unsafe { ((*self.raw).begin_transaction)(self.raw, settings) };
        self.outcome("begin of a transaction", code)
    }

    /// Commits it, syncing the log or as the connection's settings say.
    pub fn commit(&self, sync: bool) -> Result<()> {
        let settings = if sync { c"sync=on".as_ptr() } else { ptr::null() };
        // SAFETY: as above.
        let code = unsafe { ((*self.raw).commit_transaction)(self.raw, settings) };
        self.outcome("commit", code)
    }

    /// Hands what is in the log's buffers to the operating system.
    pub fn write_log(&self) -> Result<()> {
        // SAFETY: as above.
        let code = unsafe { ((*self.raw).log_flush)(self.raw, c"sync=off".as_ptr()) };
        self.outcome("write of the log", code)
    }

    /// Takes back what it did.
    pub fn rollback(&self) -> Result<()> {
        // SAFETY: as above.
        let code = unsafe { ((*self.raw).rollback_transaction)(self.raw, ptr::null()) };
        self.outcome("rollback", code)
    }

    /// A cursor on a table of byte keys and values.
    pub fn cursor(self: &Rc<Self>, name: &str) -> Result<Cursor<'a>> {
        Ok(Cursor { raw: self.open_cursor(name)?, session: Rc::clone(self) })
    }

    fn open_cursor(&self, name: &str) -> Result<*mut RawCursor> {
        let name = config(name)?;
        let mut raw = ptr::null_mut();
        // SAFETY: as above; no cursor is copied and no settings are given.
        let code = unsafe {
            let open = (*self.raw).open_cursor;
            open(self.raw, name.as_ptr(), ptr::null_mut(), ptr::null(), &raw mut raw)
        };
        self.outcome("open of a cursor", code).map(|()| raw)
    }

    /// Deletes from the entry of one cursor to that of the other, both included.
    pub fn truncate(&self, start: &Cursor<'a>, stop: &Cursor<'a>) -> Result<bool> {
        // SAFETY: as above; both cursors are open and on an entry.
        let code = unsafe {
            ((*self.raw).truncate)(self.raw, ptr::null(), start.raw, stop.raw, ptr::null())
        };
        lost(code, |code| self.outcome("delete of a range", code))
    }

    /// Every counter of the connection: what it counts, and how many.
    pub fn counters(self: &Rc<Self>) -> Result<Vec<(String, i64)>> {
        let cursor = self.cursor("statistics:")?;
        let mut found = Vec::new();
        loop {
            // SAFETY: the cursor is open; values of a statistics cursor are two texts, which the
            // library keeps until the next call, and a number.
            unsafe {
                match ((*cursor.raw).next)(cursor.raw) {
                    0 => {}
                    NOT_FOUND => return Ok(found),
                    code => return self.outcome("statistics", code).map(|()| found),
                }
                let (mut name, mut shown): (Text, Text) = (ptr::null(), ptr::null());
                let mut count = 0_i64;
                let get = (*cursor.raw).get_value;
                let code = get(cursor.raw, &raw mut name, &raw mut shown, &raw mut count);
                self.outcome("statistics", code)?;
                found.push((text(name).unwrap_or_default(), count));
            }
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the session is open and closed once; its cursors hold it and are gone.
        unsafe { ((*self.raw).close)(self.raw, ptr::null()) };
    }
}

/// Whether a call was carried out, or lost against another transaction and has to be tried again.
fn lost(code: c_int, outcome: impl FnOnce(c_int) -> Result<()>) -> Result<bool> {
    match code {
        ROLLBACK => Ok(false),
        code => outcome(code).map(|()| true),
    }
}

/// A position in a table.
pub struct Cursor<'a> {
    session: Rc<Session<'a>>,
    raw: *mut RawCursor,
}

impl Cursor<'_> {
    /// Sets the key. The library keeps the pointer, so the caller passes it to the next call.
    fn set_key(&mut self, item: &Item) {
        // SAFETY: the cursor is open, and keys of these tables are items (`u`). The item and what it
        // points to live until the call that uses them has returned.
        unsafe { ((*self.raw).set_key)(self.raw, ptr::from_ref(item)) };
    }

    /// Writes an entry. False if it lost against another transaction.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let (key, value) = (Item::of(key), Item::of(value));
        self.set_key(&key);
        // SAFETY: as for the key.
        let code = unsafe {
            ((*self.raw).set_value)(self.raw, ptr::from_ref(&value));
            ((*self.raw).insert)(self.raw)
        };
        lost(code, |code| self.session.outcome("write", code))
    }

    /// Deletes an entry, if it is there. False if it lost against another transaction.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let key = Item::of(key);
        self.set_key(&key);
        // SAFETY: the cursor is open and has a key.
        match unsafe { ((*self.raw).remove)(self.raw) } {
            NOT_FOUND => {}
            code => {
                if !lost(code, |code| self.session.outcome("delete", code))? {
                    return Ok(false);
                }
            }
        }
        self.reset().map(|()| true)
    }

    /// Reads one entry and lends its value to `found`.
    pub fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let key = Item::of(key);
        self.set_key(&key);
        // SAFETY: the cursor is open and has a key.
        match unsafe { ((*self.raw).search)(self.raw) } {
            NOT_FOUND => return Ok(false),
            code => self.session.outcome("read", code)?,
        }
        found(self.value()?);
        // A cursor that stays on an entry keeps its page in memory.
        self.reset().map(|()| true)
    }

    /// Reads one entry within a transaction: its value, or none; or nothing if the transaction lost
    /// against another.
    pub fn read(&mut self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        let key = Item::of(key);
        self.set_key(&key);
        // SAFETY: the cursor is open and has a key.
        match unsafe { ((*self.raw).search)(self.raw) } {
            NOT_FOUND => return Ok(Some(None)),
            ROLLBACK => return Ok(None),
            code => self.session.outcome("read", code)?,
        }
        let value = self.value()?.to_vec();
        self.reset().map(|()| Some(Some(value)))
    }

    /// Leaves the entry.
    pub fn reset(&mut self) -> Result<()> {
        // SAFETY: the cursor is open.
        self.session.outcome("reset of a cursor", unsafe { ((*self.raw).reset)(self.raw) })
    }

    /// Goes to the entry nearest to `key`: below none, at or above it by the sign, or nowhere.
    pub fn seek(&mut self, key: &[u8]) -> Result<Option<i32>> {
        let key = Item::of(key);
        self.set_key(&key);
        let mut side = 0;
        // SAFETY: the cursor is open and has a key.
        match unsafe { ((*self.raw).search_near)(self.raw, &raw mut side) } {
            NOT_FOUND => Ok(None),
            code => self.session.outcome("seek", code).map(|()| Some(side)),
        }
    }

    /// Goes one entry ahead or back; from nowhere, to the first or the last. False at the end.
    pub fn step(&mut self, back: bool) -> Result<bool> {
        // SAFETY: the cursor is open.
        let code = unsafe {
            if back { ((*self.raw).prev)(self.raw) } else { ((*self.raw).next)(self.raw) }
        };
        match code {
            NOT_FOUND => Ok(false),
            code => self.session.outcome("iteration", code).map(|()| true),
        }
    }

    /// The key under the cursor, which has to be on an entry.
    pub fn key(&self) -> Result<&[u8]> {
        // SAFETY: the cursor is open; the type of the pointer is that of the structure.
        let get = unsafe { (*self.raw).get_key };
        self.item(get)
    }

    /// The value under the cursor, which has to be on an entry.
    pub fn value(&self) -> Result<&[u8]> {
        // SAFETY: as for the key.
        let get = unsafe { (*self.raw).get_value };
        self.item(get)
    }

    fn item(&self, get: unsafe extern "C" fn(*mut RawCursor, ...) -> c_int) -> Result<&[u8]> {
        let mut item = Item::of(&[]);
        // SAFETY: keys and values of these tables are items (`u`). What one points to stays in place
        // until the cursor moves, which takes it exclusively.
        let code = unsafe { get(self.raw, &raw mut item) };
        self.session.outcome("read of an entry", code)?;
        if item.size == 0 {
            return Ok(&[]);
        }
        // SAFETY: as above.
        Ok(unsafe { slice::from_raw_parts(item.data.cast(), item.size) })
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the cursor is open and closed once.
        unsafe { ((*self.raw).close)(self.raw) };
    }
}
