//! The codes that calls return.

use esker_code::*;

/// The result of a call. The numbers never change; later versions may add some.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_code {
    /// The call succeeded.
    ESKER_OK = 0,
    /// The operating system refused an operation on a file.
    ESKER_IO = 1,
    /// Bytes on disk differ from what was written.
    ESKER_CORRUPTION = 2,
    /// Another handle, in this process or another, has the database open.
    ESKER_LOCKED = 3,
    /// The directory holds something else than an Esker database.
    ESKER_NOT_A_DATABASE = 4,
    /// There is no database, and the options forbid making one.
    ESKER_MISSING = 5,
    /// There is a database, and the options demand a new one.
    ESKER_EXISTS = 6,
    /// A file was written by a format version that this build does not know.
    ESKER_UNKNOWN_FORMAT = 7,
    /// The key is longer than 65,535 bytes.
    ESKER_KEY_TOO_LONG = 8,
    /// The value is larger than an eighth of the memory option, or than 1 GiB.
    ESKER_VALUE_TOO_LARGE = 9,
    /// The batch is larger than an eighth of the memory option.
    ESKER_BATCH_TOO_LARGE = 10,
    /// The device is full; writes go on by themselves when it has space again.
    ESKER_DISK_FULL = 11,
    /// An earlier failure, see `esker_error_cause`, ended writing until the database is reopened.
    ESKER_POISONED = 12,
    /// The database was closed.
    ESKER_CLOSED = 13,
    /// This is a child process of the one that opened the database.
    ESKER_FORKED = 14,
    /// The keyspace was dropped.
    ESKER_KEYSPACE_DROPPED = 15,
    /// The keyspace needs a comparator that was not given.
    ESKER_COMPARATOR_MISSING = 16,
    /// The keyspace has another comparator than the one given.
    ESKER_COMPARATOR_MISMATCH = 17,
    /// A callback failed in a way that the library could contain.
    ESKER_USER_CODE_PANICKED = 18,
    /// The database is open read-only.
    ESKER_READ_ONLY = 19,
    /// The call does not accept this argument.
    ESKER_INVALID_ARGUMENT = 20,
    /// Something that the transaction read was written meanwhile: begin a new transaction.
    ESKER_CONFLICT = 21,
    /// Transactions waited for each other's locks: begin a new transaction.
    ESKER_DEADLOCK = 22,
    /// The transaction did not get a lock in time: begin a new transaction, or wait longer.
    ESKER_LOCK_TIMEOUT = 23,
    /// The transaction's own code ended it.
    ESKER_ABORTED = 24,
    /// The keyspace needs a merge operator that was not given.
    ESKER_MERGE_OPERATOR_MISSING = 25,
    /// The keyspace has another merge operator than the one given.
    ESKER_MERGE_OPERATOR_MISMATCH = 26,
    /// A merge operator could not combine its operands into a value.
    ESKER_MERGE_FAILED = 27,
    /// There is no branch or named snapshot of this name, or it was dropped.
    ESKER_BRANCH_MISSING = 28,
    /// A branch or named snapshot of this name exists already.
    ESKER_BRANCH_EXISTS = 29,
    /// The directory holds the incomplete output of an interrupted repair.
    ESKER_UNFINISHED = 30,
    /// A call that does not wait would have had to; nothing was written. See
    /// `esker_error_retry_after`.
    ESKER_WOULD_BLOCK = 31,
    /// Keys of an ingestion do not ascend.
    ESKER_OUT_OF_ORDER = 32,
    /// The program ended a long call. What the call did so far stays.
    ESKER_INTERRUPTED = 33,
    /// The call is wrong: NULL, a handle of another kind, an impossible length.
    ESKER_MISUSE = 100,
    /// The library has a defect, which was contained. Please report the message.
    ESKER_PANIC = 101,
    /// This version of the C interface has no code for the error; its message says what failed.
    ESKER_OTHER = 102,
}

impl esker_code {
    /// The code with a number.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        Some(match number {
            0 => ESKER_OK,
            1 => ESKER_IO,
            2 => ESKER_CORRUPTION,
            3 => ESKER_LOCKED,
            4 => ESKER_NOT_A_DATABASE,
            5 => ESKER_MISSING,
            6 => ESKER_EXISTS,
            7 => ESKER_UNKNOWN_FORMAT,
            8 => ESKER_KEY_TOO_LONG,
            9 => ESKER_VALUE_TOO_LARGE,
            10 => ESKER_BATCH_TOO_LARGE,
            11 => ESKER_DISK_FULL,
            12 => ESKER_POISONED,
            13 => ESKER_CLOSED,
            14 => ESKER_FORKED,
            15 => ESKER_KEYSPACE_DROPPED,
            16 => ESKER_COMPARATOR_MISSING,
            17 => ESKER_COMPARATOR_MISMATCH,
            18 => ESKER_USER_CODE_PANICKED,
            19 => ESKER_READ_ONLY,
            20 => ESKER_INVALID_ARGUMENT,
            21 => ESKER_CONFLICT,
            22 => ESKER_DEADLOCK,
            23 => ESKER_LOCK_TIMEOUT,
            24 => ESKER_ABORTED,
            25 => ESKER_MERGE_OPERATOR_MISSING,
            26 => ESKER_MERGE_OPERATOR_MISMATCH,
            27 => ESKER_MERGE_FAILED,
            28 => ESKER_BRANCH_MISSING,
            29 => ESKER_BRANCH_EXISTS,
            30 => ESKER_UNFINISHED,
            31 => ESKER_WOULD_BLOCK,
            32 => ESKER_OUT_OF_ORDER,
            33 => ESKER_INTERRUPTED,
            100 => ESKER_MISUSE,
            101 => ESKER_PANIC,
            102 => ESKER_OTHER,
            _ => return None,
        })
    }
}
