//! Calls that say what they did: a get, a scan and a put with an explanation of each.

use super::range::{bounds, half_open};
use super::snapshot::Snapshot;
use crate::base::Moment;
use crate::catalog::{Order, missing_order};
use crate::db::scan::Scan;
use crate::iter::Bounds;
use crate::state::memtables::DbOrder;
use crate::trace::{Watching, WriteRecording};
use crate::{Db, Explanation, Keyspace, Result};
use std::ops::RangeBounds;
use std::time::Instant;

impl Keyspace {
    /// Reads a key like [`Keyspace::get`], and says what the read did: each source in order, how it
    /// ended, the blocks and bytes that it read, and how long it took. The value itself is not
    /// returned.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::Outcome;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// db.flush()?;
    /// let explanation = fruit.explain_get("apple")?;
    /// let outcomes: Vec<Outcome> = explanation.steps.iter().map(|step| step.outcome).collect();
    /// // The memtable is empty, and the only run has the key.
    /// assert_eq!(outcomes, [Outcome::FilterAbsent, Outcome::Found]);
    /// println!("{explanation}");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn explain_get(&self, key: impl AsRef<[u8]>) -> Result<Explanation> {
        self.explain_get_at(key.as_ref(), None)
    }

    fn explain_get_at(&self, key: &[u8], at: Option<Moment>) -> Result<Explanation> {
        self.handle.core.explain_get(&self.state, key, at)
    }

    /// Walks over at most `limit` entries of a range like [`Keyspace::range`], and says what the
    /// scan did: the blocks, bytes and time of each source in each partition that it entered, and
    /// how many entries it passed without returning them. It is slower than a plain scan, because
    /// each move of each source is timed.
    ///
    /// # Errors
    /// As [`Keyspace::range`], and what moving the iterator fails with.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.insert(name, "")?; }
    /// fruit.remove("banana")?;
    /// let explanation = fruit.explain_scan::<&str>(.., 10)?;
    /// assert_eq!(explanation.entries, 2);
    /// assert_eq!(explanation.stepped_over, 2); // The delete, and the value that it hides.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn explain_scan<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        limit: u64,
    ) -> Result<Explanation> {
        let bounds = bounds(half_open(&self.state.order, &range)?);
        self.explain_scan_at(bounds, limit, None)
    }

    fn explain_scan_at(
        &self,
        bounds: Bounds,
        limit: u64,
        at: Option<Moment>,
    ) -> Result<Explanation> {
        match &self.state.order {
            Order::Bytewise => self.explain_ordered_scan(&crate::base::Bytewise, bounds, limit, at),
            Order::Custom(order) => self.explain_ordered_scan(order, bounds, limit, at),
            Order::Missing(name) => Err(missing_order(&self.state.name, name)),
        }
    }

    fn explain_ordered_scan<O: DbOrder>(
        &self,
        order: &O,
        bounds: Bounds,
        limit: u64,
        at: Option<Moment>,
    ) -> Result<Explanation> {
        let core = &self.handle.core;
        core.check_open()?;
        let began = Instant::now();
        let scope = core.scan_scope(&self.state, bounds, at)?;
        let watching = Watching::default();
        let mut scan = Scan::new(scope, order.clone(), watching.clone());
        if limit > 0 {
            scan.seek_to_first()?;
        }
        let mut entries = 0;
        while scan.valid() && entries < limit {
            entries += 1;
            if entries < limit {
                scan.next()?;
            }
        }
        scan.trust()?;
        let stepped_over = scan.skipped();
        drop(scan);
        let explanation = Explanation::of("scan", &self.state.name, began.elapsed());
        let explanation = explanation.with_steps(watching.take());
        Ok(Explanation { found: entries > 0, entries, stepped_over, ..explanation })
    }

    /// Inserts a value like [`Keyspace::insert`], and says what the write did: how long each phase
    /// took (admission, reservation, copy to the log, insertion into the memtable, publication,
    /// sync), and what the write waited for.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// let explanation = fruit.explain_put("apple", "red")?;
    /// assert_eq!(explanation.steps[0].source, esker::StepSource::Admission);
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// println!("{explanation}");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn explain_put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Explanation> {
        let mut recording = WriteRecording::default();
        let terms = self.handle.core.durability().into();
        self.put_followed(key.as_ref(), value.as_ref(), terms, &mut recording)?;
        Ok(recording.explain(&self.state.name))
    }
}

impl Snapshot {
    /// [`Keyspace::explain_get`] as of the snapshot.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let before = db.snapshot()?;
    /// db.insert("apple", "red")?;
    /// assert!(!before.explain_get(&db.default_keyspace(), "apple")?.found);
    /// assert!(db.explain_get("apple")?.found);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn explain_get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Explanation> {
        keyspace.explain_get_at(key.as_ref(), self.at(keyspace)?)
    }
}

impl Db {
    /// [`Keyspace::explain_get`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "open")?;
    /// println!("{}", db.explain_get("door")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn explain_get(&self, key: impl AsRef<[u8]>) -> Result<Explanation> {
        self.default.explain_get(key)
    }

    /// [`Keyspace::explain_scan`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "open")?;
    /// assert_eq!(db.explain_scan("a"..="z", 100)?.entries, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn explain_scan<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        limit: u64,
    ) -> Result<Explanation> {
        self.default.explain_scan(range, limit)
    }

    /// [`Keyspace::explain_put`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// println!("{}", db.explain_put("door", "open")?);
    /// assert_eq!(db.get("door")?, Some(b"open".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn explain_put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Explanation> {
        self.default.explain_put(key, value)
    }
}
