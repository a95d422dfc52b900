//! Cursors: an iterator that stands on an entry.

use crate::base::{Bytewise, CustomOrder};
use crate::catalog::{KeyspaceState, Order};
use crate::db::scan::Scan;
use crate::iter::Bounds;
use crate::state::memtables::DbOrder;
use crate::trace::Unwatched;
use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A position in a keyspace that moves in both directions. The cursor shows the keyspace as it was
/// when the cursor was made.
///
/// An [`crate::Iter`] returns entries from its two ends; a cursor stands on one entry, whose key
/// and value stay readable until it moves. Other stores and languages call this an iterator. A new
/// cursor stands on no entry; [`Cursor::seek`] and the other seeks place it. It holds no lock.
/// After an error it stands on no entry, and steps repeat the error until a seek places the cursor
/// again. The exception is the error of a single entry whose operands cannot be combined: a step
/// then goes on to that entry's neighbour.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// for key in ["a", "c", "e"] {
///     db.insert(key, "1")?;
/// }
/// let mut cursor = db.default_keyspace().cursor()?;
/// assert!(!cursor.valid());
/// cursor.seek("b")?;
/// assert_eq!(cursor.key(), b"c");
/// cursor.prev()?;
/// assert_eq!(cursor.key(), b"a");
/// cursor.prev()?;
/// assert!(!cursor.valid());
/// cursor.seek_to_last()?;
/// assert_eq!(cursor.key(), b"e");
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Cursor {
    inner: Inner,
    error: Option<Error>,
    /// Keeps the database open.
    handle: Arc<super::handle::Handle>,
}

#[allow(clippy::large_enum_variant, reason = "a box would cost each step")]
enum Inner {
    Bytewise(Scan<Bytewise>),
    Custom(Scan<CustomOrder>),
    /// In a forked child, while the cursor is dropped.
    Gone,
}

macro_rules! scan {
    ($cursor:expr, $scan:ident => $call:expr, $gone:expr) => {
        match $cursor {
            Inner::Bytewise($scan) => $call,
            Inner::Custom($scan) => $call,
            Inner::Gone => $gone,
        }
    };
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}

impl Cursor {
    /// A cursor over the keys within `bounds`, as of `at` or of now.
    pub(super) fn new(
        handle: &Arc<super::handle::Handle>,
        keyspace: &Arc<KeyspaceState>,
        bounds: Bounds,
        at: Option<crate::base::Moment>,
    ) -> Result<Self> {
        handle.core.check_open()?;
        let scope = handle.core.scan_scope(keyspace, bounds, at)?;
        let inner = match &keyspace.order {
            Order::Bytewise => Inner::Bytewise(Scan::new(scope, Bytewise, Unwatched)),
            Order::Custom(order) => Inner::Custom(Scan::new(scope, order.clone(), Unwatched)),
            Order::Missing(comparator) => {
                let keyspace = keyspace.name.clone();
                return Err(Error::ComparatorMissing { keyspace, comparator: comparator.clone() });
            }
        };
        Ok(Self { inner, error: None, handle: handle.clone() })
    }

    /// Whether the cursor stands on an entry.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let mut cursor = db.default_keyspace().cursor()?;
    /// cursor.seek_to_first()?;
    /// assert!(!cursor.valid()); // The keyspace is empty.
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn valid(&self) -> bool {
        self.error.is_none() && scan!(&self.inner, scan => scan.valid(), false)
    }

    /// The key under the cursor; empty if there is none.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?;
    /// let mut cursor = fruit.cursor()?;
    /// assert!(cursor.key().is_empty()); // It stands nowhere yet.
    /// cursor.seek_to_first()?;
    /// assert_eq!(cursor.key(), b"apple");
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn key(&self) -> &[u8] {
        scan!(&self.inner, scan => scan.key(), &[])
    }

    /// The value under the cursor; empty if there is none.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek("apple")?;
    /// assert_eq!(cursor.value(), b"red");
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn value(&self) -> &[u8] {
        scan!(&self.inner, scan => scan.value(), &[])
    }

