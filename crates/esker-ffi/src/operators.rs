//! Merge operators and compaction filters that a C program defines, updates in place, and the
//! options of keyspaces.

#![allow(unsafe_code, reason = "these are exported functions, and they keep pointers of C")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, bytes, exclusive, free, give, name, quiet, shared, write_if};
use crate::callbacks::{Context, callback_name, esker_comparator, esker_destroy};
use crate::code::esker_code;
use crate::fault::{Result, esker_error, misuse};
use crate::handle::{Handle, kind};
use crate::keyspace::esker_keyspace;
use crate::options::esker_options;
use crate::value::{esker_value, give_value};
use esker::{CompactionFilter, Decision, KeyspaceOptions, MergeOperator, OperatorResult};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

/// Where a callback puts a value. It is valid only during the call that receives it.
pub struct esker_sink(());

kind!(esker_sink, b"eskesink", Option<Vec<u8>>);

/// Sets the callback's result. The value is copied, and replaces one that was put before.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_sink_put(
    sink: *mut esker_sink,
    value: *const c_void,
    value_len: usize,
) -> esker_code {
    border(std::ptr::null_mut(), || {
        let value = bytes(value, value_len, "value")?.to_vec();
        *exclusive(sink)? = Some(value);
        Ok(())
    })
}

/// Applies operands, from old to new, to the value of a key; `existing` is NULL if there is none.
/// It passes the result to `esker_sink_put`; if it does not, the key has no value. It returns 0, or
/// another number if the operands cannot be applied: reads of the key then fail with
/// `ESKER_MERGE_FAILED`. The same arguments must always give the same result. Many threads call it
/// at once. It must return (no `longjmp`, no exception), and must not call the database.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_full_merge = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_char,
        key_len: usize,
        existing: *const c_char,
        existing_len: usize,
        operands: *const *const c_char,
        operand_lens: *const usize,
        count: usize,
        sink: *mut esker_sink,
    ) -> c_int,
>;

/// Combines several operands, from old to new, into one with the same effect, and passes it to
/// `esker_sink_put`; if it does not, the operands stay as they are. Otherwise as
/// `esker_full_merge`.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_partial_merge = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_char,
        key_len: usize,
        operands: *const *const c_char,
        operand_lens: *const usize,
        count: usize,
        sink: *mut esker_sink,
    ),
>;

/// Decides about an entry that no snapshot sees when a compaction reaches it: 0 keeps it, 1 removes
/// it, 2 replaces its value by the one that was put into the sink. Any other number keeps it. For
/// threads and jumps, the rules of `esker_full_merge` apply.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_filter = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        sink: *mut esker_sink,
    ) -> c_int,
>;

/// Calls a function with a sink, which lives on the stack, and returns what was put into it.
fn with_sink<R>(call: impl FnOnce(*mut esker_sink) -> R) -> (R, Option<Vec<u8>>) {
    let mut sink = Handle::new::<esker_sink>(None);
    let result = call((&raw mut sink).cast());
    (result, sink.into_inner())
}

fn pointers(operands: &[&[u8]]) -> (Vec<*const c_char>, Vec<usize>) {
    operands.iter().map(|operand| (operand.as_ptr().cast(), operand.len())).unzip()
}

/// A merge operator that calls C.
struct CalledOperator {
    name: String,
    full: unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *const *const c_char,
        *const usize,
        usize,
        *mut esker_sink,
    ) -> c_int,
    partial: esker_partial_merge,
    context: Context,
}

impl MergeOperator for CalledOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> OperatorResult<Option<Vec<u8>>> {
        let (operands, lens) = pointers(operands);
        let (old, old_len) = existing.map_or((std::ptr::null(), 0), |v| (v.as_ptr(), v.len()));
        let (context, count) = (self.context.pointer(), lens.len());
        let (key, key_len) = (key.as_ptr().cast(), key.len());
        let (operands, lens) = (operands.as_ptr(), lens.as_ptr());
        // SAFETY: the giver promises that it may be called so from any thread, and returns (B5).
        let (answer, value) = with_sink(|sink| unsafe {
            (self.full)(context, key, key_len, old.cast(), old_len, operands, lens, count, sink)
        });
        if answer == 0 { Ok(value) } else { Err(format!("it returned {answer}").into()) }
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial = self.partial?;
        let (operands, lens) = pointers(operands);
        let (context, count) = (self.context.pointer(), lens.len());
        let (key, key_len) = (key.as_ptr().cast(), key.len());
        let (operands, lens) = (operands.as_ptr(), lens.as_ptr());
        // SAFETY: as for `full_merge`.
        let ((), value) = with_sink(|sink| unsafe {
            partial(context, key, key_len, operands, lens, count, sink);
        });
        value
    }
}

/// A compaction filter that calls C.
struct CalledFilter {
    name: String,
    filter: unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *mut esker_sink,
    ) -> c_int,
    context: Context,
}

impl CompactionFilter for CalledFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        let context = self.context.pointer();
        let (key, key_len) = (key.as_ptr().cast(), key.len());
        let (value, value_len) = (value.as_ptr().cast(), value.len());
        // SAFETY: the giver promises that it may be called so from any thread, and returns (B5).
        let (answer, changed) = with_sink(|sink| unsafe {
            (self.filter)(context, key, key_len, value, value_len, sink)
        });
        match (answer, changed) {
            (1, _) => Decision::Remove,
            (2, Some(value)) => Decision::Change(value),
            _ => Decision::Keep,
        }
    }
}

