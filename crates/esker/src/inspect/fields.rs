//! The list of fields and values that an inspection makes, and how values are written.
//!
//! All kinds of files write keys, bounds and traits in the same way: keys are escaped and cut where
//! they are long, and damage shows its section, its offset and what is wrong.

use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, OpenMode};
use std::path::Path;

/// Fields and values, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub list: Vec<(String, String)>,
}

impl Fields {
    pub(super) fn add(&mut self, field: impl Into<String>, value: impl ToString) {
        self.list.push((field.into(), value.to_string()));
    }

    /// Shows damage; other errors end the inspection.
    pub(super) fn damage(&mut self, field: &str, error: Error) -> Result<()> {
        match error {
            Error::Corruption(damage) => {
                let value = format!("{} at {}: {}", damage.section, damage.offset, damage.detail);
                self.add(field, value);
                Ok(())
            }
            error => Err(error),
        }
    }
}

/// The traits of a keyspace in one line.
pub(super) fn traits(id: u32, operator: &str, filter: &str, ttl: u64) -> String {
    let named = |name: &str| if name.is_empty() { "none".to_owned() } else { format!("{name:?}") };
    let (operator, filter) = (named(operator), named(filter));
    format!("{id}: merge operator {operator}, compaction filter {filter}, ttl {ttl} ms")
}

/// A key as it is shown: escaped, and cut where it is long.
pub(super) fn key(key: &[u8]) -> String {
    const BYTES_MAX: usize = 256;
    let cut = &key[..key.len().min(BYTES_MAX)];
    let more = if cut.len() < key.len() { "…" } else { "" };
    format!("\"{}{more}\"", cut.escape_ascii())
}

/// A bound as it is shown.
pub(super) fn bound(bound: Option<&[u8]>) -> String {
    bound.map_or_else(|| "none".to_owned(), key)
}

/// The length of the file at `path`.
pub(super) fn size(fs: &dyn Fs, path: &Path) -> Result<u64> {
    fs.open(path, OpenMode::Read).and_then(|file| file.len()).context("open", path)
}
