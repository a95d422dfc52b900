//! Copies, checks and statistics of a whole database, and background work on request.

use crate::compaction::choice::Wanted;
use crate::error::VerifyReport;
use crate::iter::Bounds;
use crate::sync::Interruption;
use crate::{Db, Result, Stats};
use std::path::Path;

impl Db {
    /// Copies the database, as it is at one moment, to another directory, while reads and writes
    /// go on. The copy holds everything written before the call and is durable when the call
    /// returns.
    ///
    /// The call flushes the memtables first. Hard links share the data files, which takes little
    /// time and space; on another device, or a file system without links, they are copied.
    /// Afterwards neither database depends on the other.
    ///
    /// # Errors
    /// [`crate::Error::Exists`] if the path exists, and nothing is changed;
    /// [`crate::Error::ReadOnly`], [`crate::Error::DiskFull`], [`crate::Error::Io`],
    /// [`crate::Error::Poisoned`]. After an error there is no database at the path.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let copies = tempfile::tempdir().unwrap(); let copy = copies.path().join("monday");
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("stock", "100")?;
    /// db.checkpoint(&copy)?;
    /// db.insert("stock", "40")?;
    /// let monday = esker::Db::open(&copy)?;
    /// assert_eq!(monday.get("stock")?.as_deref(), Some(&b"100"[..]));
    /// # monday.close()?; db.close()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        self.core().checkpoint(path.as_ref())
    }

    /// Flushes the memtables: writes their entries as runs.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`], [`crate::Error::Io`], [`crate::Error::Poisoned`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("k", "v")?;
    /// db.flush()?;
    /// assert_eq!(db.stats().flushes, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        self.core().flush()
    }

    /// Like [`Db::flush`], until `interrupted` returns true, which is asked as in
    /// [`Db::compact_until`]. An interrupted flush goes on in the background as far as it was begun,
    /// and what is in memory is in the log as before, unless it was written with
    /// [`crate::Durability::Buffered`].
    ///
    /// # Errors
    /// As [`Db::flush`]; [`crate::Error::Interrupted`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use std::time::{Duration, Instant};
    /// db.insert("k", "v")?;
    /// let late = Instant::now() + Duration::from_secs(60);
    /// db.flush_until(|| Instant::now() > late)?; // Waits no longer than a minute.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn flush_until(&self, interrupted: impl Fn() -> bool) -> Result<()> {
        self.core().flush_until(Interruption::when(&interrupted))
    }

    /// Flushes, and compacts whatever a compaction can make smaller, if only by compression.
    ///
    /// # Errors
    /// As [`crate::Keyspace::compact`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("k", "v")?;
    /// db.remove_range::<&str>(..)?;
    /// db.compact()?; // Frees the space of what was removed.
    /// assert!(db.default_keyspace().segments()?.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        self.compact_unless(Interruption::NEVER)
    }

    /// Like [`Db::compact`], until `interrupted` returns true. The calling thread asks it before it waits and about
    /// twenty times a second while it does. A program passes a closure that looks at a flag of its own, which a
    /// handler of signals, a timer or another thread sets.
    ///
    /// An interrupted compaction loses nothing: what is compacted stays so, what has been begun ends in the
    /// background, and the rest is taken back, unless it is due anyway or another call waits for it. A later
    /// compaction goes on with what is left.
    ///
    /// # Errors
    /// As [`Db::compact`]; [`crate::Error::Interrupted`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::Error;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// # db.insert("k", "v")?; db.remove("k")?;
    /// static ENDED: AtomicBool = AtomicBool::new(false); // A handler of signals sets it.
    /// # ENDED.store(true, Ordering::Relaxed);
    /// match db.compact_until(|| ENDED.load(Ordering::Relaxed)) {
    ///     Ok(()) => println!("everything is compacted"),
    ///     Err(Error::Interrupted) => println!("a part is compacted"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact_until(&self, interrupted: impl Fn() -> bool) -> Result<()> {
        self.compact_unless(Interruption::when(&interrupted))
    }

    fn compact_unless(&self, interruption: Interruption<'_>) -> Result<()> {
        let _hurry = self.core().pacer.share().hurry();
        let (branch, bounds) = (self.branch.id, &Bounds::default());
        self.core().compact(&Wanted { branch, keyspace: None, bounds, interruption })
    }

    /// Waits until there is no background work left. If something was written since the database was
    /// opened, it takes this for a pause of the writes: what waits in large trees is compacted even
    /// where it is not due, and settled data that is not compressed is compressed, as they would be
    /// after two seconds without writes. A write ends that.
    ///
    /// # Errors
    /// The error that stopped the background work for good.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("k", "v")?;
    /// db.flush()?;
    /// db.wait_until_idle()?;
    /// assert_eq!(db.stats().compaction_debt, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wait_until_idle(&self) -> Result<()> {
        let _hurry = self.core().pacer.share().hurry();
        self.core().wait_until_idle()
    }

    /// Statistics of the database.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("k", "v")?;
    /// assert_eq!(db.stats().puts, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.core().stats(self.branch.id)
    }

    /// Statistics as text in the format OpenMetrics 1.0, for Prometheus and other collectors: as
    /// [`Stats::openmetrics`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// assert!(db.openmetrics().starts_with("# TYPE esker_puts counter\n"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn openmetrics(&self) -> String {
        self.stats().openmetrics()
    }

    /// Reads all stored data and reports what is damaged.
    ///
    /// # Errors
    /// Only if the check itself cannot go on; the report lists the damage.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// assert!(db.verify()?.problems.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        self.core().verify(Interruption::NEVER)
    }

    /// Like [`Db::verify`], until `interrupted` returns true. It is called before each part of a file that is read.
    /// The report of an interrupted search is about what was read until then, and says so
    /// ([`VerifyReport::interrupted`]).
    ///
    /// # Errors
    /// As [`Db::verify`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use std::time::{Duration, Instant};
    /// let late = Instant::now() + Duration::from_secs(60);
    /// let report = db.verify_until(|| Instant::now() > late)?;
    /// let read = if report.interrupted { "what was read" } else { "everything" };
    /// assert!(report.problems.is_empty(), "{read} should be whole");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify_until(&self, interrupted: impl Fn() -> bool) -> Result<VerifyReport> {
        self.core().verify(Interruption::when(&interrupted))
    }
}
