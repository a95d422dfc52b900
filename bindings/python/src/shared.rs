//! What all objects of one open database share.

use crate::bytes::drop_detached;
use crate::errors::{Failure, Result, closed, invalid};
use crate::order::PyOrder;
use esker::{Db, Keyspace};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// An open database.
///
/// Every keyspace, iterator and snapshot object holds one of these besides what it holds of the
/// engine, and lets go of it last, so that the engine's last handle goes in `drop` below.
pub(crate) struct Shared {
    db: Option<Db>,
    closed: AtomicBool,
    /// Whether a write batch is written though its block raised, unless it says otherwise.
    writes_failed_batches: AtomicBool,
    /// How many forks lay between the first process and the one that opened it.
    generation: u64,
}

/// The databases that are closed when the interpreter ends.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// How many forks lie between the first process and this one. Python counts them, which costs
/// nothing in between; the engine sees for itself what is forked without Python.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Told by Python in a child process, before anything else runs there.
#[pyfunction]
pub(crate) fn _forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

impl Shared {
    /// Keeps an open database.
    pub(crate) fn new(db: Db) -> Arc<Self> {
        let generation = FORKS.load(Ordering::Relaxed);
        let shared = Arc::new(Self {
            db: Some(db),
            closed: AtomicBool::new(false),
            writes_failed_batches: AtomicBool::new(false),
            generation,
        });
        let mut open = OPEN.lock();
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        shared
    }

    /// The database.
    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is there until this is dropped")
    }

    /// Has batches keep to plyvel's default from now on.
    pub(crate) fn write_failed_batches(&self) {
        self.writes_failed_batches.store(true, Ordering::Relaxed);
    }

    /// Whether a write batch that does not say it is dropped when its block raises.
    pub(crate) fn drops_failed_batches(&self) -> bool {
        !self.writes_failed_batches.load(Ordering::Relaxed)
    }

    /// Whether it was closed through one of its objects.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// An error if it was closed or this is a forked child.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_closed() {
            return Err(closed("the database"));
        }
        self.check_process()
    }

    fn check_process(&self) -> Result<()> {
        if FORKS.load(Ordering::Relaxed) == self.generation {
            return Ok(());
        }
        Err(Failure::Engine(esker::Error::Forked))
    }

    /// Closes the database for all its objects. May be called again.
    pub(crate) fn close(&self, py: Python<'_>) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        Ok(py.detach(|| self.db().close())?)
    }

    /// Locks the state of an object that is not safe to use from two threads at once. Nobody
    /// waits here with the interpreter's lock, which the other thread may need to go on; and a
    /// child process does not wait for a thread that it does not have.
    pub(crate) fn lock<'a, T>(
        &self,
        py: Python<'_>,
        mutex: &'a Mutex<T>,
    ) -> Result<MutexGuard<'a, T>> {
        if let Some(guard) = mutex.try_lock() {
            return Ok(guard);
        }
        self.check_process()?;
        Ok(mutex.lock_py_attached(py))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop_detached(self.db.take());
    }
}

/// Closes what is still open, before the interpreter takes away what comparators and operators
/// that are written in Python need.
#[pyfunction]
pub(crate) fn _close_all(py: Python<'_>) {
    let open: Vec<_> = std::mem::take(&mut *OPEN.lock());
    for shared in open.iter().filter_map(Weak::upgrade) {
        // Nobody is left to be told; a forked child has nothing to close.
        let _ = shared.close(py);
    }
}

/// A keyspace as Python sees it: whole, or the part of it behind a prefix, which keys then lack.
#[derive(Clone)]
pub(crate) struct Space {
    /// The database or branch that the keyspace is in.
    pub(crate) db: Db,
    /// Counted, so that a batch knows one again by its place.
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) order: Option<Arc<PyOrder>>,
    pub(crate) prefix: Option<Arc<[u8]>>,
    // Behind the others, so that it is dropped after them.
    pub(crate) shared: Arc<Shared>,
}

impl Space {
    /// Refuses what belongs to another database than this.
    pub(crate) fn check_same(&self, other: &Self, what: &str) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, &other.shared) {
            return Err(invalid(format!("the {what} belongs to another database")));
        }
        Ok(())
    }

    /// The key in the keyspace.
    #[inline]
    pub(crate) fn with_key<R>(&self, key: &[u8], then: impl FnOnce(&[u8]) -> R) -> R {
        match &self.prefix {
            None => then(key),
            Some(prefix) => then(&[prefix, key].concat()),
        }
    }

    /// The part of this space behind one more prefix.
    pub(crate) fn behind(&self, prefix: &[u8]) -> Self {
        let prefix = [self.prefix.as_deref().unwrap_or_default(), prefix].concat();
        Self { prefix: Some(prefix.into()), ..self.clone() }
    }
}
