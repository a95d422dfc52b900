//! Iterators: plyvel's two, over one walk or one cursor.

use crate::bytes::{Input, drop_detached};
use crate::errors::{Failure, Result, closed, invalid};
use crate::shared::Space;
use crate::walk::{Range, Walk};
use esker::Cursor;
use esker::internals::stats::clients::Counted;
use parking_lot::Mutex;
use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// Entries that are fetched at once while an iterator keeps its direction.
const AHEAD_ENTRIES_MAX: usize = 64;

/// No more is fetched once this many bytes are there.
const AHEAD_BYTES: usize = 32 << 10;

/// The arguments of an iterator, as Python gives them.
pub(crate) struct Wish<'a, 'py> {
    pub(crate) reverse: bool,
    pub(crate) start: Option<Input<'a, 'py>>,
    pub(crate) stop: Option<Input<'a, 'py>>,
    /// Whether the range has its start in it, and its stop.
    pub(crate) include: (bool, bool),
    pub(crate) prefix: Option<Input<'a, 'py>>,
    /// Whether keys are returned, and values.
    pub(crate) shown: (bool, bool),
}

impl Wish<'_, '_> {
    /// Every key and value, in order.
    pub(crate) fn everything() -> Self {
        let (include, shown) = ((true, false), (true, true));
        Self { reverse: false, start: None, stop: None, include, prefix: None, shown }
    }

    /// The range of keys that is meant, in the keyspace.
    pub(crate) fn range(&self, space: &Space) -> Result<Range> {
        let bounds =
            (self.start.as_ref().map(Input::as_bytes), self.stop.as_ref().map(Input::as_bytes));
        range(space, bounds, self.include, self.prefix.as_ref().map(Input::as_bytes))
    }
}

/// The first key that does not begin with `prefix`, in byte order; `None`: there is none.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The range of keys in the keyspace that lie in a space and between two bounds, or behind a
/// prefix.
pub(crate) fn range(
    space: &Space,
    bounds: (Option<&[u8]>, Option<&[u8]>),
    include: (bool, bool),
    prefix: Option<&[u8]>,
) -> Result<Range> {
    let (start, stop) = bounds;
    if prefix.is_some() && (start.is_some() || stop.is_some()) {
        let what = "'prefix' cannot be used together with 'start' or 'stop'";
        return Err(Failure::Python(PyTypeError::new_err(what)));
    }
    if space.order.is_some() && (prefix.is_some() || space.prefix.is_some()) {
        let what = "in an order of your own, keys with a common prefix need not stand together: \
                    give 'start' and 'stop'";
        return Err(invalid(what));
    }
    let own = space.prefix.as_deref().unwrap_or_default();
    let with_own = |key: &[u8]| [own, key].concat();
    let within = |prefix: &[u8]| Range {
        start: (!prefix.is_empty()).then(|| prefix.to_vec()),
        stop: behind_prefix(prefix),
        include_start: true,
        include_stop: false,
    };
    if let Some(prefix) = prefix {
        return Ok(within(&with_own(prefix)));
    }
    let mut range = within(own);
    if let Some(start) = start {
        (range.start, range.include_start) = (Some(with_own(start)), include.0);
    }
    if let Some(stop) = stop {
        (range.stop, range.include_stop) = (Some(with_own(stop)), include.1);
    }
    Ok(range)
}

/// What an iterator returns of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    key: bool,
    value: bool,
    /// Bytes that keys lack: the prefix of a prefixed database.
    strip: usize,
}

impl Shape {
    /// Of entries of a space; `shown`: whether keys are returned, and values.
    pub(crate) fn new(space: &Space, shown: (bool, bool)) -> Self {
        let strip = space.prefix.as_ref().map_or(0, |prefix| prefix.len());
        Self { key: shown.0, value: shown.1, strip }
    }

