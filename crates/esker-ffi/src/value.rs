//! Values and lists: bytes that the library returns, and that the caller frees.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{answer, free, give, quiet, shared, write_if};
use crate::handle::kind;
use crate::text::Text;
use esker::internals::kept::{KeptValue, ValueInPlace};
use esker::internals::stats::clients::Counted;
use std::ffi::c_char;

/// Bytes that the library returns: a value, or a text such as statistics. Release them with
/// `esker_value_free`; they stay readable until then, also after the database was closed.
pub struct esker_value(());

kind!(esker_value, b"eskvalue", ValueInner);

/// The value behind an [`esker_value`]. How the bytes are held is not part of the interface.
#[derive(Debug)]
pub(crate) enum ValueInner {
    /// In their own memory.
    Own {
        bytes: Vec<u8>,
        /// Its part of what the program was handed.
        _counted: Counted,
    },
    /// In a block, which counts as what readers hold (R25).
    InPlace(ValueInPlace),
}

impl ValueInner {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own { bytes, .. } => bytes,
            Self::InPlace(value) => value.bytes(),
        }
    }
}

/// A value handle for bytes.
pub(crate) fn give_value(bytes: Vec<u8>) -> *mut esker_value {
    let _counted = Counted::of(bytes.capacity());
    give(ValueInner::Own { bytes, _counted })
}

/// A value handle for what a get found; NULL where it found nothing.
pub(crate) fn give_found(found: Option<KeptValue>) -> *mut esker_value {
    match found {
        None => std::ptr::null_mut(),
        Some(KeptValue::Copied(bytes)) => give_value(bytes),
        Some(KeptValue::InPlace(value)) => give(ValueInner::InPlace(value)),
    }
}

/// A value handle for a text, followed by a zero byte that is not counted.
pub(crate) fn give_text(text: String) -> *mut esker_value {
    let mut bytes = text.into_bytes();
    bytes.reserve_exact(1);
    bytes.push(0);
    bytes.pop();
    give_value(bytes)
}

/// The bytes of a value; their number goes to `len`, which may be NULL. The pointer is valid until
/// the value is freed. It is NULL only if the handle is no value, not for an empty value. A zero
/// byte that is not counted follows texts (statistics, reports), but not values of the database.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_data(
    value: *const esker_value,
    len: *mut usize,
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || {
        let value = shared(value)?;
        write_if(len, value.bytes().len());
        Ok(value.bytes().as_ptr().cast())
    })
}

/// Releases a value. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_value_free(value: *mut esker_value) {
    free(value);
}

/// A list of names or keys. Free it with `esker_list_free`.
pub struct esker_list(());

kind!(esker_list, b"eskelist", Vec<Text>);

/// A list handle for names or keys.
pub(crate) fn give_list<T: Into<Vec<u8>>>(names: Vec<T>) -> *mut esker_list {
    give(names.into_iter().map(Text::new).collect())
}

/// The number of names or keys in a list; 0 if the handle is no list.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_list_len(list: *const esker_list) -> usize {
    quiet(0, || Ok(shared(list)?.len()))
}

/// The name or key at an index, counted from 0; NULL after the last. A zero byte follows it; its length
/// goes to `len`, which may be NULL. The text lives as long as the list.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_list_get(
    list: *const esker_list,
    index: usize,
    len: *mut usize,
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || Ok(answer(shared(list)?.get(index), len)))
}

/// Frees a list. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_list_free(list: *mut esker_list) {
    free(list);
}

#[cfg(test)]
mod tests;
