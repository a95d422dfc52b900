//! The virtual clock: writers, the flush thread and workers, with the engine's own policy.
//!
//! Nothing is random but the keys at which runs are counted, so the same question has the same
//! answer.
//!
//! 1. A flush, a push or a compaction reads its runs when it begins and changes the tree when it
//!    ends; what it took stays where it is until then.
//! 2. A flush begins only if the fullest path has room for one more run. Writers go on until the
//!    memtables are full; then they wait.
//! 3. What is due goes in the order of `policy::rank`. Jobs never wait for jobs.

use super::load::{Load, Run, World, compacted, merged};
use super::seen::Seen;
use super::tree::Tree;
use esker::internals::compaction::policy::{self, Route};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Write buffers that wait for a flush before writers stop.
const SEALED_MAX: usize = 2;
/// Partitions are this many flushes large.
const FLUSHES_PER_PARTITION: f64 = 8.0;
/// The flush thread writes this many times as fast as a worker, which also reads and merges.
const FLUSH_SPEED: f64 = 3.0;

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) load: Load,
    /// Data over a flush.
    pub(crate) ratio: f64,
    pub(crate) flush_bytes: f64,
    /// User bytes per second that writers offer.
    pub(crate) rate: f64,
    pub(crate) workers: usize,
    /// Bytes per second that a worker writes.
    pub(crate) speed: f64,
    /// Without any tier, as the tree was before.
    pub(crate) flat: bool,
    /// Data bytes to write before and while everything is measured, as multiples of the data.
    pub(crate) warm: f64,
    pub(crate) measured: f64,
    pub(crate) seed: u64,
}

/// A part that is due.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Due {
    score: f64,
    row: usize,
    from: f64,
}

impl Eq for Due {}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |due: &Self| policy::rank(due.row, due.score);
        rank(self).total_cmp(&rank(other)).then(other.from.total_cmp(&self.from))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A push or a compaction under way.
#[derive(Debug, Clone)]
struct Job {
    row: usize,
    from: f64,
    /// How many of the oldest runs it read.
    runs: usize,
    out: Run,
    bytes: f64,
    /// Bytes that it read.
    read: f64,
    end: f64,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Clock {
    pub(crate) question: Question,
    pub(crate) world: World,
    pub(crate) tree: Tree,
    pub(crate) seen: Seen,
    now: f64,
    /// User bytes in the active memtable, and full memtables.
    active: f64,
    sealed: usize,
    flush: Option<(Run, f64)>,
    jobs: Vec<Job>,
    due: BinaryHeap<Due>,
    /// User bytes per second.
    pace: f64,
    /// What jobs write for a user byte, over the time before.
    cost: f64,
    stopped: Option<f64>,
}

impl Clock {
    pub(crate) fn new(question: Question) -> Self {
        let data = question.ratio * question.flush_bytes;
        let mut world = World::new(data);
        let mut base = Some(world.base());
        if question.load == Load::Fill {
            world.entries = 0.0;
            world.live = [0.0; 2];
            base = None;
        }
        let mut tree = Tree::new(base, FLUSHES_PER_PARTITION * question.flush_bytes, &world);
        tree.fresh = match question.load {
            Load::Insert | Load::Fill | Load::Ascending => 1.0,
            Load::Mixed => 0.5,
            _ => 0.0,
        };
        let mut clock = Self {
            question,
            world,
            tree,
            seen: Seen::new(question.seed),
            now: 0.0,
            active: 0.0,
            sealed: 0,
            flush: None,
            jobs: Vec::new(),
            due: BinaryHeap::new(),
            pace: question.rate,
            cost: 4.0,
            stopped: None,
        };
        clock.reshape();
        clock
    }

    /// Writes so many user bytes, or until `ends`.
    pub(crate) fn write(&mut self, bytes: f64, ends: impl Fn(&Self) -> bool) {
        let goal = self.seen.user + bytes;
        while self.seen.user < goal && !ends(self) {
            self.step();
        }
    }

    /// Goes to the next thing that happens.
    fn step(&mut self) {
        self.begin();
        let room = self.question.flush_bytes - self.active;
        let full = self.sealed >= SEALED_MAX && room <= 0.0;
        let sealed_at = if full { f64::INFINITY } else { self.now + room / self.pace };
        let flushed_at = self.flush.map_or(f64::INFINITY, |(_, end)| end);
        let job = self.jobs.iter().enumerate().min_by(|a, b| a.1.end.total_cmp(&b.1.end));
        let (job, job_at) = job.map_or((0, f64::INFINITY), |(index, job)| (index, job.end));
        let next = sealed_at.min(flushed_at).min(job_at);
        assert!(next.is_finite(), "nothing happens any more");
        if full {
            self.stopped.get_or_insert(self.now);
        } else {
            self.active += (next - self.now) * self.pace;
            if let Some(since) = self.stopped.take() {
                self.seen.stopped(self.now - since);
            }
        }
        self.now = next;
        self.seen.now = next;
        if next == sealed_at {
            self.active = self.question.flush_bytes;
            if self.sealed < SEALED_MAX {
                self.sealed += 1;
                self.active = 0.0;
            }
        } else if next == flushed_at {
            self.end_flush();
        } else {
            let job = self.jobs.swap_remove(job);
            self.end_job(job);
        }
        self.set_pace();
    }

