//! Berkeley DB's C interface, version 5.3.
//!
//! Berkeley DB exports the functions that make its objects; the methods of an object are pointers in
//! its structure. The structures are long, and almost all of their fields are not for programs. A
//! method is therefore named here by its place, counted in pointers, as `db.h` of version 5.3 lays the
//! structures out where pointers have 64 bits. A library of another version is refused when it is
//! loaded.

#![allow(unsafe_code, reason = "calls through a C interface")]

use super::library::{c_path, functions, load, text};
use crate::{Error, Result};
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;
use std::{mem, ptr};

const MAJOR: c_int = 5;
const MINOR: c_int = 3;

type Handle = *mut c_void;
type Text = *const c_char;

/// Places of methods, in pointers.
mod place {
    pub const ENV_CLOSE: usize = 61;
    pub const ENV_LOG_SET_CONFIG: usize = 139;
    pub const ENV_OPEN: usize = 166;
    pub const ENV_SET_CACHESIZE: usize = 204;
    pub const ENV_SET_FLAGS: usize = 216;
    pub const ENV_SET_LK_DETECT: usize = 225;
    pub const ENV_SET_LK_MAX_LOCKS: usize = 227;
    pub const ENV_SET_LK_MAX_OBJECTS: usize = 228;
    pub const ENV_TXN_BEGIN: usize = 255;
    pub const ENV_TXN_CHECKPOINT: usize = 256;
    pub const DB_CLOSE: usize = 71;
    pub const DB_COMPACT: usize = 72;
    pub const DB_CURSOR: usize = 73;
    pub const DB_DEL: usize = 74;
    pub const DB_GET: usize = 79;
    pub const DB_OPEN: usize = 126;
    pub const DB_PUT: usize = 128;
    pub const CURSOR_CLOSE: usize = 44;
    pub const CURSOR_GET: usize = 49;
    pub const TXN_ABORT: usize = 29;
    pub const TXN_COMMIT: usize = 30;
}

/// Flags and codes of `db.h`.
mod flag {
    pub const CREATE: u32 = 0x1;
    /// Create, with a log, a cache, locks and transactions, for threads of this one process, after
    /// whatever recovery is needed.
    pub const ENV: u32 = CREATE | 0x200 | 0x400 | 0x100 | 0x2000 | 0x20 | 0x1_0000 | 0x2;
    /// Create, for threads, with a transaction around every call that has none.
    pub const DB: u32 = CREATE | 0x20 | 0x100;
    pub const BTREE: i32 = 1;
    pub const NOSYNC: u32 = 0x1;
    pub const WRITE_NOSYNC: u32 = 0x20;
    pub const SYNC: u32 = 0x8;
    pub const DETECT_DEFAULT: u32 = 0x1;
    pub const LOG_AUTO_REMOVE: u32 = 0x1;
    pub const FREE_SPACE: u32 = 0x2;
    pub const FORCE: u32 = 0x1;
    pub const FIRST: u32 = 0x7;
    pub const LAST: u32 = 0xF;
    pub const NEXT: u32 = 0x10;
    pub const PREV: u32 = 0x17;
    pub const SET_RANGE: u32 = 0x1B;
    pub const USERMEM: u32 = 0x800;
    pub const NOTFOUND: i32 = -30988;
    pub const DEADLOCK: i32 = -30993;
    pub const BUFFER_SMALL: i32 = -30999;
}

/// Locks for the pages that one transaction may touch.
const LOCKS_MAX: u32 = 200_000;
/// KiB of log after which a checkpoint is taken.
const CHECKPOINT_KIB: u32 = 64 << 10;

/// `DBT`: a range of bytes.
#[repr(C)]
struct Item {
    data: *mut c_void,
    size: u32,
    ulen: u32,
    dlen: u32,
    doff: u32,
    app_data: *mut c_void,
    flags: u32,
}

