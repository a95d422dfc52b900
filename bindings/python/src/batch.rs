//! Write batches.
//!
//! A batch keeps its operations itself, because plyvel's can be written more than once and
//! appended to each other; the engine's batch is made of them when it is written.

use crate::bytes::Input;
use crate::errors::Result;
use crate::options::ttl_from;
use crate::shared::Space;
use crate::store::Store;
use esker::internals::batches::reserve;
use esker::internals::stats::clients::Counted;
use esker::{Batch, Durability, Keyspace};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Put,
    /// Gone after so long.
    PutFor(Duration),
    Merge,
    Delete,
    DeleteRange,
}

/// An operation: its key and value, or its bounds, lie in the bytes of the batch.
#[derive(Debug, Clone, Copy)]
struct Op {
    kind: Kind,
    /// Which of the batch's keyspaces it concerns.
    keyspace: usize,
    key_len: usize,
    value_len: usize,
    /// Of a range: whether it has a start, and whether it has an end.
    bounded: (bool, bool),
}

/// Bytes that an operation takes besides its key and value.
const OP_BYTES: usize = 5;

/// So many bytes an operation takes in the engine's batch besides its key and value, where these are not
/// unusually long.
const ENCODED_BYTES: usize = 5;

#[derive(Default, Clone)]
struct Ops {
    keyspaces: Vec<Arc<Keyspace>>,
    /// Which of them was last asked for.
    last: usize,
    ops: Vec<Op>,
    bytes: Vec<u8>,
    /// Their bytes, in the account of memory.
    counted: Counted,
}

impl Ops {
    /// Counts what the operations take now.
    fn count(&mut self) {
        self.counted.set(self.bytes.capacity() + self.ops.capacity() * size_of::<Op>());
    }

    fn keyspace(&mut self, keyspace: &Arc<Keyspace>) -> usize {
        // By its place, since names come again: in branches, and after a drop.
        let known = |known: &Arc<Keyspace>| Arc::ptr_eq(known, keyspace);
        // Most batches go on with the keyspace that they had last.
        if !self.keyspaces.get(self.last).is_some_and(known) {
            self.last = self.keyspaces.iter().position(known).unwrap_or_else(|| {
                self.keyspaces.push(keyspace.clone());
                self.keyspaces.len() - 1
            });
        }
        self.last
    }

    fn add(&mut self, keyspace: &Arc<Keyspace>, kind: Kind, key: &[u8], value: &[u8]) {
        let keyspace = self.keyspace(keyspace);
        self.copy(keyspace, kind, key, value);
        self.count();
    }

