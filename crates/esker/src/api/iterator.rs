//! Iterators.

use super::range::Pair;
use crate::base::{Bytewise, CustomOrder};
use crate::catalog::Order;
use crate::db::scan::{Scan, Scope};
use crate::iter::Bounds;
use crate::state::memtables::DbOrder;
use crate::trace::Unwatched;
use crate::{Error, Result};
use std::borrow::BorrowMut;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An iterator over the entries of a keyspace, from both ends.
///
/// It shows the keyspace as it was when the iterator was made, holds no lock, and never stops
/// early without an error. It returns an error once. An error of a single entry (its operands
/// cannot be combined: [`Error::MergeFailed`], [`Error::MergeOperatorMissing`], an operator that
/// panics) does not end the iteration: the next call goes on after that entry. After any other
/// error that end of the iterator returns nothing more until [`Iter::seek`] repositions it.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// for key in ["a", "b", "c", "d"] {
///     db.insert(key, "1")?;
/// }
/// let keys: Vec<_> = db.range("b"..)?.rev().map(|entry| entry.map(|(key, _)| key)).collect();
/// assert_eq!(keys.len(), 3);
/// let mut iter = db.iter()?;
/// iter.seek("c")?;
/// assert_eq!(iter.next_entry()?, Some((&b"c"[..], &b"1"[..])));
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Iter {
    inner: Inner,
    /// Keeps the database open.
    handle: Arc<super::handle::Handle>,
}

enum Inner {
    Bytewise(Ends<Bytewise>),
    Custom(Ends<CustomOrder>),
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

/// The two ends of an iterator. Each end that is in use has its own scan. When both are in use, each stops where the
/// other stands.
struct Ends<O: DbOrder> {
    order: O,
    front: End<O, Scan<O>>,
    /// Few iterators are read from the back.
    back: End<O, Box<Scan<O>>>,
}

/// The position of an end.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Nowhere yet.
    Outside,
    /// On the entry that it returns next.
    Before,
    /// On the entry that it returned last, or on one whose error it returned.
    Behind,
    /// After the last entry that is left for this end.
    Done,
    /// It failed and returned the error: it returns nothing more until it is repositioned.
    Failed,
}

struct End<O: DbOrder, S> {
    scan: Option<S>,
    place: Place,
    order: PhantomData<O>,
}

impl<O: DbOrder, S: BorrowMut<Scan<O>>> End<O, S> {
    #[inline(always)]
    fn new(scan: Option<S>) -> Self {
        Self { scan, place: Place::Outside, order: PhantomData }
    }

    /// Advances this end. Returns its scan if it then stands on an entry to return.
    #[inline]
    fn advance<T: BorrowMut<Scan<O>>>(
        &mut self,
        order: &O,
        other: &End<O, T>,
        forward: bool,
    ) -> Result<Option<&Scan<O>>> {
        let place = self.place;
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let scan = scan.borrow_mut();
        let moved = match (place, forward) {
            (Place::Done | Place::Failed, _) => return Ok(None),
            (Place::Before, _) => scan.refusal().map_or(Ok(()), Err),
            (Place::Outside, true) => scan.seek_to_first(),
            (Place::Outside, false) => scan.seek_to_last(),
            (Place::Behind, true) => scan.next(),
            (Place::Behind, false) => scan.prev(),
        };
        let passed = scan.valid() && other.has_passed(order, scan.key(), forward);
        if let Err(error) = moved.and_then(|()| scan.trust()) {
            let refused = scan.refused().map(|key| other.has_passed(order, key, forward));
            self.place = match refused {
                // The ends met, and the other end returns the error of this entry.
                Some(true) => Place::Before,
                Some(false) => Place::Behind,
                // Seeded: an iterator keeps returning the error that ended it.
                None if bug!("api_ended_iterator_fails_again") => Place::Outside,
                None => Place::Failed,
            };
            return if refused == Some(true) { Ok(None) } else { Err(error) };
        }
        if !scan.valid() {
            self.place = Place::Done;
            return Ok(None);
        }
        if passed {
            // The ends met. A seek may separate them again, so this end stays on its entry.
            self.place = Place::Before;
            return Ok(None);
        }
        self.place = Place::Behind;
        Ok(self.scan.as_ref().map(S::borrow))
    }

    /// Whether this end has passed `key`, which the other end reached moving `forward`.
    fn has_passed(&self, order: &O, key: &[u8], forward: bool) -> bool {
        let scan = self.scan.as_ref().map(S::borrow);
        let own =
            scan.and_then(|scan| if scan.valid() { Some(scan.key()) } else { scan.refused() });
        let Some(own) = own else {
            return matches!(self.place, Place::Done);
        };
        let beyond = if forward { order.compare(key, own) } else { order.compare(own, key) };
        match self.place {
            Place::Behind => beyond.is_ge(),
            Place::Before => beyond.is_gt(),
            Place::Done => true,
            Place::Outside | Place::Failed => false,
        }
    }
}

