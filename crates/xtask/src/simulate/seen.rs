//! What is counted while the clock runs, and the figures that come out.

use super::load::World;
use super::tree::Tree;

/// Keys at which runs are counted for a flush, and for all data.
const KEYS: f64 = 16.0;
const KEYS_IN_ALL: f64 = 16e4;

/// A generator of pseudo-random numbers (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The mean and the greatest of some numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread {
    sum: f64,
    count: f64,
    pub(crate) max: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
        self.max = self.max.max(value);
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }
}

/// Counts since the last [`Seen::restart`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    random: Option<Random>,
    pub(crate) now: f64,
    begun: f64,
    /// User bytes of ended flushes.
    pub(crate) user: f64,
    pub(crate) flushes: f64,
    pub(crate) pushes: f64,
    pub(crate) compactions: f64,
    /// Bytes that jobs read and did not write.
    pub(crate) dropped: f64,
    pub(crate) runs: Spread,
    pub(crate) path_max: usize,
    pub(crate) space: Spread,
    pub(crate) disk: Spread,
    pub(crate) debt: Spread,
    pub(crate) push_bytes: Spread,
    pub(crate) compaction_bytes: Spread,
    pub(crate) pause: Spread,
    jobs_before: f64,
}

impl Seen {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Some(Random(seed)), ..Self::default() }
    }

    /// Begins to count anew.
    pub(crate) fn restart(&mut self) {
        let jobs_before = self.jobs_before - self.pushes - self.compactions;
        let (random, now) = (self.random.take(), self.now);
        *self = Self { random, now, begun: now, jobs_before, ..Self::default() };
    }

    pub(crate) fn stopped(&mut self, seconds: f64) {
        self.pause.add(seconds);
    }

    pub(crate) fn job(&mut self, row: usize, written: f64) {
        let sizes = if row > 0 { &mut self.push_bytes } else { &mut self.compaction_bytes };
        sizes.add(written);
    }

    pub(crate) fn written(&mut self, row: usize, read: f64, bytes: f64) {
        self.dropped += read - bytes;
        *(if row > 0 { &mut self.pushes } else { &mut self.compactions }) += bytes;
    }

    pub(crate) fn flushed(&mut self, user: f64, bytes: f64) {
        self.user += user;
        self.flushes += bytes;
    }

    /// What jobs have written since the flush before.
    pub(crate) fn since_flush(&mut self) -> f64 {
        let jobs = self.pushes + self.compactions;
        jobs - std::mem::replace(&mut self.jobs_before, jobs)
    }

    pub(crate) fn deepest(&mut self, runs: usize) {
        self.path_max = self.path_max.max(runs);
    }

    /// Looks at the tree after a flush; jobs under way hold `temporary` bytes besides.
    pub(crate) fn look(&mut self, tree: &Tree, world: &World, temporary: f64, flush_bytes: f64) {
        let live = world.live_bytes().max(1.0);
        self.space.add(tree.bytes / live);
        self.disk.add((tree.bytes + temporary) / live);
        self.debt.add((tree.bytes - tree.bases) / live);
        let flushes = world.live_bytes() / flush_bytes;
        for _ in 0..(KEYS_IN_ALL / flushes).clamp(1.0, KEYS) as usize {
            let Some(random) = &mut self.random else { return };
            let key = random.unit() * world.end;
            self.runs.add(tree.runs_over(key) as f64);
        }
    }

    /// Bytes that flushes, pushes and compactions wrote for a user byte.
    pub(crate) fn amplification(&self) -> f64 {
        (self.flushes + self.pushes + self.compactions) / self.user
    }

    /// User bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.user / (self.now - self.begun)
    }
}
