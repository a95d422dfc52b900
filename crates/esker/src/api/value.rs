//! How a write gets its value: in its stored form, and only where it is allowed.
//!
//! The stored form of a value that expires is the expiry time and then the value.

use crate::base::{Millis, join};
use crate::run::Source;
use crate::{Error, Result};
use std::io::{self, Read};
use std::path::Path;

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

/// The stored form of a value that comes from a reader.
pub(super) struct ReaderSource<R> {
    /// The expiry, until it was handed over.
    head: Option<Millis>,
    reader: R,
    failed: bool,
}

impl<R: Read> ReaderSource<R> {
    pub(super) fn new(expiry: Option<Millis>, reader: R) -> Self {
        Self { head: expiry, reader, failed: false }
    }
}

impl<R: Read> Source for ReaderSource<R> {
    fn next(&mut self, piece: &mut Vec<u8>, bytes: usize) -> Result<()> {
        piece.clear();
        piece.reserve_exact(bytes);
        if let Some(expiry) = self.head.take() {
            piece.extend_from_slice(&expiry.to_le_bytes());
        }
        let left = (bytes - piece.len()) as u64;
        let read = (&mut self.reader).take(left).read_to_end(piece);
        read.map(drop).map_err(|error| {
            self.failed = true;
            failed_reader(error)
        })
    }

    fn has_failed(&self) -> bool {
        self.failed
    }
}

/// The error of a reader that a program gave.
pub(super) fn failed_reader(error: io::Error) -> Error {
    Error::Io {
        operation: "read",
        path: Path::new("the given reader").into(),
        source: error.into(),
    }
}