impl<O: DbOrder> Ends<O> {
    /// Leaks everything instead of dropping it.
    fn leak(&mut self) {
        std::mem::forget((self.front.scan.take(), self.back.scan.take()));
    }

    // Inlined, as what it calls is: a new iterator is made where it stays, in place of being moved from call to call.
    #[inline(always)]
    fn new(order: O, scope: Scope) -> Self {
        let front = Scan::new(scope, order.clone(), Unwatched);
        Self { order, front: End::new(Some(front)), back: End::new(None) }
    }

    /// Lets the front begin anew, at the first entry, and leave values in pieces where they lie.
    fn leave_pieces(&mut self) {
        self.prepare(true);
        self.front.place = Place::Outside;
        if let Some(scan) = &mut self.front.scan {
            scan.begin_anew();
            scan.reading.leaves_pieces = true;
        }
    }

    /// Sees to it that an end has a scan. A new iterator has one, which the front has until the back is used first.
    #[inline]
    fn prepare(&mut self, forward: bool) {
        let (front, back) = (&mut self.front, &mut self.back);
        if forward && front.scan.is_none() {
            front.scan = back.scan.as_deref().map(Scan::again);
        }
        if !forward && back.scan.is_none() {
            let is_new = |scan: &mut Scan<O>| !scan.reading.leaves_pieces;
            let new = match front.place {
                Place::Outside => front.scan.take_if(is_new),
                _ => None,
            };
            back.scan = new.or_else(|| front.scan.as_ref().map(Scan::again)).map(Box::new);
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.prepare(true);
        let Some(scan) = &mut self.front.scan else { return Ok(()) };
        let sought = scan.seek(key).and_then(|()| scan.trust());
        let valid = scan.valid();
        self.front.place = match &sought {
            Ok(()) if valid => Place::Before,
            // After the last entry: the back has nothing left either.
            Ok(()) => Place::Done,
            Err(_) if scan.refused().is_some() => Place::Behind,
            Err(_) => Place::Failed,
        };
        sought
    }

    /// Advances one end. Returns its scan if it then stands on an entry to return.
    #[inline]
    fn advance(&mut self, forward: bool) -> Result<Option<&Scan<O>>> {
        self.prepare(forward);
        let Self { order, front, back } = self;
        if forward { front.advance(order, back, true) } else { back.advance(order, front, false) }
    }
}

impl Iter {
    /// An iterator over the keys within `bounds`, as of `at` or of now.
    pub(super) fn new(
        handle: &Arc<super::handle::Handle>,
        keyspace: &Arc<crate::catalog::KeyspaceState>,
        bounds: Bounds,
        at: Option<crate::base::Moment>,
    ) -> Result<Self> {
        let core = &handle.core;
        core.check_open()?;
        let scope = core.scan_scope(keyspace, bounds, at)?;
        let inner = match &keyspace.order {
            Order::Bytewise => Inner::Bytewise(Ends::new(Bytewise, scope)),
            Order::Custom(order) => Inner::Custom(Ends::new(order.clone(), scope)),
            Order::Missing(comparator) => {
                let keyspace = keyspace.name.clone();
                return Err(Error::ComparatorMissing { keyspace, comparator: comparator.clone() });
            }
        };
        Ok(Self { inner, handle: handle.clone() })
    }

    /// An iterator whose front leaves values in pieces (see [`Keyspace::insert_reader`]) where they lie. It shows
    /// their keys with empty values, and [`Iter::is_in_pieces`] tells them from others. So a scan needs no
    /// memory for a large value, and [`Snapshot::get_reader`] reads it. The front begins anew at the first
    /// entry. The back, and merge operators, have values whole.
    ///
    /// [`Keyspace::insert_reader`]: crate::Keyspace::insert_reader
    /// [`Snapshot::get_reader`]: crate::Snapshot::get_reader
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use std::io::Read;
    /// db.insert_reader("film", std::io::repeat(1).take(3_000_000))?;
    /// db.insert("name", "value")?;
    /// let (files, snapshot) = (db.default_keyspace(), db.snapshot()?);
    /// let mut iter = snapshot.iter(&files)?.leaving_pieces();
    /// let mut bytes = 0;
    /// while let Some((key, value)) = iter.next_entry()? {
    ///     let (key, len) = (key.to_vec(), value.len() as u64);
    ///     bytes += match iter.is_in_pieces() {
    ///         true => snapshot.get_reader(&files, key)?.map_or(0, |reader| reader.len()),
    ///         false => len,
    ///     };
    /// }
    /// assert_eq!(bytes, 3_000_005);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn leaving_pieces(mut self) -> Self {
        match &mut self.inner {
            Inner::Bytewise(ends) => ends.leave_pieces(),
            Inner::Custom(ends) => ends.leave_pieces(),
        }
        self
    }