impl Item {
    /// Bytes that the library only reads.
    fn of(bytes: &[u8]) -> Result<Self> {
        let size = u32::try_from(bytes.len())
            .map_err(|_| Error::engine("berkeleydb", "write", "an entry has more than 4 GiB"))?;
        let data = bytes.as_ptr().cast_mut().cast();
        Ok(Self { data, size, ulen: size, dlen: 0, doff: 0, app_data: ptr::null_mut(), flags: 0 })
    }

    /// Room that the library fills.
    fn room(room: &mut Vec<u8>) -> Self {
        let ulen = u32::try_from(room.len()).unwrap_or(u32::MAX);
        let data = room.as_mut_ptr().cast();
        let app_data = ptr::null_mut();
        Self { data, size: 0, ulen, dlen: 0, doff: 0, app_data, flags: flag::USERMEM }
    }
}

functions! {
    /// What the library exports.
    struct Functions {
        db_version: fn(*mut c_int, *mut c_int, *mut c_int) -> Text;
        db_strerror: fn(c_int) -> Text;
        db_env_create: fn(*mut Handle, u32) -> c_int;
        db_create: fn(*mut Handle, Handle, u32) -> c_int;
    }
}

impl Functions {
    fn outcome(&self, what: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library answers with a text that it keeps.
        let cause = unsafe { text((self.db_strerror)(code)) };
        Err(Error::engine("berkeleydb", what, cause.unwrap_or_else(|| code.to_string())))
    }
}

/// The method at a place of an object.
///
/// # Safety
///
/// The object lives, and `F` is the type of the method that `db.h` has at this place.
unsafe fn method<F: Copy>(object: Handle, place: usize) -> F {
    const { assert!(mem::size_of::<F>() == mem::size_of::<Handle>()) };
    // SAFETY: as the caller promises; every method of an object that the library made is set.
    unsafe { object.cast::<F>().add(place).read() }
}

type EnvFlags = unsafe extern "C" fn(Handle, u32, c_int) -> c_int;
type OneNumber = unsafe extern "C" fn(Handle, u32) -> c_int;
type Write = unsafe extern "C" fn(Handle, Handle, *mut Item, *mut Item, u32) -> c_int;

/// A loaded library.
pub struct Library {
    functions: Arc<Functions>,
    version: (i32, i32, i32),
}

/// What every commit of a database does, if it does not say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// Leaves its records in the process.
    Keep,
    /// Hands them to the operating system.
    Write,
    /// Syncs them.
    Sync,
}

impl Library {
    /// Loads the first library of `names` that there is, if it is of the version that this module
    /// knows.
    pub fn load<S: AsRef<OsStr>>(names: &[S]) -> Result<Self, String> {
        if mem::size_of::<Handle>() != 8 {
            return Err("only its structures for pointers of 64 bits are known".into());
        }
        let functions = Functions::of(load(names)?)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the library writes three numbers.
        unsafe { (functions.db_version)(&raw mut major, &raw mut minor, &raw mut patch) };
        if (major, minor) != (MAJOR, MINOR) {
            return Err(format!(
                "it is Berkeley DB {major}.{minor}.{patch}, and this program knows the interface \
                 of {MAJOR}.{MINOR}"
            ));
        }
        Ok(Self { functions: Arc::new(functions), version: (major, minor, patch) })
    }

    /// The library's version.
    pub fn version(&self) -> (i32, i32, i32) {
        self.version
    }

