//! Options: a handle on which one function sets all numbers, so that new options need no new one.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, exclusive, free, give, quiet, shared};
use crate::callbacks::{Context, esker_comparator, esker_destroy};
use crate::code::esker_code;
use crate::fault::{Result, esker_error, misuse};
use crate::handle::kind;
use esker::{Clock, Compression, Durability, Error, Event, EventListener, LogKind, Recovery};
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

/// What a finished write survives.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_durability {
    /// The durability of the database's options.
    ESKER_DURABILITY_DEFAULT = 0,
    /// Nothing until it is flushed: the write is not logged.
    ESKER_DURABILITY_BUFFERED = 1,
    /// The end of the process. This is the default of the options.
    ESKER_DURABILITY_PROCESS = 2,
    /// Power loss: acknowledged after a sync that a group of writers shares.
    ESKER_DURABILITY_DISK = 3,
}

/// How blocks are compressed, for `ESKER_OPTION_COMPRESSION`.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_compression {
    /// New data raw, settled data LZ4. The default.
    ESKER_COMPRESSION_AUTO = 0,
    /// Never.
    ESKER_COMPRESSION_NONE = 1,
    /// LZ4 everywhere.
    ESKER_COMPRESSION_LZ4 = 2,
    /// New data raw, settled data Zstandard.
    ESKER_COMPRESSION_ZSTD = 3,
}

/// How the log is written, for `ESKER_OPTION_LOG`.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_log {
    /// Mapped if the file system supports it, else plain. The default.
    ESKER_LOG_AUTO = 0,
    /// One system call for each record.
    ESKER_LOG_PLAIN = 1,
    /// Copies into shared mappings.
    ESKER_LOG_MAPPED = 2,
}

/// How open handles a damaged log, for `ESKER_OPTION_RECOVERY`.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_recovery {
    /// Fails, and names the choices. The default.
    ESKER_RECOVERY_REFUSE = 0,
    /// Keeps the records before the damage and discards the rest of the log.
    ESKER_RECOVERY_KEEP_PREFIX = 1,
}

/// What `esker_options_set` sets. Flags are 0 for no and 1 for yes.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_option {
    /// The memory budget in bytes, at least 1 MiB; 0, the default: a quarter of the machine's
    /// memory or of the control group's limit.
    ESKER_OPTION_MEMORY = 1,
    /// What a write survives that gives no durability, an `esker_durability`. Default: PROCESS.
    ESKER_OPTION_DURABILITY = 2,
    /// Whether open makes a missing database. Default: yes.
    ESKER_OPTION_CREATE_IF_MISSING = 3,
    /// Whether open fails if the database exists. Default: no.
    ESKER_OPTION_ERROR_IF_EXISTS = 4,
    /// Opens without changing a byte: no writes, no background work. Default: no.
    ESKER_OPTION_READ_ONLY = 5,
    /// How many compactions may run at the same time; 0, the default: the number of cores, at least
    /// 2. With 1, a single thread flushes and compacts.
    ESKER_OPTION_WORKERS = 6,
    /// An `esker_compression`. Default: AUTO.
    ESKER_OPTION_COMPRESSION = 7,
    /// An `esker_log`. Default: AUTO.
    ESKER_OPTION_LOG = 8,
    /// An `esker_recovery`. Default: REFUSE.
    ESKER_OPTION_RECOVERY = 9,
    /// The longest time that a PROCESS write stays unsynced, in milliseconds; 0: only `esker_sync`
    /// and the system decide. Default: 5000.
    ESKER_OPTION_SYNC_INTERVAL_MS = 10,
    /// Bytes of one memtable; 0, the default: from the memory budget. Small sizes are for tests.
    ESKER_OPTION_MEMTABLE_BYTES = 11,
    /// Bytes of one partition's base. Default, also with 0: 8 write buffers, from 4 to 64 MiB, but 4/3
    /// of one if that is more. Small sizes are for tests.
    ESKER_OPTION_PARTITION_BYTES = 12,
    /// Bytes of one run segment. Default: 1 MiB. Small sizes are for tests.
    ESKER_OPTION_SEGMENT_BYTES = 13,
    /// Bytes of one block before compression. Default: 4 KiB.
    ESKER_OPTION_BLOCK_BYTES = 14,
    /// Bytes of the largest log file. Default: 64 MiB. Small sizes are for tests.
    ESKER_OPTION_LOG_SEGMENT_BYTES = 15,
    /// After which time data that nobody reads is compressed with Zstandard, in milliseconds; 0: never.
    /// Default: 3,600,000, an hour.
    ESKER_OPTION_COLD_AFTER_MS = 16,
    /// How much the run files may take, in percent of the live data, from 110 to 10,000; what snapshots
    /// and branches hold and the first 16 MiB do not count. Default: 145.
    ESKER_OPTION_MAX_SPACE_PERCENT = 17,
    /// Values of at least so many bytes are separated from their keys: compactions leave them where they
    /// are; 0: none is. At least 16. Default: 4,096.
    ESKER_OPTION_SEPARATE_VALUES_FROM = 18,
}

/// The options of a database. They are copied when a database is opened with them.
pub struct esker_options(());

kind!(esker_options, b"eskoptns", esker::Options);

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::InvalidArgument { what }.into())
}

/// A durability class from C; `None`: the default one.
pub(crate) fn durability(number: i32) -> Result<Option<Durability>> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Durability::Buffered)),
        2 => Ok(Some(Durability::Process)),
        3 => Ok(Some(Durability::Disk)),
        _ => refuse(format!("{number} is no durability: give an esker_durability")),
    }
}

