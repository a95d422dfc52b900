//! A handle on one keyspace.

use super::handle::Handle;
use super::range::{bounds, half_open};
use super::traits::{keyspace_ttl, millis};
use super::value::{no_operator, stored_form};
use crate::admission::Terms;
use crate::base::{Kind, Millis};
use crate::catalog::KeyspaceState;
use crate::catalog::check_key;
use crate::compaction::choice::Wanted;
use crate::db::Write;
use crate::stats::counters::{WriteCounts, Written};
use crate::sync::Interruption;
use crate::trace::{Phases, Untimed};
use crate::wal::ops::Op;
use crate::{Durability, Result, SegmentShape};
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
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// let fruit = db.keyspace("fruit")?;
/// fruit.insert("apple", "red")?;
/// fruit.insert("pear", "green")?;
/// assert_eq!(fruit.get("pear")?, Some(b"green".to_vec()));
/// fruit.remove("apple")?;
/// assert!(!fruit.contains_key("apple")?);
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
    /// Checks that it belongs to the database of a handle.
    pub(super) fn check_of(&self, handle: &Handle) -> Result<()> {
        if !Arc::ptr_eq(&self.handle.core, &handle.core) {
            return Err(crate::Error::invalid("the keyspace belongs to another database"));
        }
        Ok(())
    }

    pub(super) fn state(&self) -> &Arc<KeyspaceState> {
        &self.state
    }

    /// The keyspace's name.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.keyspace("fruit")?.name(), "fruit");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The stored name of the keyspace's custom comparator; `None` for byte order.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.default_keyspace().comparator_name(), None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn comparator_name(&self) -> Option<&str> {
        self.state.comparator_name()
    }

    /// Inserts a value under a key and replaces the existing value, if any.
    ///
    /// # Errors
    /// [`crate::Error::KeyTooLong`] above 65,535 bytes and [`crate::Error::ValueTooLarge`] above
    /// an eighth of the memory budget; [`crate::Error::DiskFull`], [`crate::Error::Poisoned`],
    /// [`crate::Error::KeyspaceDropped`], [`crate::Error::ReadOnly`], [`crate::Error::Closed`].
    /// After an error the write may be there or not (C2).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.insert_with(key, value, self.handle.core.durability())
    }

    /// Like [`Keyspace::insert`], with a given durability class.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// use esker::Durability;
    /// fruit.insert_with("apple", "red", Durability::Disk)?; // Survives a power cut.
    /// // A crash before the next flush loses this one.
    /// fruit.insert_with("pear", "green", Durability::Buffered)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.put_followed(key.as_ref(), value.as_ref(), durability.into(), &mut Untimed)
    }

    /// Like [`Keyspace::insert`], but it never waits because writers are slowed, for memory, or for
    /// space on a full device: where [`Keyspace::insert`] would, it fails, and nothing is written.
    ///
    /// For threads that serve others too, such as those of an asynchronous runtime. A write of class
    /// [`Durability::Disk`] still waits for its sync; and any write waits for writes before it in the
    /// log that are still being copied, and, every few megabytes, while a log file is prepared.
    ///
    /// A write that waits has its place among the writers, and one that does not wait goes only if
    /// nobody waits before it. So while writers are slowed, and others always wait, it may not go.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`crate::Error::WouldBlock`], after which the write is not there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// use esker::Error;
    /// match fruit.try_insert("apple", "red") {
    ///     Ok(()) => println!("done"),
    ///     Err(Error::WouldBlock { retry_after, .. }) => println!("again after {retry_after:?}"),
    ///     Err(other) => return Err(other),
    /// }
    /// # assert!(fruit.contains_key("apple")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn try_insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let terms = Terms::impatient(self.handle.core.durability());
        self.put_followed(key.as_ref(), value.as_ref(), terms, &mut Untimed)
    }

    /// Inserts a value; `phases` follows the write.
    #[inline]
    pub(super) fn put_followed(
        &self,
        key: &[u8],
        value: &[u8],
        terms: Terms,
        phases: &mut impl Phases,
    ) -> Result<()> {
        if let Some(expiry) = self.expiry() {
            let special = (Kind::ExpiringPut, Some(expiry));
            return self.write_special(special, key, value, terms, phases);
        }
        check_key(key)?;
        self.handle.core.settings.check_value_len(value.len() as u64)?;
        let user_bytes = (key.len() + value.len()) as u64;
        let counts = Written::Put(user_bytes);
        let op = Op::Put { keyspace: self.state.id, key, value };
        self.write_one(&op, terms, counts, phases)
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
    /// # let dir = tempfile::tempdir().unwrap();
    /// use std::time::Duration;
    /// let db = esker::Db::open(&dir)?;
    /// let sessions = db.keyspace("sessions")?;
    /// sessions.insert_with_ttl("anna", "token", Duration::from_secs(3600))?;
    /// sessions.insert_with_ttl("bert", "token", Duration::ZERO)?;
    /// assert!(sessions.contains_key("anna")?);
    /// assert!(!sessions.contains_key("bert")?);
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
        let special = (Kind::ExpiringPut, Some(expiry));
        self.write_special(special, key, value, durability.into(), &mut Untimed)
    }

    /// Writes an operand, which the keyspace's merge operator later applies to the value. So this
    /// changes a value without reading it.
    ///
    /// In a keyspace with a time to live every write expires on its own: an expired operand counts
    /// as not written, and an expired value under it as removed. So a counter there counts what
    /// happened within that time.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`crate::Error::InvalidArgument`] if the keyspace has no merge
    /// operator, [`crate::Error::MergeFailed`] if the operator refuses the operand
    /// ([`crate::MergeOperator::check_operand`]). Errors that show only when the operator applies
    /// the operand to a value are returned by reads of the key.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use esker::{KeyspaceOptions, Max};
    /// let best = db.keyspace_with("best", KeyspaceOptions::merging(Max::NAME))?;
    /// for jump in ["7.90", "8.12", "7.85"] {
    ///     best.merge("ann", jump)?;
    /// }
    /// assert_eq!(best.get("ann")?, Some(b"8.12".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, self.handle.core.durability())
    }

    /// Like [`Keyspace::merge`], with a given durability class.
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use esker::{CounterU64, Durability, KeyspaceOptions};
    /// # let sales = db.keyspace_with("sales", KeyspaceOptions::merging(CounterU64::NAME))?;
    /// sales.merge_with("nails", CounterU64::encode(100), Durability::Disk)?;
    /// assert_eq!(sales.get_with("nails", CounterU64::decode)?, Some(Some(100)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.check_merge(operand.as_ref())?;
        let expiry = self.expiry();
        let kind = if expiry.is_some() { Kind::ExpiringMerge } else { Kind::Merge };
        let terms = durability.into();
        self.write_special((kind, expiry), key.as_ref(), operand.as_ref(), terms, &mut Untimed)
    }

    /// Sets the default time to live of writes to the keyspace; `None`: they never expire. The
    /// setting is stored and applies to later writes only.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`crate::Error::InvalidArgument`] for a time of zero.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use std::time::Duration;
    /// let db = esker::Db::open(&dir)?;
    /// let cache = db.keyspace("cache")?;
    /// cache.set_ttl(Some(Duration::from_secs(60)))?;
    /// assert_eq!(cache.ttl(), Some(Duration::from_secs(60)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        let ttl = ttl.map_or(Ok(0), keyspace_ttl)?;
        self.handle.core.set_ttl(&self.state, ttl)
    }

    /// The default time to live of writes to the keyspace; `None`: they never expire.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let cache = db.keyspace("cache")?;
    /// assert_eq!(cache.ttl(), None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn ttl(&self) -> Option<Duration> {
        Some(self.state.ttl()).filter(|ttl| *ttl != 0).map(Duration::from_millis)
    }

    /// The name of the keyspace's merge operator, if it has one.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.default_keyspace().merge_operator(), None);
    /// # Ok::<(), esker::Error>(())
    /// ```
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
        self.state.operator().check_operand(operand)
    }

    fn write_special(
        &self,
        (kind, expiry): (Kind, Option<Millis>),
        key: &[u8],
        value: &[u8],
        terms: Terms,
        phases: &mut impl Phases,
    ) -> Result<()> {
        check_key(key)?;
        let mut joined = Vec::new();
        let stored = stored_form(expiry, value, &mut joined);
        self.handle.core.settings.check_value_len(stored.len() as u64)?;
        let user_bytes = (key.len() + value.len()) as u64;
        let counts = Written::Put(user_bytes);
        let op = Op::Special { keyspace: self.state.id, kind, key, stored };
        self.write_one(&op, terms, counts, phases)
    }

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove("apple")?;
    /// fruit.remove("kiwi")?; // There is none, which is no error.
    /// assert_eq!(fruit.get("apple")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.remove_with(key, self.handle.core.durability())
    }

    /// Like [`Keyspace::remove`], with a given durability class.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove_with("apple", esker::Durability::Disk)?;
    /// // From here on no power cut brings the apple back.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        self.remove_on(key.as_ref(), durability.into())
    }

    /// Like [`Keyspace::remove`], but it never waits for its turn, for memory or for space, as
    /// [`Keyspace::try_insert`].
    ///
    /// # Errors
    /// As [`Keyspace::try_insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.try_remove("apple")?;
    /// assert!(!fruit.contains_key("apple")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn try_remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.remove_on(key.as_ref(), Terms::impatient(self.handle.core.durability()))
    }

    fn remove_on(&self, key: &[u8], terms: Terms) -> Result<()> {
        check_key(key)?;
        let user_bytes = key.len() as u64;
        let counts = WriteCounts { deletes: 1, user_bytes, ..WriteCounts::default() };
        let op = Op::Delete { keyspace: self.state.id, key };
        self.write_one(&op, terms, Written::Batch(&counts), &mut Untimed)
    }

    fn write_one<P: Phases>(
        &self,
        op: &Op<'_>,
        terms: Terms,
        counts: Written<'_>,
        phases: &mut P,
    ) -> Result<()> {
        PAYLOAD.with(|cell| {
            let mut payload = cell.take();
            payload.clear();
            op.encode(&mut payload);
            let write = Write {
                payload: &payload,
                operations: 1,
                keyspaces: &[&self.state],
                terms,
                counts,
            };
            let core = &self.handle.core;
            let result = match P::FOLLOWS {
                true => core.write_followed(&write, None, phases),
                false => core.write(&write),
            };
            if payload.capacity() <= PAYLOAD_KEPT_BYTES {
                cell.replace(payload);
            }
            result.map(|_| ())
        })
    }

    /// Applies operands to a value.
    pub(super) fn fold(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[Arc<[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let operands: Vec<&[u8]> = operands.iter().map(|operand| &**operand).collect();
        self.state.operator().full_merge(key, existing, &operands)
    }

    /// Flushes, and compacts whatever a compaction can make smaller in this keyspace.
    ///
    /// # Errors
    /// The errors of reading and writing; [`crate::Error::Corruption`] if data is damaged.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove("apple")?;
    /// fruit.compact()?;
    /// assert_eq!(fruit.segments()?.len(), 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        self.compact_range::<&[u8]>(..)
    }

    /// Like [`Keyspace::compact`], for the partitions that hold keys of a range.
    ///
    /// # Errors
    /// As [`Keyspace::compact`] and [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let days = db.keyspace("days")?;
    /// # for day in ["2024-12-31", "2025-01-01"] { days.insert(day, "...")?; }
    /// days.remove_range(.."2025")?;
    /// days.compact_range(.."2025")?; // Frees the space of last year at once.
    /// assert_eq!(days.approximate_size(.."2025")?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.compact_unless(range, Interruption::NEVER)
    }

    /// Like [`Keyspace::compact_range`], until `interrupted` returns true: as [`crate::Db::compact_until`].
    ///
    /// # Errors
    /// As [`Keyspace::compact_range`]; [`crate::Error::Interrupted`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let days = db.keyspace("days")?;
    /// use std::time::{Duration, Instant};
    /// let late = Instant::now() + Duration::from_secs(60);
    /// match days.compact_range_until(.."2025", || Instant::now() > late) {
    ///     Err(esker::Error::Interrupted) => println!("the rest is for another night"),
    ///     compacted => compacted?,
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact_range_until<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        interrupted: impl Fn() -> bool,
    ) -> Result<()> {
        self.compact_unless(range, Interruption::when(&interrupted))
    }

    fn compact_unless<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        interruption: Interruption<'_>,
    ) -> Result<()> {
        let bounds = &bounds(half_open(&self.state.order, &range)?);
        let (branch, keyspace) = (self.state.home.branch, Some(&*self.state));
        let _hurry = self.handle.core.pacer.share().hurry();
        self.handle.core.compact(&Wanted { branch, keyspace, bounds, interruption })
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
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let fruit = db.default_keyspace();
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.approximate_size::<&str>(..)?, 8);
    /// db.flush()?;
    /// assert!(fruit.approximate_size::<&str>(..)? > 8);
    /// assert_eq!(fruit.approximate_size("b"..)?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let range = half_open(&self.state.order, &range)?;
        self.handle.core.approximate_size(&self.state, range.0.as_deref(), range.1.as_deref())
    }

    /// The run segments of the keyspace, by partition; within each from new to old.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("apple", "red")?;
    /// db.flush()?;
    /// let segments = db.default_keyspace().segments()?;
    /// assert_eq!(segments[0].smallest, b"apple");
    /// assert_eq!(segments[0].entries, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn segments(&self) -> Result<Vec<SegmentShape>> {
        self.handle.core.segments(&self.state)
    }
}