    /// Begins what can begin.
    fn begin(&mut self) {
        if self.flush.is_none() && self.sealed > 0 && self.tree.fill() < 1.0 {
            let run = self.question.load.flush(&mut self.world, self.question.flush_bytes);
            let took = run.bytes(&self.world) / (self.question.speed * FLUSH_SPEED);
            self.flush = Some((run, self.now + took));
        }
        while self.jobs.len() < self.question.workers
            && let Some(due) = self.due.pop()
        {
            let at = self.tree.find(due.row, due.from);
            let Some(part) = self.tree.rows.get(due.row).map(|row| &row[at]) else { continue };
            if part.busy || part.from != due.from || self.tree.score(due.row, part) != due.score {
                continue;
            }
            self.begin_job(due.row, at);
        }
    }

    /// Puts a part into line if it is due.
    fn rate(&mut self, row: usize, at: usize) {
        let part = &self.tree.rows[row][at];
        let score = self.tree.score(row, part);
        if score >= 1.0 && !part.busy {
            self.due.push(Due { score, row, from: part.from });
        }
    }

    fn begin_job(&mut self, row: usize, at: usize) {
        let part = &mut self.tree.rows[row][at];
        part.busy = true;
        let runs: Vec<Run> = part.runs.iter().copied().collect();
        let out = match row {
            0 => compacted(part.base, &runs, &self.world),
            _ => merged(&runs, &self.world),
        };
        let bytes = out.bytes(&self.world);
        let end = self.now + bytes / self.question.speed;
        let from = part.from;
        let read = part.bytes();
        self.seen.job(row, bytes);
        self.jobs.push(Job { row, from, runs: runs.len(), out, bytes, read, end });
    }

    fn end_job(&mut self, job: Job) {
        let Job { row, from, runs, out, bytes, read, .. } = job;
        let at = self.tree.find(row, from);
        self.tree.change(row, at, &self.world, |part| {
            part.runs.truncate(part.runs.len() - runs);
            part.busy = false;
            if row == 0 {
                part.base = Some(out).filter(|out| !out.is_empty());
            }
        });
        self.seen.written(row, read, bytes);
        if row > 0 {
            for at in self.tree.add(row - 1, out, &self.world) {
                self.rate(row - 1, at);
            }
            self.tree.split_wide(row, at, policy::CHILDREN_MAX, &self.world);
            self.rate(row, at);
        } else {
            let count = self.tree.split_full(at, &self.world);
            if count > 1 {
                self.split_above(from);
            } else if self.tree.join(at, &self.world)
                || (at > 0 && self.tree.join(at - 1, &self.world))
            {
                return;
            }
            for at in at..at + count {
                self.rate(0, at);
            }
        }
    }

    /// Splits the spans above a key, as far as they have too many children.
    fn split_above(&mut self, key: f64) {
        for row in 1..self.tree.rows.len() {
            let at = self.tree.find(row, key);
            let before = self.tree.rows[row].len();
            self.tree.split_wide(row, at, policy::CHILDREN_MAX, &self.world);
            for at in at..=at + (self.tree.rows[row].len() - before) {
                self.rate(row, at);
            }
        }
    }

    fn end_flush(&mut self) {
        let Some((run, _)) = self.flush.take() else { return };
        self.sealed -= 1;
        let bytes = run.bytes(&self.world);
        self.seen.flushed(self.question.flush_bytes, bytes);
        let tiers = self.tree.tiers();
        let first = self.tree.find(0, run.from);
        let end = self.tree.rows[0].partition_point(|part| part.from < run.to);
        let size = self.tree.partition_bytes as u64;
        let direct = policy::route(bytes as u64, end - first, size, tiers) == Route::Cut
            && (tiers == 0 || !self.tree.is_pending(&run));
        let row = if direct { 0 } else { tiers };
        for at in self.tree.add(row, run, &self.world).into_iter().rev() {
            let splits = row == 0 && self.tree.rows[0][at].runs.is_empty();
            let count = if splits { self.tree.split_full(at, &self.world) } else { 1 };
            if count > 1 {
                self.split_above(run.from);
            }
            (at..at + count).for_each(|at| self.rate(row, at));
        }
        self.reshape();
        let temporary = self.jobs.iter().map(|job| job.bytes).sum();
        self.seen.look(&self.tree, &self.world, temporary, self.question.flush_bytes);
        // What jobs cost, over about the time in which all data are written once.
        let share = 1.0 / self.question.ratio.max(10.0);
        let jobs = self.seen.since_flush() / self.question.flush_bytes;
        self.cost += (jobs - self.cost) * share;
    }

    /// Adds or removes a tier, and says how many runs a span may have.
    fn reshape(&mut self) {
        let (live, flush) = (self.tree.bases as u64, self.question.flush_bytes as u64);
        while !self.question.flat {
            let present = self.tree.tiers();
            match policy::tiers_wanted(live, flush, present).cmp(&present) {
                Ordering::Greater => self.tree.add_tier(),
                Ordering::Less if self.tree.remove_tier() => {}
                _ => break,
            }
        }
        let runs_max = policy::runs_max(live, flush, self.tree.tiers());
        if runs_max != self.tree.runs_max {
            self.tree.runs_max = runs_max;
            for row in 1..self.tree.rows.len() {
                (0..self.tree.rows[row].len()).for_each(|at| self.rate(row, at));
            }
        }
    }

    /// Slows writers as the fullest path fills.
    fn set_pace(&mut self) {
        self.seen.deepest(self.tree.deepest());
        self.pace = self.question.rate;
        if let Some(multiple) = policy::pace(self.tree.fill()) {
            let drain = self.question.speed * self.question.workers as f64 / self.cost.max(0.1);
            self.pace = self.pace.min(drain * multiple);
        }
    }
}
