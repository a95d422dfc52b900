//! Barriers at the points of a database: a test closes some, and threads that come there wait.
//!
//! 1. A thread that comes to a closed point waits until the point is open. That holds for every thread,
//!    callers too.
//! 2. An action runs once, on the next thread that comes to its point, before that thread waits. So what an
//!    action does to the database happens exactly there.
//! 3. A call that waits for background work says so before ([`Point::CallerWaits`]). After
//!    [`Board::open_for_callers`] the next such call opens all points.
//! 4. A test may wait for the thread that a [`Call`] sends to a point. If the call ends and nobody stands there, the
//!    wait fails and names the point.
//! 5. Nothing is closed any more when the barriers are dropped: otherwise a test that fails would wait for
//!    a thread that is held. So they are dropped before the database is closed.
//!
//! [`crate::keeper`] decides about each step of the background instead; barriers leave it free but for a few
//! points.

use esker::internals::sync::{Gates, Point, Signal};
use esker::{Db, Options};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

type Action = Box<dyn FnOnce(&Board) + Send>;

#[derive(Default)]
struct State {
    closed: BTreeSet<Point>,
    /// How many threads wait at a point.
    held: BTreeMap<Point, usize>,
    /// What the next threads do at a point.
    actions: BTreeMap<Point, VecDeque<Action>>,
    /// How many actions of a point have ended.
    done: BTreeMap<Point, usize>,
    /// Which threads came where; by the kind of a thread, without its number.
    seen: BTreeSet<(Point, String)>,
    /// How often threads came to a point.
    passed: BTreeMap<Point, usize>,
    opens_for_callers: bool,
    /// How many calls on threads of their own were made, and which of them have ended.
    calls: usize,
    ended: BTreeSet<usize>,
}

impl State {
    fn is_held(&self, point: Point) -> bool {
        self.held.get(&point).is_some_and(|count| *count > 0)
    }
}

/// The points of a database, with what is closed and what is to be done at each.
#[derive(Default)]
pub struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

/// The kind of the calling thread: its name without a number.
pub fn kind() -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    name.trim_end_matches(|last: char| last == '-' || last.is_ascii_digit()).to_owned()
}

impl Gates for Board {
    fn begin(&self, _workers: usize, _wake: Arc<Signal>) {}

    fn pass(&self, point: Point) {
        let action = self.change(|state| {
            state.seen.insert((point, kind()));
            *state.passed.entry(point).or_default() += 1;
            if point == Point::CallerWaits && state.opens_for_callers {
                state.closed.clear();
            }
            state.actions.get_mut(&point).and_then(VecDeque::pop_front)
        });
        if let Some(action) = action {
            action(self);
            self.change(|state| *state.done.entry(point).or_default() += 1);
        }
        let mut state = self.state.lock();
        if !state.closed.contains(&point) {
            return;
        }
        *state.held.entry(point).or_default() += 1;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| state.closed.contains(&point));
        *state.held.entry(point).or_default() -= 1;
    }

    fn rest(&self) -> bool {
        false
    }
}

impl Board {
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state.lock());
        self.changed.notify_all();
        result
    }

    /// Closes points: threads that come there wait.
    pub fn close(&self, points: &[Point]) {
        self.change(|state| state.closed.extend(points));
    }

    /// Opens points; who waits there goes on.
    pub fn let_go(&self, points: &[Point]) {
        self.change(|state| state.closed.retain(|point| !points.contains(point)));
    }

    /// From now on, a call that waits for background work opens all points before.
    pub fn open_for_callers(&self) {
        self.change(|state| state.opens_for_callers = true);
    }

    /// Waits until a thread is held at a point.
    pub fn wait_for(&self, point: Point) {
        self.changed.wait_while(&mut self.state.lock(), |state| !state.is_held(point));
    }

    /// Whether a thread is held at a point.
    pub fn stands_at(&self, point: Point) -> bool {
        self.state.lock().is_held(point)
    }

    /// Has the next thread that comes to a point run an action; later ones run the actions that were added later.
    pub fn at(&self, point: Point, action: impl FnOnce(&Self) + Send + 'static) {
        self.change(|state| state.actions.entry(point).or_default().push_back(Box::new(action)));
    }

    /// How many actions of a point have run to their end.
    pub fn done(&self, point: Point) -> usize {
        self.state.lock().done.get(&point).copied().unwrap_or(0)
    }

    /// Waits until so many actions of a point have run to their end.
    pub fn wait_done(&self, point: Point, count: usize) {
        let fewer = |state: &mut State| state.done.get(&point).copied().unwrap_or(0) < count;
        self.changed.wait_while(&mut self.state.lock(), fewer);
    }

    /// How often threads have come to a point.
    pub fn passed(&self, point: Point) -> usize {
        self.state.lock().passed.get(&point).copied().unwrap_or(0)
    }

    /// Whether any thread has come to a point.
    pub fn was_reached(&self, point: Point) -> bool {
        self.state.lock().seen.iter().any(|(seen, _)| *seen == point)
    }

    /// The points that were reached, with the kind of the thread: its name without a number.
    pub fn seen(&self) -> BTreeSet<(Point, String)> {
        self.state.lock().seen.clone()
    }
}

/// The barriers of one open database; see the head of this module.
#[derive(Default)]
pub struct Barriers(Arc<Board>);

impl Barriers {
    /// Opens a database with barriers, all of them open. The barriers come last, so they are dropped first.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open(path: impl AsRef<Path>, mut options: Options) -> esker::Result<(Db, Self)> {
        let barriers = Self::default();
        options.gates = Some(barriers.0.clone());
        Ok((Db::open_with(path, options)?, barriers))
    }

    /// Makes a call on a thread of its own.
    pub fn call<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> Call<T> {
        let board = self.0.clone();
        let number = board.change(|state| {
            state.calls += 1;
            state.calls
        });
        let end = End { board: board.clone(), number };
        let thread = std::thread::spawn(move || {
            let _end = end;
            call()
        });
        Call { board, number, thread }
    }
}

/// A call on a thread of its own; see [`Barriers::call`].
pub struct Call<T> {
    board: Arc<Board>,
    number: usize,
    thread: JoinHandle<T>,
}

/// Says that a call has ended, also by a panic.
struct End {
    board: Arc<Board>,
    number: usize,
}

impl Drop for End {
    fn drop(&mut self) {
        self.board.change(|state| state.ended.insert(self.number));
    }
}

impl<T> Call<T> {
    /// Waits until a thread is held at a point to which one comes before the call returns.
    ///
    /// # Panics
    /// If the call has ended, and no thread is held there.
    #[track_caller]
    pub fn wait_for(&self, point: Point) {
        let mut state = self.board.state.lock();
        let waits =
            |state: &mut State| !state.is_held(point) && !state.ended.contains(&self.number);
        self.board.changed.wait_while(&mut state, waits);
        let (held, seen) = (state.is_held(point), state.seen.clone());
        drop(state);
        assert!(
            held,
            "the call has ended before a thread came to {point:?}; they came to {seen:?}"
        );
    }

    /// Waits for its end and returns what it returned.
    ///
    /// # Panics
    /// If it panicked.
    pub fn join(self) -> T {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Deref for Barriers {
    type Target = Board;

    fn deref(&self) -> &Board {
        &self.0
    }
}

impl Drop for Barriers {
    fn drop(&mut self) {
        let actions = self.0.change(|state| {
            state.closed.clear();
            std::mem::take(&mut state.actions)
        });
        // They may hold the last handle of a database, whose threads come to points before they end.
        drop(actions);
    }
}

#[cfg(test)]
mod tests;
