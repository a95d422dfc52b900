//! A handle on one keyspace.

use super::handle::Handle;
use super::handle::Registration;
use super::range::{Pair, bounds};
use super::range::{behind_prefix, half_open};
use super::traits::{keyspace_ttl, millis};
use super::value::{no_operator, stored_form};
use crate::base::{Kind, Millis, Moment};
use crate::catalog::{KeyspaceState, Order};
use crate::db::{Seen, Write, check_key};
use crate::iter::Bounds;
use crate::stats::counters::WriteCounts;
use crate::wal::ops::Op;
use crate::{Cursor, Durability, Error, Iter, Result, SegmentShape};
use std::cell::RefCell;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

/// A named, ordered map inside a database.
///
/// Handles are cheap to clone, may be used from any thread, and keep the database open. All
/// keyspaces of a database share its log, so a [`Batch`](crate::Batch) over several of them is atomic.
///
/// # Example
/// ```
/// # let dir = std::env::temp_dir().join(format!("esker-doc-keyspace-{}", std::process::id()));
/// let db = esker::Db::open(&dir)?;
/// let fruit = db.keyspace("fruit")?;
/// fruit.insert("apple", "red")?;
/// fruit.insert("pear", "green")?;
/// assert_eq!(fruit.get("pear")?, Some(b"green".to_vec()));
/// fruit.remove("apple")?;
/// assert!(!fruit.contains_key("apple")?);
/// # db.close()?; std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Keyspace {
    pub(super) handle: Arc<Handle>,
    pub(super) state: Arc<KeyspaceState>,
}

