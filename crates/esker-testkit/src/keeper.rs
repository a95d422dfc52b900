//! Holds the background of a database at its points, so that a test decides which thread goes on.
//!
//! While the background is *held*, each worker stands at a point or rests, and moves only when it
//! is told to, alone, up to the next point. So a sequence of steps decides the interleaving, and
//! the same sequence gives the same one.
//!
//! 1. A caller that waits for the held background would never return. The engine says so before
//!    (`Point::CallerWaits`), and the background hurries until [`Keeper::settle`]: jobs under way
//!    run to their end, and one more may begin for each such call. A compaction that is under way
//!    stays where it is while another worker can do what is waited for.
//! 2. With one worker everything but the thread that syncs the log is repeatable. With two, it is
//!    not repeatable which of them hurries first.
//! 3. Nobody is held at the points of the cache, where callers may hold locks of their own. But while a caller
//!    [reads](Keeper::moves_in_reads), it lets a worker take a step there, at random: so what a read finds in memory, or
//!    has just put there, may belong to a tree that is replaced before the read goes on.
//! 4. A thread whose name is [`CHECKPOINT`] stands at the points of a checkpoint whether the
//!    background is held or not.

use esker::internals::sync::{Gates, Point, Signal};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::ThreadId;

use crate::cache_events::CacheEvents;
use crate::rng::Rng;

/// The name of a thread that makes a checkpoint and is held at its points.
pub const CHECKPOINT: &str = "held-checkpoint";
const LOG: &str = "esker-sync";
const FLUSH: &str = "esker-flush";
const WORKER: &str = "esker-worker-";
/// At so many of 100 points of the cache a worker takes a step while a caller reads.
const MOVES: u32 = 25;

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between two points.
    Running,
    /// At a point, held there.
    Held(Point),
    /// Without anything to do, held there.
    Resting,
    /// Without anything to do, until the engine wakes it.
    Asleep,
    /// It has ended.
    Gone,
}

#[derive(Debug)]
struct Thread {
    place: Place,
    /// It may go on to the next point.
    go: bool,
    /// It runs its job to the end.
    hurried: bool,
    /// The point that it came to before.
    last: Option<Point>,
}

#[derive(Debug, Default)]
struct State {
    workers: usize,
    wake: Option<Arc<Signal>>,
    held: bool,
    /// No thread is held any more, even if a test asks for it.
    over: bool,
    /// A caller has waited for the background since it was settled.
    hurry: bool,
    /// How many jobs may begin in this hurry.
    jobs: usize,
    threads: BTreeMap<String, Thread>,
    /// What has happened while it was held: a digest, and how many steps.
    trace: (u64, u64),
    /// Who reads, and when workers move meanwhile.
    reads: Option<(ThreadId, Rng)>,
    /// How often a worker took a step in the middle of a read.
    mid_reads: u64,
    cache: CacheEvents,
}

/// Holds the background of one open database.
#[derive(Debug, Default)]
pub struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
}

/// Whether a job begins at this point.
fn begins(point: Point) -> bool {
    matches!(point, Point::FlushBegins | Point::CompactionBegins)
}

fn is_compaction(point: Point) -> bool {
    matches!(
        point,
        Point::CompactionReads
            | Point::CompactionMoves
            | Point::CompactionSteps
            | Point::CompactionInstalls
            | Point::PushReads
            | Point::PushInstalls
    )
}

/// Whether nobody is held at a point: it may be passed where callers wait for what the thread does.
fn is_open(point: Point) -> bool {
    matches!(point, Point::SpaceEstimated | Point::CacheResizes | Point::IteratorLetsGo)
}

/// The name of the calling thread, if it is one that is held.
fn name() -> Option<String> {
    let thread = std::thread::current();
    let name = thread.name()?;
    // A worker stands where its merge stands.
    if let Some(number) = name.strip_prefix("esker-merge-") {
        return Some(format!("{WORKER}{number}"));
    }
    let ours = is_worker(name) || name == LOG || name == CHECKPOINT;
    ours.then(|| name.to_owned())
}

fn is_worker(name: &str) -> bool {
    name.starts_with(WORKER) || name == FLUSH
}

impl State {
    fn thread(&mut self, name: &str) -> &mut Thread {
        let new = || Thread { place: Place::Running, go: false, hurried: false, last: None };
        self.threads.entry(name.to_owned()).or_insert_with(new)
    }