    #[inline]
    fn copy(&mut self, keyspace: usize, kind: Kind, key: &[u8], value: &[u8]) {
        let bounded = (true, true);
        let (key_len, value_len) = (key.len(), value.len());
        self.ops.push(Op { kind, keyspace, key_len, value_len, bounded });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    fn add_range(&mut self, keyspace: &Arc<Keyspace>, start: Option<&[u8]>, stop: Option<&[u8]>) {
        let (from, to) = (start.unwrap_or_default(), stop.unwrap_or_default());
        self.add(keyspace, Kind::DeleteRange, from, to);
        if let Some(op) = self.ops.last_mut() {
            op.bounded = (start.is_some(), stop.is_some());
        }
    }

    fn append(&mut self, other: &Self) {
        let moved: Vec<usize> = other.keyspaces.iter().map(|each| self.keyspace(each)).collect();
        self.ops.extend(other.ops.iter().map(|op| Op { keyspace: moved[op.keyspace], ..*op }));
        self.bytes.extend_from_slice(&other.bytes);
        self.count();
    }

    /// The operations in the order in which they are written.
    ///
    /// Operations on different keys may change places, since all happen at one moment. In key order
    /// each finds its place in the memtable near the one before, in memory that the processor has
    /// in its caches: a batch of a thousand random keys is written in four fifths of the time. A
    /// range delete concerns all keys in its range, so a batch with one keeps its order.
    fn arranged(&self) -> Vec<Placed<'_>> {
        let mut rest = self.bytes.as_slice();
        let mut placed = Vec::with_capacity(self.ops.len());
        let (mut ranges, mut sorted) = (false, true);
        for op in &self.ops {
            let (key, behind) = rest.split_at(op.key_len);
            let (value, behind) = behind.split_at(op.value_len);
            rest = behind;
            ranges |= op.kind == Kind::DeleteRange;
            let each = Placed { op, key, value };
            sorted =
                sorted && placed.last().is_none_or(|last: &Placed<'_>| last.before(&each).is_le());
            placed.push(each);
        }
        if !ranges && !sorted { sort(placed) } else { placed }
    }

    fn build(&self) -> esker::Result<Batch> {
        let mut batch = Batch::new();
        reserve(&mut batch, self.bytes.len() + ENCODED_BYTES * self.ops.len());
        for Placed { op, key, value } in self.arranged() {
            let keyspace = &self.keyspaces[op.keyspace];
            match op.kind {
                Kind::Put => batch.insert(keyspace, key, value),
                Kind::PutFor(ttl) => batch.insert_with_ttl(keyspace, key, value, ttl),
                Kind::Merge => batch.merge(keyspace, key, value),
                Kind::Delete => batch.remove(keyspace, key),
                Kind::DeleteRange => match op.bounded {
                    (true, true) => batch.remove_range(keyspace, key..value)?,
                    (true, false) => batch.remove_range(keyspace, key..)?,
                    (false, true) => batch.remove_range(keyspace, ..value)?,
                    (false, false) => batch.remove_range::<&[u8]>(keyspace, ..)?,
                },
            }
        }
        Ok(batch)
    }
}

/// A put whose objects were not read yet. They are no subclass of `bytes`: whose end might run code
/// that uses the batch while it is locked.
struct Waiting {
    kind: Kind,
    /// Its index among the batch's keyspaces.
    keyspace: usize,
    key: Py<PyBytes>,
    value: Py<PyBytes>,
}

/// So many puts wait at most.
const WAITING_MAX: usize = 32;

/// A put with a longer value does not wait: its bytes would be there twice when it is copied.
const WAITING_BYTES: usize = 4 << 10;

/// What a batch holds.
///
/// Keys that come in another order than that in which they were made lie anywhere in memory, and a
/// call of Python is so long that the processor waits for the bytes of one key before it begins to
/// fetch those of the next. So a put only keeps its objects, whose bytes cannot change, and some of
/// them are copied together, in a loop that is short enough to fetch several at once.
#[derive(Default)]
struct Content {
    ops: Ops,
    /// Puts behind those in `ops`.
    waiting: Vec<Waiting>,
}

impl Content {
    /// Adds a put.
    #[inline]
    fn put(
        &mut self,
        keyspace: &Arc<Keyspace>,
        kind: Kind,
        key: Bound<'_, PyBytes>,
        value: Bound<'_, PyBytes>,
    ) {
        let py = key.py();
        let waits = value.as_bytes().len() <= WAITING_BYTES;
        let keyspace = self.ops.keyspace(keyspace);
        self.waiting.push(Waiting { kind, keyspace, key: key.unbind(), value: value.unbind() });
        if !waits || self.waiting.len() >= WAITING_MAX {
            self.settle(py);
        }
    }

    /// All operations, with the bytes of those that waited.
    fn settled(&mut self, py: Python<'_>) -> &mut Ops {
        if !self.waiting.is_empty() {
            self.settle(py);
        }
        &mut self.ops
    }

    #[cold]
    fn settle(&mut self, py: Python<'_>) {
        let lens = self.waiting.iter().map(|put| {
            let (key, value) = (put.key.as_bytes(py), put.value.as_bytes(py));
            key.len() + value.len()
        });
        self.ops.bytes.reserve(lens.sum());
        for Waiting { kind, keyspace, key, value } in self.waiting.drain(..) {
            self.ops.copy(keyspace, kind, key.as_bytes(py), value.as_bytes(py));
            key.drop_ref(py);
            value.drop_ref(py);
        }
        self.ops.count();
    }
}

/// An operation and its bytes.
#[derive(Clone, Copy)]
struct Placed<'a> {
    op: &'a Op,
    key: &'a [u8],
    value: &'a [u8],
}

