//! Values in pieces: from a function into the database, and back through a reader.

#![allow(unsafe_code, reason = "these are exported functions, and they call functions of C")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{
    border, bytes, exclusive, free, give, place, quiet, room, shared, shared_or_null, write_if,
};
use crate::code::esker_code;
use crate::fault::{Fault, Result, esker_error, misuse};
use crate::handle::kind;
use crate::ingestion::esker_ingestion;
use crate::keyspace::esker_keyspace;
use crate::snapshot::esker_snapshot;
use esker::{Keyspace, ValueReader};
use std::ffi::{c_int, c_void};
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// Gives the next bytes of a value: at most `capacity` into `buffer`, and their number, more than
/// none, into `len`. It returns 0; after the last byte it returns 0 and leaves `len` at 0. To give up,
/// it returns an error of the operating system (`errno`); after `EINTR` it is called again. It is called
/// by the thread whose call it serves, and must return (no `longjmp`, no exception).
// SAFETY: the giver of such a function promises that it may be called so (B5).
pub type esker_read = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        buffer: *mut c_void,
        capacity: usize,
        len: *mut usize,
    ) -> c_int,
>;

/// A value that C gives in pieces.
struct Source {
    read: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut usize) -> c_int,
    context: *mut c_void,
}

impl Source {
    fn new(read: esker_read, context: *mut c_void) -> Result<Self> {
        match read {
            Some(read) => Ok(Self { read, context }),
            None => misuse("the read function is NULL: give one"),
        }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        let (buffer, capacity) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: the giver promises that it may be called so, writes at most `capacity` bytes, and
        // returns (B5).
        match unsafe { (self.read)(self.context, buffer, capacity, &raw mut len) } {
            0 if len <= capacity => Ok(len),
            0 => Err(io::Error::other(format!(
                "the read function gave {len} bytes where {capacity} were asked for"
            ))),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// A keyspace, a key in it, and the value that a function gives for it, which may free the keyspace's
/// handle.
///
/// # Safety
/// B1 for `keyspace`, B2 for `key`, B5 for `read`.
unsafe fn given<'a>(
    keyspace: *const esker_keyspace,
    (key, key_len): (*const c_void, usize),
    (read, context): (esker_read, *mut c_void),
) -> Result<(Keyspace, &'a [u8], Source)> {
    let keyspace = shared(keyspace)?.keyspace.clone();
    Ok((keyspace, bytes(key, key_len, "key")?, Source::new(read, context)?))
}

/// Inserts a value that comes in pieces from `read`, which is called with `context` until the value
/// ends. It may have up to 1 GiB, whatever the memory option: no more than two pieces of it, of
/// 256 KiB, are in memory. Its bytes go to `value_len`, which may be NULL.
///
/// It is durable when the call returns. A value of more than one piece costs three syncs and does not go
/// through the log: use this for what is large. Nothing is visible before all of the value has come.
///
/// Errors: `ESKER_IO` if `read` fails; nothing is written then. `ESKER_VALUE_TOO_LARGE` above 1 GiB.
/// Others as `esker_put` and `esker_ingestion_commit`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_put_from(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    read: esker_read,
    context: *mut c_void,
    value_len: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    write_if(value_len, 0);
    border(error, || {
        let (keyspace, key, source) = given(keyspace, (key, key_len), (read, context))?;
        write_if(value_len, keyspace.insert_reader(key, source)?);
        Ok(())
    })
}

/// Adds an entry to an ingestion whose value comes in pieces, as in `esker_put_from`. Errors:
/// `ESKER_IO` if `read` fails, then `esker_error_os_code` is what it returned, and the ingestion goes on
/// without the entry. Others as `esker_ingestion_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_put_from(
    ingestion: *mut esker_ingestion,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    read: esker_read,
    context: *mut c_void,
    value_len: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    write_if(value_len, 0);
    border(error, || {
        let (keyspace, key, source) = given(keyspace, (key, key_len), (read, context))?;
        let mut ingestion = exclusive(ingestion)?;
        write_if(value_len, ingestion.open()?.insert_reader(&keyspace, key, source)?);
        Ok(())
    })
}

/// A reader of one value, as the value was when the reader was made. Only one thread may use it at a
/// time. While it lives, the space of its value is not given back, and the database stays open.
pub struct esker_value_reader(());

kind!(esker_value_reader, b"eskvread", ValueReader);

/// Makes a reader of the value under a key, or NULL if there is none, of a snapshot, or of the
/// present state if that is NULL. It begins at the first byte. A value of `esker_put_from` is read in
/// pieces of 256 KiB, of which two are in memory; others are in memory as a whole. Free it with
/// `esker_value_reader_free`. Errors: as `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_reader_new(
    keyspace: *const esker_keyspace,
    snapshot: *const esker_snapshot,
    key: *const c_void,
    key_len: usize,
    reader: *mut *mut esker_value_reader,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(reader, "reader", std::ptr::null_mut())?;
        let (keyspace, key) = (&shared(keyspace)?.keyspace, bytes(key, key_len, "key")?);
        let found = match shared_or_null(snapshot)? {
            None => keyspace.get_reader(key)?,
            Some(snapshot) => snapshot.get_reader(keyspace, key)?,
        };
        *place = found.map_or(std::ptr::null_mut(), give);
        Ok(())
    })
}

/// Frees a reader. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_reader_free(reader: *mut esker_value_reader) {
    free(reader);
}

/// The bytes of the whole value; 0 if this is no `esker_value_reader`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_reader_len(reader: *mut esker_value_reader) -> u64 {
    quiet(0, || Ok(exclusive(reader)?.len()))
}

/// Copies the next bytes of the value into the caller's buffer: `capacity`, or what is left of the
/// value. `len` says how many; less than `capacity` only at the end. `buffer` may be NULL if `capacity`
/// is 0.
///
/// Errors: `ESKER_CORRUPTION` and `ESKER_IO` where the data cannot be read, `ESKER_CLOSED`,
/// `ESKER_FORKED`. After an error it is not known where the reader is: place it with
/// `esker_value_reader_seek`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_reader_read(
    reader: *mut esker_value_reader,
    buffer: *mut c_void,
    capacity: usize,
    len: *mut usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let len = place(len, "len", 0)?;
        let mut reader = exclusive(reader)?;
        let buffer = room(buffer, capacity)?;
        let mut filled = 0;
        while filled < capacity {
            let piece = reader.fill_buf().map_err(of_reader)?;
            let taken = piece.len().min(capacity - filled);
            if taken == 0 {
                break;
            }
            std::ptr::copy_nonoverlapping(piece.as_ptr(), buffer.add(filled), taken);
            reader.consume(taken);
            filled += taken;
        }
        *len = filled;
        Ok(())
    })
}

/// Places a reader at this byte of the value, counted from 0; at or behind its end nothing is left to
/// read. Errors: as `esker_value_reader_read`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_reader_seek(
    reader: *mut esker_value_reader,
    offset: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        exclusive(reader)?.seek(SeekFrom::Start(offset)).map_err(of_reader)?;
        Ok(())
    })
}

/// The engine's error in one of its reader.
fn of_reader(error: io::Error) -> Fault {
    match error.downcast::<esker::Error>() {
        Ok(error) => Fault::Engine(error),
        Err(error) => Fault::Misuse(format!("the reader of a value failed: {error}")),
    }
}
