//! One keyspace: reads, single writes, its name and its maintenance.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{
    answer, border, bound, bytes, free, place, quiet, range, room, shared, write_if,
};
use crate::code::esker_code;
use crate::fault::{Result, esker_error, misuse};
use crate::handle::kind;
use crate::options::durability;
use crate::text::Text;
use crate::value::{esker_value, give_found, give_text, give_value};
use esker::internals::kept::get_kept;
use esker::{Batch, Db, Keyspace};
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// A named, ordered map inside a database. It may be used from any thread.
pub struct esker_keyspace(());

kind!(esker_keyspace, b"eskspace", KeyspaceInner);

/// The value behind an [`esker_keyspace`].
pub(crate) struct KeyspaceInner {
    pub(crate) db: Db,
    pub(crate) keyspace: Keyspace,
    name: Text,
    comparator: Option<Text>,
}

impl KeyspaceInner {
    pub(crate) fn new(db: Db, keyspace: Keyspace) -> Self {
        let name = Text::new(keyspace.name());
        let comparator = keyspace.comparator_name().map(Text::new);
        Self { db, keyspace, name, comparator }
    }
}

/// Frees the handle. NULL is fine. The keyspace stays in the database.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_free(keyspace: *mut esker_keyspace) {
    free(keyspace);
}

/// The name, followed by a zero byte; its length goes to `len`, which may be NULL. The text lives
/// as long as the handle. NULL if this is no `esker_keyspace`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_name(
    keyspace: *const esker_keyspace,
    len: *mut usize,
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || Ok(answer(Some(&shared(keyspace)?.name), len)))
}

/// The name of the comparator that the keyspace was made with, or NULL for byte order; as
/// `esker_keyspace_name`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_comparator(
    keyspace: *const esker_keyspace,
    len: *mut usize,
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || Ok(answer(shared(keyspace)?.comparator.as_ref(), len)))
}

/// Writes the name of the keyspace's merge operator to `operator_name`, or NULL if it has none. A
/// zero byte follows the name; release it with `esker_value_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_merge_operator(
    keyspace: *const esker_keyspace,
    operator_name: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(operator_name, "operator_name", std::ptr::null_mut())?;
        let operator = shared(keyspace)?.keyspace.merge_operator();
        *place = operator.map_or(std::ptr::null_mut(), give_text);
        Ok(())
    })
}

/// The time to live, in milliseconds, of writes that give none; 0: they never expire, or this is no
/// `esker_keyspace`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_ttl(keyspace: *const esker_keyspace) -> u64 {
    quiet(0, || {
        let ttl = shared(keyspace)?.keyspace.ttl().unwrap_or_default();
        Ok(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
    })
}

/// Changes the time to live, in milliseconds, of later writes that give none; 0: they never expire.
/// As `esker_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_set_ttl(
    keyspace: *const esker_keyspace,
    milliseconds: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let ttl = (milliseconds != 0).then(|| Duration::from_millis(milliseconds));
        Ok(shared(keyspace)?.keyspace.set_ttl(ttl)?)
    })
}

/// Inserts a value under a key and replaces the old one. `durability` is an `esker_durability`.
///
/// Errors: `ESKER_KEY_TOO_LONG`, `ESKER_VALUE_TOO_LARGE`, `ESKER_DISK_FULL`, `ESKER_POISONED`,
/// `ESKER_KEYSPACE_DROPPED`, `ESKER_READ_ONLY`, `ESKER_CLOSED`, `ESKER_FORKED`. After an error the
/// write may or may not have happened.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_put(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    durability: i32,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
        match self::durability(durability)? {
            None => keyspace.insert(key, value)?,
            Some(class) => keyspace.insert_with(key, value, class)?,
        }
        Ok(())
    })
}

/// Inserts a value as `esker_put` does, with the durability of the database, but never waits because
/// writers are slowed, for memory, or for space on a full device: then it fails with
/// `ESKER_WOULD_BLOCK`, and nothing is written. It may wait for a sync, and while a log file is
/// prepared.
///
/// Errors: as `esker_put`; `ESKER_WOULD_BLOCK`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_try_put(
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
        Ok(keyspace.try_insert(key, value)?)
    })
}

/// Removes a key, if it exists, without a wait: as `esker_try_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_try_delete(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        Ok(keyspace.try_remove(bytes(key, key_len, "key")?)?)
    })
}