    /// Whether the value of the entry that the front returned last was left where it lies, in pieces: only after
    /// [`Iter::leaving_pieces`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("short", "value")?;
    /// let mut iter = db.iter()?.leaving_pieces();
    /// assert_eq!(iter.next_entry()?, Some((&b"short"[..], &b"value"[..])));
    /// assert!(!iter.is_in_pieces());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn is_in_pieces(&self) -> bool {
        match &self.inner {
            Inner::Bytewise(ends) => {
                ends.front.scan.as_ref().is_some_and(|scan| scan.is_in_pieces())
            }
            Inner::Custom(ends) => ends.front.scan.as_ref().is_some_and(|scan| scan.is_in_pieces()),
        }
    }

    /// Moves the front, forward or back, to the first key at or after `key` within the range of
    /// the iterator. `next` then returns that entry.
    ///
    /// # Errors
    /// The errors of reading: [`Error::Corruption`], [`Error::Io`]; [`Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["a", "c", "e"] { db.insert(key, "")?; }
    /// let mut iter = db.iter()?;
    /// iter.seek("b")?;
    /// assert_eq!(iter.next().transpose()?, Some((b"c".to_vec(), vec![])));
    /// iter.seek("a")?; // Back again.
    /// assert_eq!(iter.count(), 3);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.handle.core.check_open()?;
        match &mut self.inner {
            Inner::Bytewise(ends) => ends.seek(key.as_ref()),
            Inner::Custom(ends) => ends.seek(key.as_ref()),
        }
    }

    /// The next entry from the front, borrowed until the next call, without a copy.
    ///
    /// # Errors
    /// The errors of reading: [`Error::Corruption`], [`Error::Io`]; [`Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["a", "b"] { db.insert(key, "1234")?; }
    /// let (mut iter, mut bytes) = (db.iter()?, 0);
    /// while let Some((key, value)) = iter.next_entry()? {
    ///     bytes += key.len() + value.len(); // Nothing was copied.
    /// }
    /// assert_eq!(bytes, 10);
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.entry(true)
    }

    /// The next entry from the back, borrowed until the next call, without a copy.
    ///
    /// # Errors
    /// The errors of reading: [`Error::Corruption`], [`Error::Io`]; [`Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["a", "b", "c"] { db.insert(key, "1")?; }
    /// let mut iter = db.iter()?;
    /// assert_eq!(iter.next_back_entry()?, Some((&b"c"[..], &b"1"[..])));
    /// assert_eq!(iter.next_entry()?, Some((&b"a"[..], &b"1"[..])));
    /// assert_eq!(iter.next_back_entry()?, Some((&b"b"[..], &b"1"[..])));
    /// assert_eq!(iter.next_back_entry()?, None); // The ends have met.
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn next_back_entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.entry(false)
    }

    #[inline]
    fn entry(&mut self, forward: bool) -> Result<Option<(&[u8], &[u8])>> {
        if let Err(error) = self.handle.core.check_open() {
            // This error is returned once, too.
            let place = self.place(forward);
            let told = matches!(place, Place::Done | Place::Failed);
            *place = Place::Failed;
            return if told { Ok(None) } else { Err(error) };
        }
        Ok(match &mut self.inner {
            Inner::Bytewise(ends) => ends.advance(forward)?.map(|scan| (scan.key(), scan.value())),
            Inner::Custom(ends) => ends.advance(forward)?.map(|scan| (scan.key(), scan.value())),
        })
    }

    /// Whether an end can go on after the error that it returned last.
    pub(super) fn goes_on(&mut self, forward: bool) -> bool {
        !matches!(self.place(forward), Place::Failed)
    }

    fn place(&mut self, forward: bool) -> &mut Place {
        match (&mut self.inner, forward) {
            (Inner::Bytewise(ends), true) => &mut ends.front.place,
            (Inner::Bytewise(ends), false) => &mut ends.back.place,
            (Inner::Custom(ends), true) => &mut ends.front.place,
            (Inner::Custom(ends), false) => &mut ends.back.place,
        }
    }

    fn pair(&mut self, forward: bool) -> Option<Result<Pair>> {
        let copied = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        self.entry(forward).map(|entry| entry.map(copied)).transpose()
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        // Dropping the scans may take locks, which in a forked child may be held by a thread that
        // does not exist there (R26).
        if self.handle.core.is_forked() {
            match &mut self.inner {
                Inner::Bytewise(ends) => ends.leak(),
                Inner::Custom(ends) => ends.leak(),
            }
        }
    }
}

impl Iterator for Iter {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pair(true)
    }
}

impl std::iter::FusedIterator for Iter {}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.pair(false)
    }
}
