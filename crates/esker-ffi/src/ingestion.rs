//! Ingestion: sorted entries that go into the files of a database directly.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, bytes, exclusive, free, give, place, range, shared, take, write_if};
use crate::code::esker_code;
use crate::database::esker_db;
use crate::fault::{Result, esker_error, misuse};
use crate::handle::kind;
use crate::keyspace::{bytes_list, esker_keyspace};
use esker::Ingestion;
use std::ffi::c_void;
use std::time::Duration;

/// Sorted entries on their way into a database, of any number of its keyspaces. It is the fastest way
/// to load sorted data: each byte is written once, compressed, and nothing goes into the log. The
/// keys of each keyspace must come in its ascending order; the order among keyspaces does not matter.
///
/// Nothing is visible before `esker_ingestion_commit`. Then all entries are, at once, and survive a
/// power cut; they replace what was written before. Only one thread may use it at a time. If it is
/// freed without a commit, its files are removed.
pub struct esker_ingestion(());

kind!(esker_ingestion, b"eskinges", IngestionInner);

/// The value behind an [`esker_ingestion`].
pub(crate) struct IngestionInner {
    /// `None`: it was committed.
    ingestion: Option<Ingestion>,
}

impl IngestionInner {
    pub(crate) fn open(&mut self) -> Result<&mut Ingestion> {
        match &mut self.ingestion {
            Some(ingestion) => Ok(ingestion),
            None => misuse("the ingestion was committed: begin another"),
        }
    }
}

/// Begins an ingestion. Free it with `esker_ingestion_free`.
///
/// Errors: `ESKER_READ_ONLY`, `ESKER_CLOSED`, `ESKER_BRANCH_MISSING`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_begin(
    db: *const esker_db,
    ingestion: *mut *mut esker_ingestion,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(ingestion, "ingestion", std::ptr::null_mut())?;
        let begun = shared(db)?.db.ingest()?;
        *place = give(IngestionInner { ingestion: Some(begun) });
        Ok(())
    })
}

/// Frees an ingestion; without a commit its files are removed. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_free(ingestion: *mut esker_ingestion) {
    free(ingestion);
}

/// Adds an entry, whose key must be greater than the last one that was added to the same keyspace.
///
/// Errors: `ESKER_OUT_OF_ORDER`, `ESKER_KEY_TOO_LONG`, `ESKER_VALUE_TOO_LARGE`: the ingestion goes
/// on without the entry. `ESKER_KEYSPACE_DROPPED`, `ESKER_READ_ONLY`, `ESKER_COMPARATOR_MISSING`,
/// `ESKER_INVALID_ARGUMENT` for a keyspace of another database. `ESKER_DISK_FULL`, `ESKER_IO`: nothing
/// more is accepted, free it.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_put(
    ingestion: *mut esker_ingestion,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
        Ok(exclusive(ingestion)?.open()?.insert(keyspace, key, value)?)
    })
}

/// Adds `count` entries, whose keys must ascend and be greater than the last one that was added to the
/// same keyspace. `keys`, `key_lens`, `values` and `value_lens` have `count` elements. `added` gets the
/// number of entries that were added, and may be NULL.
///
/// Errors: as `esker_ingestion_put`, for the first entry that is refused, which is the one with the index
/// `added`. Those before it were added, those behind it not. `ESKER_MISUSE` for arguments: none was added.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_put_many(
    ingestion: *mut esker_ingestion,
    keyspace: *const esker_keyspace,
    keys: *const *const c_void,
    key_lens: *const usize,
    values: *const *const c_void,
    value_lens: *const usize,
    count: usize,
    added: *mut usize,
    error: *mut *mut esker_error,
) -> esker_code {
    write_if(added, 0);
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let keys = bytes_list(keys, key_lens, count, ("keys", "key"))?;
        let values = bytes_list(values, value_lens, count, ("values", "value"))?;
        let mut inner = exclusive(ingestion)?;
        let ingestion = inner.open()?;
        let mut number = 0;
        let all: Result<()> = keys.iter().zip(values).try_for_each(|(key, value)| {
            ingestion.insert(keyspace, key, value)?;
            number += 1;
            Ok(())
        });
        write_if(added, number);
        all
    })
}

