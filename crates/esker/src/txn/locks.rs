//! Locks on keys, for transactions that wait instead of conflicting.
//!
//! A lock is shared or exclusive and belongs to a transaction until it ends. Waiting transactions
//! stand in the key's queue, first come, first served. One exception: a holder of a shared lock
//! that requests the exclusive lock goes to the front. Plain writes ignore locks.
//!
//! 1. A lock is granted to the head of its queue as soon as no other holder conflicts with it, and
//!    never to a transaction behind the head. So a waiter waits for the conflicting holders, and
//!    for all transactions before it in the queue.
//! 2. The wait-for graph of transactions has no cycle: an edge appears only when a transaction
//!    begins to wait, and a transaction does not begin to wait if that would close a cycle
//!    ([`Error::Deadlock`]). A grant turns a waiter into a holder; the transactions behind it were
//!    waiting for it already.
//! 3. A transaction waits for one lock at a time.
//! 4. Each waiter sleeps on its own condition variable until its lock is granted, its timeout
//!    passes or the database is closed.
//!
//! The locks of a keyspace with a custom comparator compare its keys by that comparator, since keys
//! that it calls equal are one key.

#![allow(
    clippy::mutable_key_type,
    reason = "an order changes only when its comparator panics, and is not trusted from then on"
)]

use super::writes::{OwnKey, OwnOrder};
use crate::base::KeyspaceId;
use crate::error::{Error, Result};
use crate::waits::{Cause, Waits};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of a transaction.
pub type Holder = u64;

/// How a key is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Other transactions may also have shared locks on the key.
    Shared,
    /// No other transaction has a lock on the key.
    Exclusive,
}

/// A key of a keyspace.
type LockKey = (KeyspaceId, OwnKey<'static>);

/// A request for a lock.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The transaction that requests the lock.
    pub holder: Holder,
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// Its name, for errors.
    pub name: &'a str,
    /// The order of its keys.
    pub order: &'a OwnOrder,
    /// The key.
    pub key: &'a [u8],
    /// How it is locked.
    pub mode: Mode,
    /// The longest time to wait.
    pub timeout: Duration,
    /// Called now and then during the wait; true ends the wait as if the timeout had passed.
    pub interrupted: Option<fn() -> bool>,
}

/// How often a waiter checks whether it is interrupted: often enough that a person notices no
/// delay.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The holders of locks on a key, and the transactions that wait for one.
#[derive(Debug, Default)]
struct Lock {
    holders: BTreeMap<Holder, Mode>,
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    holder: Holder,
    mode: Mode,
    wake: Arc<Condvar>,
}

impl Lock {
    /// The holders that conflict with a request.
    fn obstacles(&self, holder: Holder, mode: Mode) -> impl Iterator<Item = Holder> + '_ {
        let in_the_way = move |(other, held): &(&Holder, &Mode)| {
            **other != holder && mode.max(**held) == Mode::Exclusive
        };
        self.holders.iter().filter(in_the_way).map(|(other, _)| *other)
    }

    /// Grants what can be granted, from the head of the queue.
    fn grant(&mut self) {
        while let Some(head) = self.queue.front() {
            if self.obstacles(head.holder, head.mode).next().is_some() {
                return;
            }
            if let Some(waiter) = self.queue.pop_front() {
                let held = self.holders.entry(waiter.holder).or_insert(waiter.mode);
                *held = waiter.mode.max(*held);
                waiter.wake.notify_one();
            }
        }
    }
}

/// All locks of a database.
#[derive(Debug, Default)]
pub struct Locks {
    inner: Mutex<Inner>,
    waits: Arc<Waits>,
}

#[derive(Debug, Default)]
struct Inner {
    locks: BTreeMap<LockKey, Lock>,
    /// The keys that each transaction has locks on.
    held: HashMap<Holder, BTreeSet<LockKey>>,
    /// The key that each waiting transaction waits for.
    waiting: HashMap<Holder, LockKey>,
    closed: bool,
}

impl Inner {
    /// The transactions that a waiting transaction waits for.
    fn waits_for(&self, holder: Holder) -> Vec<Holder> {
        let Some(lock) = self.waiting.get(&holder).and_then(|key| self.locks.get(key)) else {
            return Vec::new();
        };
        let Some(at) = lock.queue.iter().position(|waiter| waiter.holder == holder) else {
            return Vec::new();
        };
        let before = lock.queue.iter().take(at).map(|waiter| waiter.holder);
        lock.obstacles(holder, lock.queue[at].mode).chain(before).collect()
    }

    /// Whether a waiting transaction waits, directly or indirectly, for itself.
    fn waits_for_itself(&self, holder: Holder) -> bool {
        let mut seen = BTreeSet::new();
        let mut pending = self.waits_for(holder);
        while let Some(next) = pending.pop() {
            if next == holder {
                return true;
            }
            if seen.insert(next) {
                pending.extend(self.waits_for(next));
            }
        }
        false
    }