    fn note(&mut self, name: &str, what: u64) {
        if self.held && is_worker(name) {
            let mixed = self.trace.0.rotate_left(5) ^ (what + 1) ^ ((name.len() as u64) << 32);
            self.trace = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.trace.1 + 1);
        }
    }

    /// Whether a thread may go on from a point.
    fn may_pass(&mut self, name: &str, point: Point) -> bool {
        let (held, hurry, jobs) = (self.held && !self.over, self.hurry, self.jobs);
        let over = self.over;
        let thread = self.thread(name);
        if std::mem::take(&mut thread.go) {
            return true;
        }
        if name == CHECKPOINT {
            return over;
        }
        if !held {
            return true;
        }
        // It may find that space is being given back already: then no thread hears of its end.
        if point == Point::SpaceReturns {
            return hurry;
        }
        // A compaction lets flushes go first: that is one job.
        if begins(point) && thread.last != Some(Point::CompactionSteps) {
            thread.hurried = hurry && jobs > 0;
            let passes = thread.hurried;
            self.jobs -= usize::from(passes);
            return passes;
        }
        hurry && thread.hurried
    }

    /// Lets jobs under way go on, compactions only with `merges`. Returns whether there were any.
    fn release(&mut self, merges: bool) -> bool {
        let mut found = false;
        for (name, thread) in &mut self.threads {
            if let Place::Held(point) = thread.place
                && is_worker(name)
                && !begins(point)
                && point != Point::SpaceReturns
                && (merges || !is_compaction(point))
            {
                thread.hurried = true;
                found = true;
            }
        }
        found
    }

    /// Whether every worker is in the middle of a compaction.
    fn all_compact(&self) -> bool {
        let merges = |thread: &Thread| matches!(thread.place, Place::Held(at) if is_compaction(at));
        self.threads.iter().filter(|(name, _)| is_worker(name)).all(|(_, thread)| merges(thread))
    }

    /// Whether every worker is held.
    fn is_settled(&self) -> bool {
        let held = |thread: &&Thread| matches!(thread.place, Place::Held(_) | Place::Resting);
        let workers = self.threads.iter().filter(|(name, _)| is_worker(name));
        workers.map(|(_, thread)| thread).filter(held).count() >= self.workers
    }
}

impl Gates for Keeper {
    fn begin(&self, workers: usize, wake: Arc<Signal>) {
        let mut state = self.state.lock();
        state.workers = workers;
        state.wake = Some(wake);
    }

    fn pass(&self, point: Point) {
        let mut state = self.state.lock();
        if state.cache.note(point) {
            return self.pass_cache(state);
        }
        if point == Point::CallerWaits {
            if state.held {
                state.hurry = true;
                let all_compact = state.all_compact();
                if !state.release(all_compact) {
                    state.jobs = state.jobs.max(1);
                }
                self.changed.notify_all();
            }
            return;
        }
        let Some(name) = name().filter(|_| !is_open(point)) else { return };
        state.note(&name, point as u64);
        while !state.may_pass(&name, point) {
            self.stay(&mut state, &name, Place::Held(point));
        }
        let thread = state.thread(&name);
        thread.place = Place::Running;
        thread.last = Some(point);
    }

    fn rest(&self) -> bool {
        let Some(name) = name() else { return false };
        let mut state = self.state.lock();
        if !state.held || state.over || state.hurry {
            if state.hurry {
                // The caller that waits needs what was kept back.
                state.release(true);
            }
            state.thread(&name).place = Place::Asleep;
            self.changed.notify_all();
            return false;
        }
        loop {
            let stays = state.held && !state.over && !state.hurry;
            let thread = state.thread(&name);
            if std::mem::take(&mut thread.go) || !stays {
                thread.place = Place::Running;
                thread.last = None;
                return true;
            }
            self.stay(&mut state, &name, Place::Resting);
        }
    }
}

impl Keeper {
    /// Waits where a thread is held, and says so once.
    fn stay(&self, state: &mut MutexGuard<'_, State>, name: &str, place: Place) {
        let thread = state.thread(name);
        if thread.place != place {
            thread.place = place;
            self.changed.notify_all();
        }
        self.changed.wait(state);
    }

    /// Nobody is held at a point of the cache; a caller that reads may let a worker take a step.
    fn pass_cache(&self, mut state: MutexGuard<'_, State>) {
        // Where the read has waited for the background, some of it may sleep until the read is over.
        let calm = state.held && !state.hurry && state.is_settled();
        let Some((reader, rng)) = &mut state.reads else { return };
        if !calm || *reader != std::thread::current().id() || !rng.percent(MOVES) {
            return;
        }
        let choice = rng.next();
        state.mid_reads += 1;
        drop(state);
        self.step(choice);
    }

