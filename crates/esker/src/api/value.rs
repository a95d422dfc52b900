//! How a write gets its value: in its stored form, and only where it is allowed.
//!
//! The stored form of a value that expires is the expiry time and then the value.

use crate::Error;
use crate::base::{Millis, join};

/// The stored form of a value. That of a value that expires is built in `joined`.
pub(super) fn stored_form<'v>(
    expiry: Option<Millis>,
    value: &'v [u8],
    joined: &'v mut Vec<u8>,
) -> &'v [u8] {
    let Some(expiry) = expiry else { return value };
    joined.clear();
    join(expiry, value, joined);
    joined
}

/// The error of a `merge()` into a keyspace without a merge operator.
pub(super) fn no_operator(keyspace: &str) -> Error {
    let what = format!("keyspace {keyspace:?} has no merge operator: give it one when opening it");
    Error::invalid(what)
}