    /// The error of the last move, if it failed.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek_to_first()?;
    /// while cursor.valid() {
    ///     if cursor.next().is_err() {
    ///         break;
    ///     }
    /// }
    /// // The loop ended at the last entry, or at an error.
    /// assert!(cursor.error().is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Goes to the first entry.
    ///
    /// # Errors
    /// The errors of reading: [`Error::Corruption`], [`Error::Io`]; [`Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek_to_first()?;
    /// assert_eq!(cursor.key(), b"apple");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.go(Scan::seek_to_first, Scan::seek_to_first)
    }

    /// Goes to the last entry.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek_to_last()?;
    /// assert_eq!(cursor.key(), b"pear");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.go(Scan::seek_to_last, Scan::seek_to_last)
    }

    /// Goes to the first entry at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek("banana")?;
    /// assert_eq!(cursor.key(), b"pear"); // The next one.
    /// cursor.seek("zucchini")?;
    /// assert!(!cursor.valid()); // There is none.
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.go(|scan| scan.seek(key), |scan| scan.seek(key))
    }

    /// Goes to the last entry at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let prices = db.keyspace("prices")?;
    /// prices.insert("2025-01-01", "10")?;
    /// prices.insert("2025-06-01", "12")?;
    /// let mut cursor = prices.cursor()?;
    /// cursor.seek_back("2025-03-15")?; // The price on that day.
    /// assert_eq!(cursor.value(), b"10");
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.go(|scan| at_or_before(scan, key), |scan| at_or_before(scan, key))
    }

    /// Goes to the next entry. A cursor on no entry stays where it is.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek_to_first()?;
    /// cursor.next()?;
    /// assert_eq!(cursor.key(), b"pear");
    /// cursor.next()?;
    /// assert!(!cursor.valid());
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "named like its opposite; yields nothing")]
    pub fn next(&mut self) -> Result<()> {
        self.check_step()?;
        if self.stands() { self.go(Scan::next, Scan::next) } else { Ok(()) }
    }

    /// Goes to the previous entry. A cursor on no entry stays where it is.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek("pear")?;
    /// cursor.prev()?;
    /// assert_eq!(cursor.key(), b"apple");
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.check_step()?;
        if self.stands() { self.go(Scan::prev, Scan::prev) } else { Ok(()) }
    }

    /// Returns the error of the last move again, unless it concerns a single entry.
    #[inline]
    fn check_step(&self) -> Result<()> {
        match &self.error {
            Some(error) if !self.refused() => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Whether there is a position from which to step.
    #[inline]
    fn stands(&self) -> bool {
        self.valid() || self.refused()
    }

    fn refused(&self) -> bool {
        scan!(&self.inner, scan => scan.refused().is_some(), false)
    }

    /// Moves the scan and keeps its error.
    #[inline]
    fn go(
        &mut self,
        bytewise: impl FnOnce(&mut Scan<Bytewise>) -> Result<()>,
        custom: impl FnOnce(&mut Scan<CustomOrder>) -> Result<()>,
    ) -> Result<()> {
        let moved = self.handle.core.check_open().and_then(|()| match &mut self.inner {
            Inner::Bytewise(scan) => bytewise(scan),
            // A result counts only while the comparator can be trusted (R15).
            Inner::Custom(scan) => custom(scan).and_then(|()| scan.trust()),
            Inner::Gone => Ok(()),
        });
        self.error = moved.as_ref().err().cloned();
        moved
    }
}

/// Moves a scan to the last entry at or before `key`.
fn at_or_before<O: DbOrder>(scan: &mut Scan<O>, key: &[u8]) -> Result<()> {
    let found = scan.seek(key);
    match scan.refused() {
        // The refused entry stands after `key`.
        Some(refused) if scan.order().compare(refused, key).is_gt() => return scan.prev(),
        _ => found?,
    }
    if !scan.valid() {
        return scan.seek_to_last();
    }
    if scan.order().compare(scan.key(), key).is_gt() { scan.prev() } else { Ok(()) }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // Dropping the scan may take locks, which in a forked child may be held by a thread that
        // does not exist there (R26).
        if self.handle.core.is_forked() {
            std::mem::forget(std::mem::replace(&mut self.inner, Inner::Gone));
        }
    }
}