/// Inserts a value that expires after `milliseconds`; 0: at once. Otherwise as `esker_put`,
/// with the durability of the database.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_put_ttl(
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
        Ok(keyspace.insert_with_ttl(key, value, Duration::from_millis(milliseconds))?)
    })
}

/// Writes an operand, which the keyspace's merge operator applies when the key is read or
/// compacted: this changes a value without reading it. As `esker_put`; `ESKER_INVALID_ARGUMENT` if
/// the keyspace has no merge operator.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_merge(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    durability: i32,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, operand) = (bytes(key, key_len, "key")?, bytes(operand, operand_len, "operand")?);
        match self::durability(durability)? {
            None => keyspace.merge(key, operand)?,
            Some(class) => keyspace.merge_with(key, operand, class)?,
        }
        Ok(())
    })
}

/// Writes `new` under a key if its value is `expected`, in one atomic step; `done` says whether it
/// was written. NULL with the length 0 means no value, for either. As `esker_put`, with the
/// durability of the database.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_compare_and_set(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    expected: *const c_void,
    expected_len: usize,
    new_value: *const c_void,
    new_value_len: usize,
    done: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let done = place(done, "done", false)?;
        let keyspace = &shared(keyspace)?.keyspace;
        let expected = bound(expected, expected_len, "expected value")?;
        let new_value = bound(new_value, new_value_len, "new value")?;
        *done = keyspace.compare_and_set(bytes(key, key_len, "key")?, expected, new_value)?;
        Ok(())
    })
}

/// Inserts a value if the key has none; `done` says whether it was inserted. As
/// `esker_compare_and_set`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_insert_if_absent(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    done: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let done = place(done, "done", false)?;
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
        *done = keyspace.insert_if_absent(key, value)?;
        Ok(())
    })
}

/// Removes a key, if it exists. As `esker_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_delete(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    durability: i32,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let key = bytes(key, key_len, "key")?;
        match self::durability(durability)? {
            None => keyspace.remove(key)?,
            Some(class) => keyspace.remove_with(key, class)?,
        }
        Ok(())
    })
}

/// Removes all keys from `start` up to, not including, `end`, with one range delete; the cost does
/// not depend on what the range holds. NULL with the length 0 means no bound on that side. As
/// `esker_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_delete_range(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    durability: i32,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let range = range((start, start_len), (end, end_len))?;
        removed(keyspace, durability, |batch, keyspace| {
            batch.remove_range::<&[u8]>(keyspace, range)
        })
    })
}

/// Removes all keys that begin with `prefix`, with one range delete; the cost does not depend on how
/// many there are. As `esker_put`, and `ESKER_INVALID_ARGUMENT` in a keyspace with a custom
/// comparator.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_delete_prefix(
    keyspace: *const esker_keyspace,
    prefix: *const c_void,
    prefix_len: usize,
    durability: i32,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let prefix = bytes(prefix, prefix_len, "prefix")?;
        removed(keyspace, durability, |batch, keyspace| batch.remove_prefix(keyspace, prefix))
    })
}

/// Removes all entries; the cost does not depend on how many there are. The keyspace stays. As
/// `esker_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_clear(
    keyspace: *const esker_keyspace,
    durability: i32,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        removed(keyspace, durability, |batch, keyspace| batch.remove_range::<&[u8]>(keyspace, ..))
    })
}

/// Writes what `remove` adds to a batch.
unsafe fn removed(
    keyspace: *const esker_keyspace,
    durability: i32,
    remove: impl FnOnce(&mut Batch, &Keyspace) -> esker::Result<()>,
) -> Result<()> {
    let (inner, class) = (shared(keyspace)?, self::durability(durability)?);
    let mut batch = Batch::new();
    remove(&mut batch, &inner.keyspace)?;
    match class {
        None => inner.db.write(batch)?,
        Some(class) => inner.db.write_with(batch, class)?,
    };
    Ok(())
}

/// Reads the value under a key into `value`, or NULL if there is none; release it with
/// `esker_value_free`. Its bytes stay as they are until then, whatever is written, and after the
/// database was closed.
///
/// A value of 4,096 bytes or more is not copied if it is in a file: it stays in its block, unless the
/// block takes more than twice the memory of the value, or what iterators and values keep exceeds an
/// eighth of the memory option. Others are copied once, into memory of their own.
///
/// Errors: `ESKER_CORRUPTION` and `ESKER_IO` where the data cannot be read,
/// `ESKER_KEYSPACE_DROPPED`, `ESKER_CLOSED`, `ESKER_FORKED`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_get(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(value, "value", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        *place = give_found(get_kept(keyspace, None, bytes(key, key_len, "key")?)?);
        Ok(())
    })
}