thread_local! {
    /// The buffer in which a thread encodes single writes.
    static PAYLOAD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A thread keeps buffers up to this size.
const PAYLOAD_KEPT_BYTES: usize = 1 << 20;

impl Keyspace {
    pub(super) fn state(&self) -> &Arc<KeyspaceState> {
        &self.state
    }

    /// The keyspace's name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The stored name of the keyspace's custom comparator; `None` for byte order.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-ordered-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.default_keyspace().comparator_name(), None);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn comparator_name(&self) -> Option<&str> {
        self.state.comparator_name()
    }

    /// Inserts a value under a key and replaces the existing value, if any.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`] above 65,535 bytes and [`Error::ValueTooLarge`] above an eighth of
    /// the memory budget; [`Error::DiskFull`], [`Error::Poisoned`], [`Error::KeyspaceDropped`],
    /// [`Error::ReadOnly`], [`Error::Closed`]. After an error the write may be there or not (C2).
    ///
    /// # Example
    /// See [`Keyspace`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.insert_with(key, value, self.handle.core.durability())
    }

    /// Like [`Keyspace::insert`], with a given durability class.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn insert_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        if let Some(expiry) = self.expiry() {
            return self.write_special(Kind::ExpiringPut, key, Some(expiry), value, durability);
        }
        check_key(key)?;
        self.handle.core.check_value_len(value.len() as u64)?;
        let user_bytes = (key.len() + value.len()) as u64;
        let counts = WriteCounts { puts: 1, user_bytes, ..WriteCounts::default() };
        self.write_one(&Op::Put { keyspace: self.state.id, key, value }, durability, counts)
    }

    /// Inserts a value that expires after `ttl`, counted from now. The keyspace's own time to
    /// live does not apply to it.
    ///
    /// Gets, iterators and snapshots that are made after the expiry do not see the value, as if
    /// the key had been removed. Snapshots and iterators that were made before it keep seeing the
    /// value. [`crate::Options::clock`] gives the time, in whole milliseconds, rounded up. A
    /// compaction frees the space of the expired value.
    ///
    /// # Errors
    /// As [`Keyspace::insert`]; the value may be 8 bytes shorter.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-ttl-{}", std::process::id()));
    /// use std::time::Duration;
    /// let db = esker::Db::open(&dir)?;
    /// let sessions = db.keyspace("sessions")?;
    /// sessions.insert_with_ttl("anna", "token", Duration::from_secs(3600))?;
    /// sessions.insert_with_ttl("bert", "token", Duration::ZERO)?;
    /// assert!(sessions.contains_key("anna")?);
    /// assert!(!sessions.contains_key("bert")?);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let (expiry, durability) = (self.expiry_after(ttl), self.handle.core.durability());
        let (key, value) = (key.as_ref(), value.as_ref());
        self.write_special(Kind::ExpiringPut, key, Some(expiry), value, durability)
    }

    /// Writes an operand, which the keyspace's merge operator later applies to the value. So this
    /// changes a value without reading it.
    ///
    /// In a keyspace with a time to live every write expires on its own: an expired operand counts
    /// as not written, and an expired value under it as removed. So a counter there counts what
    /// happened within that time.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`Error::InvalidArgument`] if the keyspace has no merge
    /// operator, [`Error::MergeFailed`] if the operator refuses the operand
    /// ([`crate::MergeOperator::check_operand`]). Errors that show only when the operator applies
    /// the operand to a value are returned by reads of the key.
    ///
    /// # Example
    /// See [`crate::CounterU64`] and [`crate::MergeOperator`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, self.handle.core.durability())
    }

    /// Like [`Keyspace::merge`], with a given durability class.
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.check_merge(operand.as_ref())?;
        let expiry = self.expiry();
        let kind = if expiry.is_some() { Kind::ExpiringMerge } else { Kind::Merge };
        self.write_special(kind, key.as_ref(), expiry, operand.as_ref(), durability)
    }

    /// Sets the default time to live of writes to the keyspace; `None`: they never expire. The
    /// setting is stored and applies to later writes only.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`Error::InvalidArgument`] for a time of zero.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-setttl-{}", std::process::id()));
    /// use std::time::Duration;
    /// let db = esker::Db::open(&dir)?;
    /// let cache = db.keyspace("cache")?;
    /// cache.set_ttl(Some(Duration::from_secs(60)))?;
    /// assert_eq!(cache.ttl(), Some(Duration::from_secs(60)));
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        let ttl = ttl.map_or(Ok(0), keyspace_ttl)?;
        self.handle.core.set_ttl(&self.state, ttl)
    }

    /// The default time to live of writes to the keyspace; `None`: they never expire.
    pub fn ttl(&self) -> Option<Duration> {
        Some(self.state.ttl()).filter(|ttl| *ttl != 0).map(Duration::from_millis)
    }

    /// The name of the keyspace's merge operator, if it has one.
    pub fn merge_operator(&self) -> Option<String> {
        Some(self.state.traits().names.operator.clone()).filter(|name| !name.is_empty())
    }

    /// When a write made now expires.
    #[inline]
    pub(super) fn expiry(&self) -> Option<Millis> {
        match self.state.ttl() {
            0 => None,
            ttl => Some(self.handle.core.now().saturating_add(ttl)),
        }
    }

    /// When a write made now with this time to live expires.
    pub(super) fn expiry_after(&self, ttl: Duration) -> Millis {
        self.handle.core.now().saturating_add(millis(ttl))
    }

    /// An error if there is no merge operator, or if it refuses the operand.
    pub(super) fn check_merge(&self, operand: &[u8]) -> Result<()> {
        if !self.state.merges() {
            return Err(no_operator(&self.state.name));
        }
        self.state.traits().operator.check_operand(operand)
    }

    fn write_special(
        &self,
        kind: Kind,
        key: &[u8],
        expiry: Option<Millis>,
        value: &[u8],
        durability: Durability,
    ) -> Result<()> {
        check_key(key)?;
        let mut joined = Vec::new();
        let stored = stored_form(expiry, value, &mut joined);
        self.handle.core.check_value_len(stored.len() as u64)?;
        let user_bytes = (key.len() + value.len()) as u64;
        let counts = WriteCounts { puts: 1, user_bytes, ..WriteCounts::default() };
        let op = Op::Special { keyspace: self.state.id, kind, key, stored };
        self.write_one(&op, durability, counts)
    }

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.remove_with(key, self.handle.core.durability())
    }

    /// Like [`Keyspace::remove`], with a given durability class.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn remove_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        let user_bytes = key.len() as u64;
        let counts = WriteCounts { deletes: 1, user_bytes, ..WriteCounts::default() };
        self.write_one(&Op::Delete { keyspace: self.state.id, key }, durability, counts)
    }

    fn write_one(&self, op: &Op<'_>, durability: Durability, counts: WriteCounts) -> Result<()> {
        PAYLOAD.with(|cell| {
            let mut payload = cell.take();
            payload.clear();
            op.encode(&mut payload);
            let result = self.handle.core.write(&Write {
                payload: &payload,
                operations: 1,
                keyspaces: &[&self.state],
                durability,
                counts,
            });
            if payload.capacity() <= PAYLOAD_KEPT_BYTES {
                cell.replace(payload);
            }
            result.map(|_| ())
        })
    }

    /// The value under a key.
    ///
    /// # Errors
    /// [`Error::Corruption`] and [`Error::Io`] if the data cannot be read,
    /// [`Error::KeyspaceDropped`], [`Error::Closed`].
    ///
    /// # Example
    /// See [`Keyspace`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.handle.core.get(&self.state, key.as_ref(), None, |value| value.bytes().to_vec())
    }

    /// Replaces the content of a buffer by the value under a key, and returns whether there is a
    /// value. Reusing a buffer saves allocations.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        let copy = |found: Seen<'_>| {
            value.clear();
            value.extend_from_slice(found.bytes());
        };
        Ok(self.handle.core.get(&self.state, key.as_ref(), None, copy)?.is_some())
    }

    /// Calls `take` with the value under a key, without copying it, and returns the result of
    /// `take`; `None` if there is no value.
    ///
    /// `take` may run for any time and may call the database: it only keeps the block with the
    /// value in memory. A value that has not been flushed yet is copied first.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-with-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.get_with("apple", |value| value.len())?, Some(3));
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let held = self.handle.core.get(&self.state, key.as_ref(), None, |value| value.hold())?;
        Ok(held.map(|held| take(held.bytes())))
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.handle.core.get(&self.state, key.as_ref(), None, |_| ())?.is_some())
    }

    /// Applies operands to a value.
    pub(super) fn fold(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[Arc<[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let operands: Vec<&[u8]> = operands.iter().map(|operand| &**operand).collect();
        self.state.traits().operator.full_merge(key, existing, &operands)
    }

    /// The values under several keys, in the order of the keys, all as of one moment.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-multi-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.multi_get(["apple", "kiwi"])?, [Some(b"red".to_vec()), None]);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let now = Registration::new(&self.handle)?;
        let get = |key: K| {
            let core = &self.handle.core;
            core.get(&self.state, key.as_ref(), Some(now.moment), |value| value.bytes().to_vec())
        };
        keys.into_iter().map(get).collect()
    }

    /// Every entry, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; moving the iterator can fail for the same reasons.
    pub fn iter(&self) -> Result<Iter> {
        self.range::<&[u8]>(..)
    }

    /// The entries within a range of keys, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::iter`], and [`Error::InvalidArgument`] as [`Batch::remove_range`](crate::Batch::remove_range).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        self.range_at(range, None)
    }

    pub(super) fn range_at<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        at: Option<Moment>,
    ) -> Result<Iter> {
        self.iter_within(bounds(half_open(&self.state.order, &range)?), at)
    }

    pub(super) fn iter_within(&self, bounds: Bounds, at: Option<Moment>) -> Result<Iter> {
        Iter::new(&self.handle, &self.state, bounds, at)
    }

    /// The entries whose keys begin with `prefix`, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::iter`], and [`Error::InvalidArgument`] if the keyspace has a custom
    /// comparator, which need not keep keys with a common prefix together.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-prefix-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("user:1", "ann")?;
    /// db.insert("user:2", "bob")?;
    /// db.insert("zone:1", "north")?;
    /// assert_eq!(db.prefix("user:")?.count(), 2);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.prefix_at(prefix.as_ref(), None)
    }

    pub(super) fn prefix_at(&self, prefix: &[u8], at: Option<Moment>) -> Result<Iter> {
        if !matches!(self.state.order, Order::Bytewise) {
            let what = "this keyspace has a custom comparator: use a range instead of a prefix";
            return Err(Error::invalid(what));
        }
        check_key(prefix)?;
        let range = (Some(prefix.to_vec()), behind_prefix(prefix));
        Iter::new(&self.handle, &self.state, bounds(range), at)
    }

    /// A cursor over every entry as of now. It does not stand on an entry yet.
    ///
    /// # Errors
    /// As [`Keyspace::iter`].
    ///
    /// # Example
    /// See [`Cursor`].
    pub fn cursor(&self) -> Result<Cursor> {
        self.cursor_in::<&[u8]>(..)
    }

    /// A cursor over a range of keys as of now. It does not stand on an entry yet.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    pub fn cursor_in<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Cursor> {
        self.cursor_at(range, None)
    }

    pub(super) fn cursor_at<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        at: Option<Moment>,
    ) -> Result<Cursor> {
        let bounds = bounds(half_open(&self.state.order, &range)?);
        Cursor::new(&self.handle, &self.state, bounds, at)
    }

    /// The entry with the smallest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn first_key_value(&self) -> Result<Option<Pair>> {
        self.iter()?.next().transpose()
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn last_key_value(&self) -> Result<Option<Pair>> {
        self.iter()?.next_back().transpose()
    }

    /// Flushes, and compacts whatever a compaction can make smaller in this keyspace.
    ///
    /// # Errors
    /// The errors of reading and writing; [`Error::Corruption`] if data is damaged.
    pub fn compact(&self) -> Result<()> {
        self.compact_range::<&[u8]>(..)
    }

    /// Like [`Keyspace::compact`], for the partitions that hold keys of a range.
    ///
    /// # Errors
    /// As [`Keyspace::compact`] and [`Keyspace::range`].
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        let bounds = bounds(half_open(&self.state.order, &range)?);
        let branch = self.state.home.branch;
        self.handle.core.compact(branch, Some(&self.state), &bounds)
    }

    /// About how many bytes the entries of a range take. In files it counts whole blocks, without
    /// the indexes and filters of run segments that the range covers only in part; in memory it
    /// counts every entry that waits for its flush.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-size-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let fruit = db.default_keyspace();
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.approximate_size::<&str>(..)?, 8);
    /// db.flush()?;
    /// assert!(fruit.approximate_size::<&str>(..)? > 8);
    /// assert_eq!(fruit.approximate_size("b"..)?, 0);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let range = half_open(&self.state.order, &range)?;
        self.handle.core.approximate_size(&self.state, range.0.as_deref(), range.1.as_deref())
    }

    /// The run segments of the keyspace, by partition; within each from new to old.
    ///
    /// # Errors
    /// [`Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-segments-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("apple", "red")?;
    /// db.flush()?;
    /// let segments = db.default_keyspace().segments()?;
    /// assert_eq!(segments[0].smallest, b"apple");
    /// assert_eq!(segments[0].entries, 1);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn segments(&self) -> Result<Vec<SegmentShape>> {
        self.handle.core.segments(&self.state)
    }
}