    /// The object for an entry.
    pub(crate) fn object<'py>(
        self,
        py: Python<'py>,
        key: &[u8],
        value: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let key = || PyBytes::new(py, key.get(self.strip..).unwrap_or_default());
        let value = || PyBytes::new(py, value);
        Ok(match (self.key, self.value) {
            (true, true) => (key(), value()).into_pyobject(py)?.into_any(),
            (true, false) => key().into_any(),
            (false, true) => value().into_any(),
            (false, false) => py.None().into_bound(py),
        })
    }
}

/// The state of an iterator: a walk, and entries that it passed but Python did not see yet.
struct State {
    walk: Walk,
    /// Keys and values that were fetched, one behind the other.
    bytes: Vec<u8>,
    /// Where each fetched entry has its key's end and its value's end.
    ends: Vec<(usize, usize)>,
    /// How many fetched entries Python has seen.
    seen: usize,
    /// Whether the fetched entries were met going forward.
    forward: bool,
    /// How many to fetch next time.
    ahead: usize,
    /// The bytes of fetched entries, in the account of memory.
    counted: Counted,
}

impl State {
    /// The entry that was fetched as number `index`.
    fn entry(&self, index: usize) -> (&[u8], &[u8]) {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let (key_end, end) = self.ends[index];
        (&self.bytes[begin..key_end], &self.bytes[key_end..end])
    }

    /// Drops the fetched entries, for a caller that moves the walk elsewhere.
    fn forget(&mut self) {
        self.ends.clear();
        self.bytes.clear();
        (self.seen, self.ahead) = (0, 1);
    }

    /// Takes the walk back to where Python saw it.
    fn settle(&mut self) -> Result<()> {
        if self.seen < self.ends.len() {
            let key = match self.seen.checked_sub(1) {
                Some(last) => self.entry(last).0.to_vec(),
                // Nothing is fetched without being asked for, so the first one was seen.
                None => self.entry(0).0.to_vec(),
            };
            let behind = self.forward == (self.seen > 0);
            self.walk.beside(&key, behind)?;
        }
        self.forget();
        Ok(())
    }

    /// Fetches entries in one direction; none if there are no more.
    fn fetch(&mut self, forward: bool, entries: usize) -> Result<()> {
        self.bytes.clear();
        self.ends.clear();
        (self.seen, self.forward) = (0, forward);
        while self.ends.len() < entries && self.bytes.len() < AHEAD_BYTES {
            let moved = if forward { self.walk.forward() } else { self.walk.backward() };
            let (key, value) = match moved {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                // What was read is right; the walk repeats its error when it is asked again.
                Err(_) if !self.ends.is_empty() => break,
                Err(error) => return Err(error),
            };
            self.bytes.extend_from_slice(key);
            let key_end = self.bytes.len();
            self.bytes.extend_from_slice(value);
            self.ends.push((key_end, self.bytes.len()));
        }
        let ends = self.ends.capacity() * size_of::<(usize, usize)>();
        self.counted.set(self.bytes.capacity() + ends);
        Ok(())
    }

    /// Fetches an entry in this direction that Python did not see, if there is one.
    fn want(&mut self, forward: bool) -> Result<bool> {
        if self.seen < self.ends.len() {
            if self.forward == forward {
                return Ok(true);
            }
            self.settle()?;
        } else if self.forward != forward {
            self.ahead = 1;
        }
        let entries = self.ahead;
        self.ahead = (entries * 2).min(AHEAD_ENTRIES_MAX);
        self.fetch(forward, entries)?;
        Ok(!self.ends.is_empty())
    }
}

/// An iterator over a range of keys, as the database was when it was made.
///
/// It yields pairs of key and value, in the order of the keys or backwards. `prev()` goes back.
#[pyclass(frozen, module = "esker")]
pub(crate) struct Iterator {
    state: Mutex<Option<State>>,
    shape: Shape,
    reverse: bool,
    space: Space,
}