/// Adds an entry that expires after `milliseconds`, counted from now. Errors: as
/// `esker_ingestion_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_put_ttl(
    ingestion: *mut esker_ingestion,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    milliseconds: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
        let ttl = Duration::from_millis(milliseconds);
        Ok(exclusive(ingestion)?.open()?.insert_with_ttl(keyspace, key, value, ttl)?)
    })
}

/// Adds an operand for the keyspace's merge operator, in the order of keys. Errors: as
/// `esker_ingestion_put` and `esker_merge`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_merge(
    ingestion: *mut esker_ingestion,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, operand) = (bytes(key, key_len, "key")?, bytes(operand, operand_len, "operand")?);
        Ok(exclusive(ingestion)?.open()?.merge(keyspace, key, operand)?)
    })
}

/// Adds the removal of a key, in the order of keys. Errors: as `esker_ingestion_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_delete(
    ingestion: *mut esker_ingestion,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        Ok(exclusive(ingestion)?.open()?.remove(keyspace, bytes(key, key_len, "key")?)?)
    })
}

/// Removes all keys from `start` up to, not including, `end` that were written before the commit;
/// entries of the ingestion stay. NULL with the length 0 means no bound on that side. Ranges may come
/// in any order, and stay in memory until the commit.
///
/// Errors: `ESKER_BATCH_TOO_LARGE` beyond an eighth of the memory budget; others as
/// `esker_ingestion_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_delete_range(
    ingestion: *mut esker_ingestion,
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let range = range((start, start_len), (end, end_len))?;
        Ok(exclusive(ingestion)?.open()?.remove_range::<&[u8]>(keyspace, range)?)
    })
}

/// Makes what was added so far durable, but not visible, as `esker_ingestion_join` and
/// `esker_ingestion_commit` do. A thread that calls it at its end saves the joining one the time.
///
/// Errors: `ESKER_DISK_FULL`, `ESKER_IO`, `ESKER_CLOSED`: nothing more is accepted, free it.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_sync(
    ingestion: *mut esker_ingestion,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(exclusive(ingestion)?.open()?.sync()?))
}

/// Takes over everything of another ingestion of the same database, which another thread may have
/// filled, so that both take effect together. `other` is freed, also after an error other than
/// `ESKER_MISUSE`; then its files are removed. Where both added to a keyspace, the entries must lie apart: those of `other` all
/// before, behind or between stretches that were added to the first one.
///
/// Errors: `ESKER_OUT_OF_ORDER` if they do not, `ESKER_BATCH_TOO_LARGE`,
/// `ESKER_INVALID_ARGUMENT` for an ingestion of another database: the first one goes on.
/// `ESKER_DISK_FULL`, `ESKER_IO`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_join(
    ingestion: *mut esker_ingestion,
    other: *mut esker_ingestion,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let mut inner = exclusive(ingestion)?;
        let first = inner.open()?;
        exclusive(other)?.open()?;
        let taken = take(other).and_then(|other| other.ingestion);
        taken.map_or(Ok(()), |other| Ok(first.join(other)?))
    })
}

/// Makes all entries durable and visible at once, and ends the ingestion, which still has to be
/// freed. If memtables hold something between the keys or in removed ranges, they are flushed first.
///
/// Errors: `ESKER_KEYSPACE_DROPPED`, `ESKER_DISK_FULL`, `ESKER_IO`, `ESKER_CLOSED`: nothing is
/// visible, and the files are removed. `ESKER_POISONED`: the next open finds all entries or none.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_commit(
    ingestion: *mut esker_ingestion,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let mut ingestion = exclusive(ingestion)?;
        ingestion.open()?;
        ingestion.ingestion.take().map_or(Ok(()), |open| Ok(open.commit()?))
    })
}
