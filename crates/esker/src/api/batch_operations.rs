//! What a batch holds, operation by operation.

use super::batch::Batch;
use crate::base::{Kind, split};
use crate::catalog::KeyspaceState;
use crate::wal::ops::{Op, Ops};
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// One operation of a [`Batch`]: the name of its keyspace, and what it does there.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # let fruit = db.keyspace("fruit")?;
/// use esker::{Batch, BatchOperation};
/// let mut batch = Batch::new();
/// batch.insert(&fruit, "apple", "red");
/// batch.remove(&fruit, "pear");
/// let bytes: usize = batch.iter().map(|operation| match operation {
///     BatchOperation::Insert { key, value, .. } => key.len() + value.len(),
///     BatchOperation::Remove { key, .. } => key.len(),
///     _ => 0,
/// }).sum();
/// assert_eq!(bytes, 12);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchOperation<'b> {
    /// A value is inserted under a key.
    Insert {
        /// The keyspace.
        keyspace: &'b str,
        /// The key.
        key: &'b [u8],
        /// The value.
        value: &'b [u8],
        /// When the entry expires, if it does.
        expires: Option<SystemTime>,
    },
    /// An operand is given to the merge operator.
    Merge {
        /// The keyspace.
        keyspace: &'b str,
        /// The key.
        key: &'b [u8],
        /// The operand.
        operand: &'b [u8],
        /// When the entry expires, if it does.
        expires: Option<SystemTime>,
    },
    /// A key is removed.
    Remove {
        /// The keyspace.
        keyspace: &'b str,
        /// The key.
        key: &'b [u8],
    },
    /// The keys of a range are removed.
    RemoveRange {
        /// The keyspace.
        keyspace: &'b str,
        /// The first key; `None`: from the first of the keyspace on.
        start: Option<&'b [u8]>,
        /// The first key after the range; `None`: up to the last of the keyspace.
        end: Option<&'b [u8]>,
    },
}

/// The operations of a [`Batch`] in the order in which they were added.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let mut batch = esker::Batch::new();
/// batch.remove(&db.default_keyspace(), "key");
/// assert_eq!((&batch).into_iter().count(), 1);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BatchIter<'b> {
    operations: Ops<'b>,
    keyspaces: &'b [Arc<KeyspaceState>],
}

impl Batch {
    /// The operations in the order in which they were added.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// use esker::BatchOperation::Insert;
    /// let mut batch = esker::Batch::new();
    /// batch.insert(&fruit, "apple", "red");
    /// for operation in &batch {
    ///     assert!(matches!(operation, Insert { keyspace: "fruit", key: b"apple", value: b"red", .. }));
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self) -> BatchIter<'_> {
        let (payload, keyspaces) = self.parts();
        BatchIter { operations: Ops::new(payload), keyspaces }
    }
}

impl<'b> Iterator for BatchIter<'b> {
    type Item = BatchOperation<'b>;

    fn next(&mut self) -> Option<Self::Item> {
        // A batch encodes only what can be decoded.
        let operation = self.operations.next()?.ok()?;
        let id = operation.keyspace();
        let keyspace = self.keyspaces.iter().find(|state| state.id == id);
        let keyspace = keyspace.map_or("", |state| &state.name);
        Some(match operation {
            Op::Put { key, value, .. } => {
                BatchOperation::Insert { keyspace, key, value, expires: None }
            }
            Op::Special { kind, key, stored, .. } => {
                let (expiry, value) = split(kind, stored);
                let after =
                    |millis| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis));
                let expires = expiry.and_then(after);
                match kind {
                    Kind::Merge | Kind::ExpiringMerge => {
                        BatchOperation::Merge { keyspace, key, operand: value, expires }
                    }
                    _ => BatchOperation::Insert { keyspace, key, value, expires },
                }
            }
            Op::Delete { key, .. } => BatchOperation::Remove { keyspace, key },
            Op::DeleteRange { start, end, .. } => {
                BatchOperation::RemoveRange { keyspace, start, end }
            }
            // No batch of a program makes or changes a keyspace.
            Op::CreateKeyspace { .. }
            | Op::InBranch { .. }
            | Op::DropKeyspace { .. }
            | Op::SetTraits { .. } => return None,
        })
    }
}

impl FusedIterator for BatchIter<'_> {}

impl<'b> IntoIterator for &'b Batch {
    type Item = BatchOperation<'b>;
    type IntoIter = BatchIter<'b>;

    fn into_iter(self) -> BatchIter<'b> {
        self.iter()
    }
}