impl Iterator {
    /// An iterator over what `cursor` sees.
    pub(crate) fn new(
        py: Python<'_>,
        space: &Space,
        wish: &Wish<'_, '_>,
        cursor: impl FnOnce() -> esker::Result<Cursor> + Send,
    ) -> Result<Self> {
        space.shared.check()?;
        let range = wish.range(space)?;
        let mut walk = Walk::new(py.detach(cursor)?, space.order.clone(), range);
        if wish.reverse {
            walk.go_to_stop();
        }
        let (bytes, ends) = (Vec::new(), Vec::new());
        let forward = !wish.reverse;
        let counted = Counted::default();
        let state = State { walk, bytes, ends, seen: 0, forward, ahead: 1, counted };
        let shape = Shape::new(space, wish.shown);
        let (state, space) = (Mutex::new(Some(state)), space.clone());
        Ok(Self { state, shape, reverse: wish.reverse, space })
    }

    /// Hands the state to `then`, unless the iterator or the database is closed.
    fn with<R>(&self, py: Python<'_>, then: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let mut guard = self.space.shared.lock(py, &self.state)?;
        self.space.shared.check()?;
        then(guard.as_mut().ok_or_else(|| closed("the iterator"))?)
    }

    fn step<'py>(&self, py: Python<'py>, forward: bool) -> Result<Option<Bound<'py, PyAny>>> {
        self.with(py, |state| {
            let fetched = state.forward == forward && state.seen < state.ends.len();
            if !fetched && !py.detach(|| state.want(forward))? {
                return Ok(None);
            }
            state.seen += 1;
            let (key, value) = state.entry(state.seen - 1);
            Ok(Some(self.shape.object(py, key, value)?))
        })
    }
}

impl Drop for Iterator {
    fn drop(&mut self) {
        if let Some(state) = self.state.get_mut().take() {
            drop_detached(state);
        }
    }
}

#[pymethods]
impl Iterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        self.step(py, !self.reverse)
    }

    /// Returns the entry before the present position, and moves to before it.
    fn prev<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let entry = self.step(py, self.reverse)?;
        entry.ok_or_else(|| Failure::Python(PyStopIteration::new_err(())))
    }

    /// Returns up to `count` entries as a list; fewer only at the end. Cheaper than one by one.
    fn fetch<'py>(&self, py: Python<'py>, count: usize) -> Result<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        while list.len() < count {
            let more = self.with(py, |state| {
                let forward = !self.reverse;
                let missing = count - list.len();
                state.ahead = state.ahead.max(missing.min(AHEAD_ENTRIES_MAX));
                if !py.detach(|| state.want(forward))? {
                    return Ok(false);
                }
                let from = state.seen;
                state.seen = state.ends.len().min(from + missing);
                for index in from..state.seen {
                    let (key, value) = state.entry(index);
                    list.append(self.shape.object(py, key, value)?)?;
                }
                Ok(true)
            })?;
            if !more {
                break;
            }
        }
        Ok(list)
    }

    /// Goes to the start of the range, whatever the direction.
    fn seek_to_start(&self, py: Python<'_>) -> Result<()> {
        self.with(py, |state| {
            state.forget();
            state.walk.go_to_start();
            Ok(())
        })
    }

    /// Goes to the end of the range, whatever the direction.
    fn seek_to_stop(&self, py: Python<'_>) -> Result<()> {
        self.with(py, |state| {
            state.forget();
            state.walk.go_to_stop();
            Ok(())
        })
    }

    /// Goes to just before the first key at or after `target`, within the range.
    fn seek(&self, py: Python<'_>, target: Input<'_, '_>) -> Result<()> {
        let target = target.as_bytes();
        self.with(py, |state| {
            state.forget();
            py.detach(|| self.space.with_key(target, |key| state.walk.seek(key)))
        })
    }

    /// Closes the iterator. May be called again.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let state = self.space.shared.lock(py, &self.state)?.take();
        py.detach(|| drop(state));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyAny>) -> Result<()> {
        self.close(py)
    }
}