impl Placed<'_> {
    fn before(&self, other: &Self) -> Ordering {
        (self.op.keyspace, self.key).cmp(&(other.op.keyspace, other.key))
    }
}

/// Sorts operations by keyspace and key. Of two operations on one key, the later one stays the later one.
///
/// What is sorted first are numbers: the first bytes in which the keys differ, and behind them the place
/// of the operation, which is a fraction of what has to be moved and compared otherwise. Only where these
/// bytes are equal the rest decides.
fn sort(placed: Vec<Placed<'_>>) -> Vec<Placed<'_>> {
    let Some(first) = placed.first() else { return placed };
    let mut common = first.key.len();
    for Placed { key, .. } in &placed {
        if !key.starts_with(&first.key[..common]) {
            common = key.iter().zip(first.key).take_while(|(a, b)| a == b).count();
        }
    }
    let numbers = placed.iter().enumerate();
    let numbers =
        numbers.map(|(at, each)| (u128::from(head(&each.key[common..])) << 64) | at as u128);
    let mut numbers: Vec<u128> = numbers.collect();
    numbers.sort_unstable();
    let mut sorted: Vec<_> = numbers.iter().map(|number| placed[*number as u64 as usize]).collect();
    let mut begin = 0;
    for equal in numbers.chunk_by(|a, b| a >> 64 == b >> 64) {
        let end = begin + equal.len();
        if equal.len() > 1 {
            sorted[begin..end].sort_by(Placed::before);
        }
        begin = end;
    }
    if !sorted.is_sorted_by_key(|each| each.op.keyspace) {
        sorted.sort_by_key(|each| each.op.keyspace);
    }
    sorted
}

/// The first bytes of a key as a number that compares as they do.
fn head(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// Writes that are applied together or not at all.
///
/// As a context manager it writes itself at the end of the block. After an exception it writes
/// nothing, unless it was made with ``transaction=False``.
#[pyclass(frozen, module = "esker")]
pub(crate) struct WriteBatch {
    content: Mutex<Content>,
    transaction: bool,
    durability: Option<Durability>,
    space: Space,
}

impl WriteBatch {
    /// An empty batch.
    pub(crate) fn new(
        space: &Space,
        transaction: bool,
        durability: Option<Durability>,
    ) -> Result<Self> {
        space.shared.check()?;
        Ok(Self { content: Mutex::default(), transaction, durability, space: space.clone() })
    }

    /// Passes the content and the space of a call to `then`.
    fn with_content<R>(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Store>>,
        then: impl FnOnce(&mut Content, &Space) -> R,
    ) -> Result<R> {
        self.space.shared.check()?;
        let space = keyspace.map_or(&self.space, |store| store.get().space());
        self.space.check_same(space, "keyspace")?;
        Ok(then(&mut *self.space.shared.lock(py, &self.content)?, space))
    }

    /// Passes the operations and the space of a call to `then`.
    fn with<R>(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Store>>,
        then: impl FnOnce(&mut Ops, &Space) -> R,
    ) -> Result<R> {
        self.with_content(py, keyspace, |content, space| then(content.settled(py), space))
    }

    /// Adds a range delete of the keys within ``bounds`` that begin with ``prefix``.
    fn remove_all(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Store>>,
        bounds: (Option<&[u8]>, Option<&[u8]>),
        prefix: Option<&[u8]>,
    ) -> Result<()> {
        self.with(py, keyspace, |ops, space| {
            let range = crate::iter::range(space, bounds, (true, false), prefix)?;
            ops.add_range(&space.keyspace, range.start.as_deref(), range.stop.as_deref());
            Ok(())
        })?
    }
}

#[pymethods]
impl WriteBatch {
    /// Adds the insertion of a value under a key, in ``keyspace`` or where the batch was made.
    /// It expires ``ttl`` seconds after the batch is written.
    #[pyo3(signature = (key, value, *, keyspace=None, ttl=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        value: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
        ttl: Option<f64>,
    ) -> Result<()> {
        let kind = ttl.map(ttl_from).transpose()?.map_or(Kind::Put, Kind::PutFor);
        self.with_content(py, keyspace, |content, space| {
            let key = match &space.prefix {
                None => key.into_plain(),
                Some(_) => space.with_key(key.as_bytes(), |key| PyBytes::new(py, key)),
            };
            content.put(&space.keyspace, kind, key, value.into_plain());
        })
    }

    /// Adds an operand for the merge operator of the keyspace.
    #[pyo3(signature = (key, operand, *, keyspace=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        operand: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let (key, operand) = (key.as_bytes(), operand.as_bytes());
        self.with(py, keyspace, |ops, space| {
            space.with_key(key, |key| ops.add(&space.keyspace, Kind::Merge, key, operand));
        })
    }

    /// Adds the removal of a key.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let key = key.as_bytes();
        self.with(py, keyspace, |ops, space| {
            space.with_key(key, |key| ops.add(&space.keyspace, Kind::Delete, key, b""));
        })
    }

    /// Adds a range delete of all keys from ``start`` up to, not including, ``stop``.
    #[pyo3(signature = (start=None, stop=None, *, keyspace=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Input<'_, '_>>,
        stop: Option<Input<'_, '_>>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let bounds = (start.as_ref().map(Input::as_bytes), stop.as_ref().map(Input::as_bytes));
        self.remove_all(py, keyspace, bounds, None)
    }

    /// Adds a range delete of all keys that begin with ``prefix``.
    #[pyo3(signature = (prefix, *, keyspace=None))]
    fn delete_prefix(
        &self,
        py: Python<'_>,
        prefix: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        self.remove_all(py, keyspace, (None, None), Some(prefix.as_bytes()))
    }

    /// Removes all operations.
    fn clear(&self, py: Python<'_>) -> Result<()> {
        self.with(py, None, |ops, _| *ops = Ops::default())
    }

    /// Writes the batch. It keeps its operations.
    fn write(&self, py: Python<'_>) -> Result<()> {
        self.with(py, None, |ops, space| {
            let db = &space.db;
            py.detach(|| {
                let batch = ops.build()?;
                match self.durability {
                    None => db.write(batch),
                    Some(durability) => db.write_with(batch, durability),
                }
            })
        })??;
        Ok(())
    }

    /// Writes the batch, whole or not at all, if that needs no wait for its turn, for memory or for
    /// space on the device. Otherwise it writes nothing and raises ``WouldBlockError``; the batch
    /// stays as it is and may be tried again.
    fn try_write(&self, py: Python<'_>) -> Result<()> {
        self.with(py, None, |ops, space| {
            let db = &space.db;
            py.detach(|| {
                let batch = ops.build()?;
                match self.durability {
                    None => db.try_write(batch),
                    Some(durability) => db.try_write_with(batch, durability),
                }
            })
        })??;
        Ok(())
    }

    /// Estimates how many bytes the batch takes.
    fn approximate_size(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, None, |ops, _| 12 + ops.bytes.len() + OP_BYTES * ops.ops.len())
    }

    /// Adds the operations of another batch of the same database after its own.
    fn append(&self, py: Python<'_>, source: &Bound<'_, Self>) -> Result<()> {
        let source = source.get();
        self.space.check_same(&source.space, "other batch")?;
        // A copy, because a batch may be appended to itself.
        let added = source.with(py, None, |ops, _| ops.clone())?;
        self.with(py, None, |ops, _| ops.append(&added))
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, None, |ops, _| ops.ops.len())
    }

    fn __enter__(slf: Py<Self>) -> Result<Py<Self>> {
        slf.get().space.shared.check()?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<()> {
        if !self.transaction || exc_type.is_none() {
            self.write(py)?;
        }
        self.clear(py)
    }
}