fn set(options: &mut esker::Options, option: i32, value: u64) -> Result<()> {
    let one_of = |what: &str| format!("{value} is no value of option {option}: give {what}");
    let flag = || match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => refuse(one_of("0 or 1")),
    };
    let small = || u32::try_from(value).or_else(|_| refuse(one_of("less than 4 GiB")));
    match option {
        1 => options.memory = (value != 0).then_some(value),
        2 => {
            let class = i32::try_from(value).or_else(|_| refuse(one_of("an esker_durability")))?;
            options.durability = durability(class)?.unwrap_or_default();
        }
        3 => options.create_if_missing = flag()?,
        4 => options.error_if_exists = flag()?,
        5 => options.read_only = flag()?,
        6 => {
            let workers = usize::try_from(value).or_else(|_| refuse(one_of("fewer")))?;
            options.workers = (workers != 0).then_some(workers);
        }
        7 => {
            options.compression = match value {
                0 => Compression::Auto,
                1 => Compression::None,
                2 => Compression::Lz4,
                3 => Compression::Zstd,
                _ => return refuse(one_of("an esker_compression")),
            }
        }
        8 => {
            options.log = match value {
                0 => LogKind::Auto,
                1 => LogKind::Plain,
                2 => LogKind::Mapped,
                _ => return refuse(one_of("an esker_log")),
            }
        }
        9 => {
            options.recovery = match value {
                0 => Recovery::Refuse,
                1 => Recovery::KeepPrefix,
                _ => return refuse(one_of("an esker_recovery")),
            }
        }
        10 => options.sync_interval = (value != 0).then(|| Duration::from_millis(value)),
        11 => options.memtable_bytes = (value != 0).then_some(value),
        12 => options.partition_bytes = (value != 0).then_some(value),
        13 => options.segment_bytes = small()?,
        14 => options.block_bytes = small()?,
        15 => options.log_file_bytes = small()?,
        16 => options.cold_after = (value != 0).then(|| Duration::from_millis(value)),
        17 => options.max_space_amplification = f64::from(small()?) / 100.0,
        18 => options.separate_values_from = (value != 0).then(small).transpose()?,
        _ => return refuse(format!("{option} is no option: give an esker_option")),
    }
    Ok(())
}

/// Makes options, all at their defaults. Free them with `esker_options_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_new() -> *mut esker_options {
    quiet(std::ptr::null_mut(), || Ok(give(esker::Options::default())))
}

/// Sets an option, an `esker_option`. `ESKER_INVALID_ARGUMENT` for a value that the option cannot
/// have; sizes are checked when a database is opened.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set(
    options: *mut esker_options,
    option: i32,
    value: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || set(&mut *exclusive(options)?, option, value))
}

/// Adds a comparator that keyspaces of the database may need; they find it by its name. The options
/// keep it, so the handle may be freed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_add_comparator(
    options: *mut esker_options,
    comparator: *const esker_comparator,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let comparator = shared(comparator)?.clone();
        exclusive(options)?.comparators.push(comparator);
        Ok(())
    })
}

/// Returns the time: milliseconds since the beginning of 1970 (UTC). Many threads call it at once.
/// It must return (no `longjmp`, no exception), and must not call the database.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_clock = Option<unsafe extern "C" fn(context: *mut c_void) -> u64>;

/// A clock that calls C.
struct CalledClock {
    now: unsafe extern "C" fn(*mut c_void) -> u64,
    context: Context,
}

impl Clock for CalledClock {
    fn now_millis(&self) -> u64 {
        // SAFETY: the giver promises that it may be called so from any thread, and returns (B5).
        unsafe { (self.now)(self.context.pointer()) }
    }
}

/// Sets the clock for times to live, in place of the system's: for tests. `context` is passed to
/// every call and destroyed after the last one; if this function fails, it is not destroyed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_clock(
    options: *mut esker_options,
    now: esker_clock,
    context: *mut c_void,
    destroy: esker_destroy,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let Some(now) = now else { return misuse("the clock is NULL: give one") };
        let mut options = exclusive(options)?;
        options.clock = Arc::new(CalledClock { now, context: Context::new(context, destroy) });
        Ok(())
    })
}

/// Is told about an event of a database: an object of JSON of `len` bytes, without a newline and
/// without a zero at its end, valid during the call. Its members are described in
/// docs/operations.md. One thread of the database calls it, for one event after the other; if
/// opening fails, the thread that opens does. It must return (no `longjmp`, no exception), must
/// not close the database, and must not free its last handle.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_event_callback =
    Option<unsafe extern "C" fn(context: *mut c_void, json: *const c_char, len: usize)>;

/// A listener that calls C.
struct CalledListener {
    callback: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
    context: Context,
}

impl EventListener for CalledListener {
    fn event(&self, event: &Event) {
        let json = event.to_json();
        // SAFETY: the giver promises that it may be called so from any thread, and returns (B5).
        unsafe { (self.callback)(self.context.pointer(), json.as_ptr().cast(), json.len()) }
    }
}

/// Sets who is told about events: flushes, compactions, stalls of writers, damage and others. A slow
/// callback delays later events, and closing, but no other call. `context` is passed to every call
/// and destroyed after the last one; if this function fails, it is not destroyed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_event_callback(
    options: *mut esker_options,
    callback: esker_event_callback,
    context: *mut c_void,
    destroy: esker_destroy,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let Some(callback) = callback else { return misuse("the callback is NULL: give one") };
        let mut options = exclusive(options)?;
        let context = Context::new(context, destroy);
        options.on_event = Some(Arc::new(CalledListener { callback, context }));
        Ok(())
    })
}

/// Frees options. NULL is fine. Databases opened with them are not affected.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_free(options: *mut esker_options) {
    free(options);
}
