//! The functions of libesker, the C interface of Esker. The crate `esker-capi` makes the shared
//! and the static library of them.

#![allow(unsafe_code, reason = "C calls this, and its names are as C sees them")]

use std::ffi::c_char;

/// The version of this library, such as `0.1.0`. The text is constant and ends with a zero byte.
// SAFETY: no other function of this name exists in a program that links this library.
#[unsafe(no_mangle)]
pub extern "C" fn esker_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