    /// Opens or makes a database with one B-tree in a directory that exists.
    pub fn open(&self, dir: &Path, cache: Option<u64>, commit: Commit) -> Result<Database> {
        let f = &self.functions;
        let dir = c_path(dir)?;
        let mut env = ptr::null_mut();
        // SAFETY: the library writes a handle.
        f.outcome("open", unsafe { (f.db_env_create)(&raw mut env, 0) })?;
        let mut made = Database { functions: Arc::clone(f), env, db: ptr::null_mut() };
        // SAFETY: the environment was made and is not opened yet, as these calls want it; the types
        // are those of `db.h`. A part of the object that fails to open is closed by its drop.
        unsafe {
            if let Some(bytes) = cache {
                let set: unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int =
                    method(env, place::ENV_SET_CACHESIZE);
                let (gib, rest) = (bytes >> 30, bytes & ((1 << 30) - 1));
                let (gib, rest) = (u32::try_from(gib).unwrap_or(u32::MAX), rest as u32);
                f.outcome("set of the cache", set(env, gib, rest, 1))?;
            }
            let set: EnvFlags = method(env, place::ENV_SET_FLAGS);
            let wanted = match commit {
                Commit::Keep => Some(flag::NOSYNC),
                Commit::Write => Some(flag::WRITE_NOSYNC),
                Commit::Sync => None,
            };
            if let Some(flags) = wanted {
                f.outcome("set of the commit", set(env, flags, 1))?;
            }
            let set: EnvFlags = method(env, place::ENV_LOG_SET_CONFIG);
            f.outcome("set of the log", set(env, flag::LOG_AUTO_REMOVE, 1))?;
            for (place, value) in [
                (place::ENV_SET_LK_DETECT, flag::DETECT_DEFAULT),
                (place::ENV_SET_LK_MAX_LOCKS, LOCKS_MAX),
                (place::ENV_SET_LK_MAX_OBJECTS, LOCKS_MAX),
            ] {
                let set: OneNumber = method(env, place);
                f.outcome("set of the locks", set(env, value))?;
            }
            let open: unsafe extern "C" fn(Handle, Text, u32, c_int) -> c_int =
                method(env, place::ENV_OPEN);
            f.outcome("open", open(env, dir.as_ptr(), flag::ENV, 0))?;
            let mut db = ptr::null_mut();
            f.outcome("open", (f.db_create)(&raw mut db, env, 0))?;
            made.db = db;
            let open: unsafe extern "C" fn(Handle, Handle, Text, Text, c_int, u32, c_int) -> c_int =
                method(db, place::DB_OPEN);
            let (name, none) = (c"data.db".as_ptr(), ptr::null());
            let code = open(db, ptr::null_mut(), name, none, flag::BTREE, flag::DB, 0);
            f.outcome("open of the tree", code)?;
        }
        Ok(made)
    }
}

/// An open database. Dropping it closes it; [`Database::close`] says how that went.
pub struct Database {
    functions: Arc<Functions>,
    env: Handle,
    db: Handle,
}