/// Adds a merge operator to options, under the name that keyspaces store. The name has 1 to 255
/// bytes of UTF-8; its length may be `ESKER_NUL`. `partial` may be NULL. `context` is passed to
/// every call and destroyed after the last one; if this function fails, it is not destroyed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_add_merge_operator(
    options: *mut esker_options,
    operator_name: *const c_char,
    operator_name_len: usize,
    full: esker_full_merge,
    partial: esker_partial_merge,
    context: *mut c_void,
    destroy: esker_destroy,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let name = callback_name(operator_name, operator_name_len, "name of the merge operator")?;
        let Some(full) = full else { return misuse("the full merge is NULL: give one") };
        let mut options = exclusive(options)?;
        let context = Context::new(context, destroy);
        options.merge_operators.push(Arc::new(CalledOperator { name, full, partial, context }));
        Ok(())
    })
}

/// Adds a compaction filter to options, under the name that keyspaces store; otherwise as
/// `esker_options_add_merge_operator`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_add_compaction_filter(
    options: *mut esker_options,
    filter_name: *const c_char,
    filter_name_len: usize,
    filter: esker_filter,
    context: *mut c_void,
    destroy: esker_destroy,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let name = callback_name(filter_name, filter_name_len, "name of the compaction filter")?;
        let Some(filter) = filter else { return misuse("the filter is NULL: give one") };
        let mut options = exclusive(options)?;
        let context = Context::new(context, destroy);
        options.compaction_filters.push(Arc::new(CalledFilter { name, filter, context }));
        Ok(())
    })
}

/// Makes a key's new value from its present one, which is NULL if there is none. It passes the new
/// value to `esker_sink_put`; if it does not, the key is removed. It may be called more than once.
/// It must return (no `longjmp`, no exception), and must not call the database.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_change = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        existing: *const c_char,
        existing_len: usize,
        sink: *mut esker_sink,
    ),
>;

/// Replaces the value under a key by the result of `change`, atomically: if another write comes
/// between, `change` is called again. The new value goes to `value`, which may be NULL; release it
/// with `esker_value_free`. It is NULL if the key was removed. As `esker_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_update(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    change: esker_change,
    context: *mut c_void,
    value: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(value, std::ptr::null_mut());
        let Some(change) = change else { return misuse("the change is NULL: give one") };
        let keyspace = &shared(keyspace)?.keyspace;
        let updated = keyspace.update(bytes(key, key_len, "key")?, |found| {
            let (old, old_len) = found.map_or((std::ptr::null(), 0), |v| (v.as_ptr(), v.len()));
            with_sink(|sink| change(context, old.cast(), old_len, sink)).1
        })?;
        if !value.is_null() {
            write_if(value, updated.map_or(std::ptr::null_mut(), give_value));
        }
        Ok(())
    })
}

/// The options of a keyspace, for `esker_keyspace_open_with`.
pub struct esker_keyspace_options(());

kind!(esker_keyspace_options, b"eskksopt", KeyspaceOptions);

/// Makes options of a keyspace with nothing set. Free them with `esker_keyspace_options_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_options_new() -> *mut esker_keyspace_options {
    quiet(std::ptr::null_mut(), || Ok(give(KeyspaceOptions::default())))
}

/// Frees options of a keyspace. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_free(options: *mut esker_keyspace_options) {
    free(options);
}

/// Sets the comparator.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_comparator(
    options: *mut esker_keyspace_options,
    comparator: *const esker_comparator,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let comparator = shared(comparator)?.clone();
        exclusive(options)?.comparator = Some(comparator);
        Ok(())
    })
}

/// Sets the merge operator, by its name; the length may be `ESKER_NUL`. These come with the
/// library: `esker.counter-u64` and `esker.counter-i64` add 8-byte little-endian numbers;
/// `esker.max` keeps the greatest in byte order; `esker.append:` with hexadecimal digits joins the
/// operands with those bytes in between.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_merge_operator(
    options: *mut esker_keyspace_options,
    operator_name: *const c_char,
    operator_name_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let operator = name(operator_name, operator_name_len, "name of the merge operator")?;
        exclusive(options)?.merge_operator = Some(operator.to_owned());
        Ok(())
    })
}

/// Sets the compaction filter, by its name; the length may be `ESKER_NUL`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_compaction_filter(
    options: *mut esker_keyspace_options,
    filter_name: *const c_char,
    filter_name_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let filter = name(filter_name, filter_name_len, "name of the compaction filter")?;
        exclusive(options)?.compaction_filter = Some(filter.to_owned());
        Ok(())
    })
}

/// Sets the time to live, in milliseconds, of writes that give none.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_ttl(
    options: *mut esker_keyspace_options,
    milliseconds: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        exclusive(options)?.ttl = Some(Duration::from_millis(milliseconds));
        Ok(())
    })
}

/// The options of a keyspace behind a pointer.
///
/// # Safety
/// B1 and B4 for `options`.
pub(crate) unsafe fn keyspace_options(
    options: *const esker_keyspace_options,
) -> Result<KeyspaceOptions> {
    if options.is_null() {
        return Ok(KeyspaceOptions::default());
    }
    Ok(exclusive(options)?.clone())
}