    /// From now on the calling thread only reads, and workers take steps at some of the points of the cache to which it
    /// comes, by this seed; `None`: that has ended.
    pub fn moves_in_reads(&self, seed: Option<u64>) {
        let reader = std::thread::current().id();
        self.state.lock().reads = seed.map(|seed| (reader, Rng::new(!seed)));
    }

    /// What has happened at the points of the cache.
    pub fn cache(&self) -> CacheEvents {
        self.state.lock().cache
    }

    /// How often a worker took a step in the middle of a read.
    pub fn mid_reads(&self) -> u64 {
        self.state.lock().mid_reads
    }

    /// Holds the background; returns when every worker stands at a point or rests.
    pub fn hold(&self) {
        let mut state = self.state.lock();
        state.held = !state.over;
        drop(state);
        self.settle();
    }

    /// Lets the background run by itself.
    pub fn let_go(&self) {
        let mut state = self.state.lock();
        state.held = false;
        state.hurry = false;
        self.changed.notify_all();
    }

    /// Holds no thread from now on.
    pub fn end(&self) {
        let mut state = self.state.lock();
        (state.over, state.held) = (true, false);
        self.changed.notify_all();
    }

    /// Whether the background is held.
    pub fn is_held(&self) -> bool {
        self.state.lock().held
    }

    /// After a call that may have waited for the background: ends the hurry and returns when every
    /// worker is held again. Does nothing while the background is not held.
    pub fn settle(&self) {
        let mut state = self.state.lock();
        if !state.held {
            return;
        }
        (state.hurry, state.jobs) = (false, 0);
        state.threads.values_mut().for_each(|thread| thread.hurried = false);
        if state.is_settled() {
            return;
        }
        if let Some(wake) = state.wake.clone() {
            wake.notify();
        }
        while !state.is_settled() {
            self.changed.wait(&mut state);
        }
    }

    /// Lets one worker go on, up to the next point; `choice` decides which. Returns the point where
    /// it was, if it was at one.
    pub fn step(&self, choice: u64) -> Option<Point> {
        let mut state = self.state.lock();
        if !state.held {
            return None;
        }
        let names: Vec<_> = state.threads.keys().filter(|name| is_worker(name)).cloned().collect();
        let name = names.get((choice % names.len().max(1) as u64) as usize)?;
        let thread = state.thread(name);
        let from = if let Place::Held(point) = thread.place { Some(point) } else { None };
        (thread.go, thread.place) = (true, Place::Running);
        self.changed.notify_all();
        while !state.is_settled() {
            self.changed.wait(&mut state);
        }
        from
    }

    /// Whether a worker is held at this point.
    pub fn stands_at(&self, point: Point) -> bool {
        let state = self.state.lock();
        state.threads.values().any(|thread| thread.place == Place::Held(point))
    }

    /// Lets the thread that syncs the log go on, if it is held.
    pub fn step_log(&self) {
        let mut state = self.state.lock();
        if let Some(thread) = state.threads.get_mut(LOG)
            && matches!(thread.place, Place::Held(_))
        {
            thread.go = true;
            self.changed.notify_all();
        }
    }

    /// Lets the thread that makes a checkpoint go on from `from` (`None`: it was just started), and
    /// waits until it stands at another point; `None`: it has ended.
    pub fn step_checkpoint(&self, from: Option<Point>) -> Option<Point> {
        let mut state = self.state.lock();
        if from.is_some() {
            let thread = state.thread(CHECKPOINT);
            (thread.go, thread.place) = (true, Place::Running);
            self.changed.notify_all();
        }
        let point = loop {
            match state.threads.get(CHECKPOINT).map(|thread| thread.place) {
                Some(Place::Held(point)) => break Some(point),
                Some(Place::Gone) => break None,
                _ => self.changed.wait(&mut state),
            }
        };
        if point.is_none() {
            state.threads.remove(CHECKPOINT);
        }
        drop(state);
        self.settle();
        point
    }

    /// Says that the calling thread, which makes a checkpoint, has ended.
    pub fn checkpoint_ended(&self) {
        let mut state = self.state.lock();
        state.thread(CHECKPOINT).place = Place::Gone;
        self.changed.notify_all();
    }

    /// A digest of what the workers did while they were held, and how many points they came to.
    pub fn trace(&self) -> (u64, u64) {
        self.state.lock().trace
    }
}