// SAFETY: both objects are opened for threads (`DB_THREAD`), which the documentation lets share them.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Takes a checkpoint, if there is enough log for one or it is forced.
    pub fn checkpoint(&self, force: bool) -> Result<()> {
        let flags = if force { flag::FORCE } else { 0 };
        // SAFETY: the environment is open and the type is that of `db.h`.
        let code = unsafe {
            let checkpoint: unsafe extern "C" fn(Handle, u32, u32, u32) -> c_int =
                method(self.env, place::ENV_TXN_CHECKPOINT);
            checkpoint(self.env, if force { 0 } else { CHECKPOINT_KIB }, 0, flags)
        };
        self.functions.outcome("checkpoint", code)
    }

    /// Compacts the tree and gives the space behind it back.
    pub fn compact(&self) -> Result<()> {
        // SAFETY: the database is open and the type is that of `db.h`; null pointers stand for
        // everything and for no report.
        let code = unsafe {
            let compact: unsafe extern "C" fn(
                Handle,
                Handle,
                *mut Item,
                *mut Item,
                Handle,
                u32,
                *mut Item,
            ) -> c_int = method(self.db, place::DB_COMPACT);
            let (none, nothing) = (ptr::null_mut(), ptr::null_mut());
            compact(self.db, none, nothing, nothing, none, flag::FREE_SPACE, nothing)
        };
        self.functions.outcome("compact", code)
    }

    /// Begins a transaction; its commit syncs, or does what the database does.
    pub fn begin(&self, sync: bool) -> Result<Txn<'_>> {
        let mut handle = ptr::null_mut();
        let flags = if sync { flag::SYNC } else { 0 };
        // SAFETY: the environment is open and the type is that of `db.h`.
        let code = unsafe {
            let begin: unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int =
                method(self.env, place::ENV_TXN_BEGIN);
            begin(self.env, ptr::null_mut(), &raw mut handle, flags)
        };
        self.functions.outcome("begin of a transaction", code)?;
        Ok(Txn { database: self, handle })
    }

    /// Writes an entry in a transaction of its own. False if it lost against another.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_in(ptr::null_mut(), key, value)
    }

    /// Deletes an entry, if it is there, in a transaction of its own. False if it lost.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        self.delete_in(ptr::null_mut(), key)
    }

    fn put_in(&self, txn: Handle, key: &[u8], value: &[u8]) -> Result<bool> {
        let (mut key, mut value) = (Item::of(key)?, Item::of(value)?);
        // SAFETY: the database is open, the transaction is one of its or none, the type is that of
        // `db.h`, and the library copies both ranges.
        let code = unsafe {
            let put: Write = method(self.db, place::DB_PUT);
            put(self.db, txn, &raw mut key, &raw mut value, 0)
        };
        self.lost("write", code)
    }

    fn delete_in(&self, txn: Handle, key: &[u8]) -> Result<bool> {
        let mut key = Item::of(key)?;
        // SAFETY: as above.
        let code = unsafe {
            let delete: unsafe extern "C" fn(Handle, Handle, *mut Item, u32) -> c_int =
                method(self.db, place::DB_DEL);
            delete(self.db, txn, &raw mut key, 0)
        };
        if code == flag::NOTFOUND { Ok(true) } else { self.lost("delete", code) }
    }

    /// Whether a call was carried out, or lost against another transaction.
    fn lost(&self, what: &str, code: c_int) -> Result<bool> {
        match code {
            flag::DEADLOCK => Ok(false),
            code => self.functions.outcome(what, code).map(|()| true),
        }
    }

    /// Reads one entry into `room`, which grows as needed, and lends it to `found`.
    pub fn get(
        &self,
        key: &[u8],
        room: &mut Vec<u8>,
        found: &mut dyn FnMut(&[u8]),
    ) -> Result<bool> {
        let mut key = Item::of(key)?;
        loop {
            let mut value = Item::room(room);
            // SAFETY: the database is open, the type is that of `db.h`, and the room is as long as
            // the item says.
            let code = unsafe {
                let get: Write = method(self.db, place::DB_GET);
                get(self.db, ptr::null_mut(), &raw mut key, &raw mut value, 0)
            };
            match code {
                flag::NOTFOUND => return Ok(false),
                flag::BUFFER_SMALL => room.resize(value.size as usize, 0),
                flag::DEADLOCK => {}
                code => {
                    self.functions.outcome("read", code)?;
                    found(&room[..value.size as usize]);
                    return Ok(true);
                }
            }
        }
    }

    /// A cursor on no entry.
    pub fn cursor(&self) -> Result<Cursor<'_>> {
        let mut handle = ptr::null_mut();
        // SAFETY: the database is open and the type is that of `db.h`.
        let code = unsafe {
            let open: unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int =
                method(self.db, place::DB_CURSOR);
            open(self.db, ptr::null_mut(), &raw mut handle, 0)
        };
        self.functions.outcome("open of a cursor", code)?;
        Ok(Cursor {
            database: self,
            handle,
            key: vec![0; 64],
            value: vec![0; 1 << 10],
            ends: (0, 0),
        })
    }

    /// Closes it; transactions and cursors borrow it and are gone.
    pub fn close(mut self) -> Result<()> {
        let code = self.close_now();
        self.functions.outcome("close", code)
    }

    fn close_now(&mut self) -> c_int {
        let mut first = 0;
        for (object, place) in [(&mut self.db, place::DB_CLOSE), (&mut self.env, place::ENV_CLOSE)]
        {
            if object.is_null() {
                continue;
            }
            // SAFETY: the object was made, is closed once and forgotten, and the type is that of
            // `db.h`. The tree goes before its environment.
            let code = unsafe {
                let close: OneNumber = method(*object, place);
                close(*object, 0)
            };
            *object = ptr::null_mut();
            first = if first == 0 { code } else { first };
        }
        first
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.close_now();
    }
}