    /// Takes a waiting transaction out of the queue; the transactions behind it may be granted the
    /// lock.
    fn give_up(&mut self, holder: Holder) {
        let Some(key) = self.waiting.remove(&holder) else { return };
        if let Some(lock) = self.locks.get_mut(&key) {
            lock.queue.retain(|waiter| waiter.holder != holder);
            lock.grant();
            self.forget_if_free(&key);
        }
    }

    fn forget_if_free(&mut self, key: &LockKey) {
        if self.locks.get(key).is_some_and(|lock| lock.holders.is_empty() && lock.queue.is_empty())
        {
            self.locks.remove(key);
        }
    }

    /// Records that a transaction has a lock, to be released at its end.
    fn note(&mut self, holder: Holder, key: LockKey) {
        let held = self.held.entry(holder).or_default();
        held.insert(key);
    }

    fn holds(&self, holder: Holder, key: &LockKey, mode: Mode) -> bool {
        let lock = self.locks.get(key);
        lock.and_then(|lock| lock.holders.get(&holder)).is_some_and(|held| *held >= mode)
    }
}

impl Locks {
    /// No locks; waits for them will be recorded in `waits`.
    pub fn new(waits: Arc<Waits>) -> Self {
        Self { inner: Mutex::default(), waits }
    }

    /// Takes a lock, or makes a held one exclusive. Returns whether the transaction had to wait.
    pub fn lock(&self, request: &Request<'_>) -> Result<bool> {
        let Request { holder, mode, .. } = *request;
        let key: LockKey = (request.keyspace, request.order.owned(request.key));
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(Error::Closed);
        }
        if inner.holds(holder, &key, mode) {
            return Ok(false);
        }
        let lock = inner.locks.entry(key.clone()).or_default();
        let upgrade = lock.holders.contains_key(&holder);
        let wake = Arc::new(Condvar::new());
        let waiter = Waiter { holder, mode, wake: wake.clone() };
        if upgrade {
            lock.queue.push_front(waiter)
        } else {
            lock.queue.push_back(waiter)
        }
        lock.grant();
        if inner.holds(holder, &key, mode) {
            inner.note(holder, key);
            return Ok(false);
        }
        inner.waiting.insert(holder, key.clone());
        if inner.waits_for_itself(holder) {
            inner.give_up(holder);
            let (keyspace, key) = (request.name.to_owned(), request.key.to_vec());
            return Err(Error::Deadlock { keyspace, key });
        }
        let _wait = self.waits.begin(Cause::Lock);
        Self::wait(inner, request, &key, &wake).map(|()| true)
    }

    /// Sleeps until the lock is granted.
    fn wait(
        mut inner: MutexGuard<'_, Inner>,
        request: &Request<'_>,
        key: &LockKey,
        wake: &Condvar,
    ) -> Result<()> {
        let begun = Instant::now();
        // A timeout beyond the range of the clock is no limit.
        let deadline = begun.checked_add(request.timeout);
        let mut interrupted = false;
        loop {
            if inner.holds(request.holder, key, request.mode) {
                inner.waiting.remove(&request.holder);
                inner.note(request.holder, key.clone());
                return Ok(());
            }
            if inner.closed {
                inner.give_up(request.holder);
                return Err(Error::Closed);
            }
            let ask_at = request.interrupted.map(|_| Instant::now() + ASK_EVERY);
            match deadline.into_iter().chain(ask_at).min() {
                Some(until) => drop(wake.wait_until(&mut inner, until)),
                None => wake.wait(&mut inner),
            }
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if let Some(ask) = request.interrupted {
                // User code may wait for a thread that needs this mutex, so the mutex is released
                // meanwhile.
                interrupted = MutexGuard::unlocked(&mut inner, ask);
            }
            if (late || interrupted) && !inner.holds(request.holder, key, request.mode) {
                inner.give_up(request.holder);
                let (keyspace, key) = (request.name.to_owned(), request.key.to_vec());
                return Err(Error::LockTimeout { keyspace, key, waited: begun.elapsed() });
            }
        }
    }

    /// Whether a transaction has a lock on a key.
    pub fn has(&self, holder: Holder, keyspace: KeyspaceId, order: &OwnOrder, key: &[u8]) -> bool {
        let key: LockKey = (keyspace, order.owned(key));
        self.inner.lock().holds(holder, &key, Mode::Shared)
    }

    /// Releases every lock of a transaction.
    pub fn release(&self, holder: Holder) {
        let mut inner = self.inner.lock();
        for key in inner.held.remove(&holder).unwrap_or_default() {
            if let Some(lock) = inner.locks.get_mut(&key) {
                lock.holders.remove(&holder);
                lock.grant();
                inner.forget_if_free(&key);
            }
        }
    }

    /// Wakes all waiters: the database is closed.
    pub fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        for waiter in inner.locks.values().flat_map(|lock| &lock.queue) {
            waiter.wake.notify_one();
        }
    }

    /// How many keys are locked or waited for, and how many transactions wait.
    #[cfg(test)]
    pub fn sizes(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.locks.len(), inner.waiting.len())
    }
}

#[cfg(test)]
mod tests;