/// Copies at most `capacity` bytes of the value under a key into the caller's buffer, without
/// allocating. `found` says whether there is a value and `value_len` how long it is; if it is
/// longer than `capacity`, give a larger buffer. `buffer` may be NULL if `capacity` is 0. As
/// `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_get_copy(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_len: *mut usize,
    found: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let value_len = place(value_len, "value_len", 0)?;
        let found = place(found, "found", false)?;
        let keyspace = &shared(keyspace)?.keyspace;
        let buffer = room(buffer, capacity)?;
        let len = keyspace.get_with(bytes(key, key_len, "key")?, |value| {
            let taken = value.len().min(capacity);
            if taken > 0 {
                std::ptr::copy_nonoverlapping(value.as_ptr(), buffer, taken);
            }
            value.len()
        })?;
        *found = len.is_some();
        *value_len = len.unwrap_or(0);
        Ok(())
    })
}

/// Whether a key has a value. As `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_contains(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    found: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let found = place(found, "found", false)?;
        *found = shared(keyspace)?.keyspace.contains_key(bytes(key, key_len, "key")?)?;
        Ok(())
    })
}

/// Reads the values under `count` keys, all as of one moment. `keys`, `key_lens` and `values` have
/// `count` elements; each element of `values` becomes a value, or NULL where there is none. After
/// an error all are NULL. As `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_multi_get(
    keyspace: *const esker_keyspace,
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let places = Places::new(values, count)?;
        let keyspace = &shared(keyspace)?.keyspace;
        let keys = bytes_list(keys, key_lens, count, ("keys", "key"))?;
        places.fill(keyspace.multi_get(keys)?);
        Ok(())
    })
}

/// The places for the results of a multi-get.
pub(crate) struct Places<'a>(&'a mut [*mut esker_value]);

impl Places<'_> {
    /// Sets all places to NULL.
    ///
    /// # Safety
    /// B3 for `count` places.
    pub(crate) unsafe fn new(values: *mut *mut esker_value, count: usize) -> Result<Self> {
        if count == 0 {
            return Ok(Self(&mut []));
        }
        check_array(values, count, "values")?;
        for index in 0..count {
            values.add(index).write(std::ptr::null_mut());
        }
        Ok(Self(std::slice::from_raw_parts_mut(values, count)))
    }

    pub(crate) fn fill(self, found: Vec<Option<Vec<u8>>>) {
        for (place, value) in self.0.iter_mut().zip(found) {
            *place = value.map_or(std::ptr::null_mut(), give_value);
        }
    }
}

fn check_array<T>(array: *const T, count: usize, name: &str) -> Result<()> {
    if array.is_null() || !array.is_aligned() {
        return misuse(format!("the array of {name} is NULL or not aligned"));
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|size| isize::try_from(size).is_ok());
    if fits { Ok(()) } else { misuse(format!("{count} {name} are more than memory holds")) }
}

/// The keys or values of a call that takes many; `names` are what errors call all and one of them.
///
/// # Safety
/// B2 for both arrays and for each element.
pub(crate) unsafe fn bytes_list<'a>(
    data: *const *const c_void,
    lens: *const usize,
    count: usize,
    names: (&'static str, &'static str),
) -> Result<Vec<&'a [u8]>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    check_array(data, count, names.0)?;
    check_array(lens, count, "lengths")?;
    let data = std::slice::from_raw_parts(data, count);
    let lens = std::slice::from_raw_parts(lens, count);
    data.iter().zip(lens).map(|(data, len)| bytes(*data, *len, names.1)).collect()
}

/// Flushes, and compacts what a compaction can make smaller, from `start` up to, not including,
/// `end`. NULL with the length 0 means no bound on that side.
///
/// Errors: those of reading and writing; `ESKER_CORRUPTION` if some of the data is damaged.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_compact(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let range = range((start, start_len), (end, end_len))?;
        Ok(shared(keyspace)?.keyspace.compact_range::<&[u8]>(range)?)
    })
}

/// Estimates how many bytes the flushed entries from `start` up to, not including, `end` take on
/// the device. NULL with the length 0 means no bound on that side.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_approximate_size(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    size: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(size, "size", 0)?;
        let range = range((start, start_len), (end, end_len))?;
        *place = shared(keyspace)?.keyspace.approximate_size::<&[u8]>(range)?;
        Ok(())
    })
}