/// A transaction. Dropping it takes back what it did.
pub struct Txn<'a> {
    database: &'a Database,
    handle: Handle,
}

impl Txn<'_> {
    /// Writes an entry. False if the transaction lost against another and has to be dropped.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.database.put_in(self.handle, key, value)
    }

    /// Deletes an entry, if it is there. False as for a write.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.database.delete_in(self.handle, key)
    }

    /// Makes it last.
    pub fn commit(mut self) -> Result<()> {
        let handle = mem::replace(&mut self.handle, ptr::null_mut());
        // SAFETY: the transaction lives, is ended once and forgotten; the type is that of `db.h`.
        let code = unsafe {
            let commit: OneNumber = method(handle, place::TXN_COMMIT);
            commit(handle, 0)
        };
        self.database.functions.outcome("commit", code)
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the transaction lives and is ended once; the type is that of `db.h`.
            unsafe {
                let abort: unsafe extern "C" fn(Handle) -> c_int =
                    method(self.handle, place::TXN_ABORT);
                abort(self.handle);
            }
        }
    }
}

/// A position in the tree.
pub struct Cursor<'a> {
    database: &'a Database,
    handle: Handle,
    key: Vec<u8>,
    value: Vec<u8>,
    /// How much of both rooms the entry takes.
    ends: (usize, usize),
}

impl Cursor<'_> {
    /// Goes to the first entry, or to the last. False if there is none.
    pub fn end(&mut self, last: bool) -> Result<bool> {
        self.go(if last { flag::LAST } else { flag::FIRST }, None)
    }

    /// Goes to the first entry at or behind `key`. False if there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.go(flag::SET_RANGE, Some(key))
    }

    /// Goes one entry ahead or back. False if there is none.
    pub fn step(&mut self, back: bool) -> Result<bool> {
        self.go(if back { flag::PREV } else { flag::NEXT }, None)
    }

    fn go(&mut self, how: u32, sought: Option<&[u8]>) -> Result<bool> {
        loop {
            let size = sought.map_or(0, <[u8]>::len);
            if let Some(sought) = sought {
                self.key.resize(self.key.len().max(size), 0);
                self.key[..size].copy_from_slice(sought);
            }
            let mut key = Item::room(&mut self.key);
            key.size = u32::try_from(size).unwrap_or(u32::MAX);
            let mut value = Item::room(&mut self.value);
            // SAFETY: the cursor is open, the type is that of `db.h`, and the rooms are as long as
            // the items say.
            let code = unsafe {
                let get: unsafe extern "C" fn(Handle, *mut Item, *mut Item, u32) -> c_int =
                    method(self.handle, place::CURSOR_GET);
                get(self.handle, &raw mut key, &raw mut value, how)
            };
            match code {
                flag::NOTFOUND => return Ok(false),
                flag::DEADLOCK => {}
                // The cursor has not moved; the sizes say what is needed.
                flag::BUFFER_SMALL => {
                    self.key.resize(self.key.len().max(key.size as usize), 0);
                    self.value.resize(self.value.len().max(value.size as usize), 0);
                }
                code => {
                    self.database.functions.outcome("iteration", code)?;
                    self.ends = (key.size as usize, value.size as usize);
                    return Ok(true);
                }
            }
        }
    }

    /// The entry under the cursor.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        (&self.key[..self.ends.0], &self.value[..self.ends.1])
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the cursor is open and closed once; the type is that of `db.h`.
        unsafe {
            let close: unsafe extern "C" fn(Handle) -> c_int =
                method(self.handle, place::CURSOR_CLOSE);
            close(self.handle);
        }
    }
}
