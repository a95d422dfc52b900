//! What is written, and what runs hold: numbers of entries, without any entry.
//!
//! Keys are positions on a line. The first data lie in [0, 1). A run holds so many entries for a
//! stretch of the line in each of two regions, one with hot keys and one with the others, evenly
//! spread. Draws are independent, so the union of runs that hold `a` and `b` of `n` keys holds
//! `n * (1 - (1 - a/n) * (1 - b/n))`.
//!
//! 1. `over` counts entries of keys that lie below already; a base has all its entries there.
//! 2. `fresh` counts entries of new keys, of which no two are the same.
//! 3. `dead` counts deletes, of which no two delete the same key.

/// The regions of keys.
pub(crate) const REGIONS: usize = 2;
/// Where the region of hot keys ends.
const BORDER: f64 = 0.2;

/// What the writers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Load {
    /// Overwrites of keys drawn at random.
    Uniform,
    /// Overwrites, of which 80 % go to the first fifth of the keys.
    Skewed,
    /// New keys in key order.
    Ascending,
    /// New keys at random places.
    Insert,
    /// New keys at random places, from an empty tree until the data have their size.
    Fill,
    /// As many deletes of keys drawn at random as new keys at random places.
    Delete,
    /// As many overwrites as new keys at random places.
    Mixed,
    /// Deletes of keys drawn at random, until a tenth is left.
    Shrink,
}

/// Entries per unit of keys.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Mix {
    pub(crate) over: f64,
    pub(crate) fresh: f64,
    pub(crate) dead: f64,
}

/// A run over the keys from `from` to `to`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Run {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) mix: [Mix; REGIONS],
}

/// What holds for all runs.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// Live entries per unit of keys.
    pub(crate) live: [f64; REGIONS],
    /// Live entries in all.
    pub(crate) entries: f64,
    /// Where the greatest key is.
    pub(crate) end: f64,
    /// Bytes of an entry with a value, and of a delete.
    pub(crate) entry: f64,
    pub(crate) delete: f64,
}

/// The part of a region that lies between two keys.
fn within(region: usize, from: f64, to: f64) -> f64 {
    let (first, last) = [(f64::NEG_INFINITY, BORDER), (BORDER, f64::INFINITY)][region];
    (to.min(last) - from.max(first)).max(0.0)
}

impl Run {
    /// The run's part between two keys; empty if there is none.
    pub(crate) fn part(&self, from: f64, to: f64) -> Self {
        let from = self.from.max(from);
        Self { from, to: self.to.min(to).max(from), mix: self.mix }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.to <= self.from
    }

    pub(crate) fn bytes(&self, world: &World) -> f64 {
        let of = |region: usize| {
            let Mix { over, fresh, dead } = self.mix[region];
            let bytes = (over + fresh) * world.entry + dead * world.delete;
            within(region, self.from, self.to) * bytes
        };
        (0..REGIONS).map(of).sum()
    }

    /// Bytes of the entries below that the run's deletes free.
    pub(crate) fn freed(&self, world: &World) -> f64 {
        let of = |region| within(region, self.from, self.to) * self.mix[region].dead;
        (0..REGIONS).map(of).sum::<f64>() * world.entry
    }
}

/// Sums of what runs hold in a region, where `len` is the part of the region in their union.
fn union(runs: &[Run], region: usize, len: f64, live: f64) -> Mix {
    let mut missing = 1.0;
    let mut mix = Mix::default();
    for run in runs {
        let share = within(region, run.from, run.to) / len;
        missing *= 1.0 - (run.mix[region].over * share / live).min(1.0);
        mix.fresh += run.mix[region].fresh * share;
        mix.dead += run.mix[region].dead * share;
    }
    mix.over = live * (1.0 - missing);
    mix
}

/// What a push writes for the runs: the newest entry of each key.
pub(crate) fn merged(runs: &[Run], world: &World) -> Run {
    let from = runs.iter().map(|run| run.from).fold(f64::INFINITY, f64::min);
    let to = runs.iter().map(|run| run.to).fold(f64::NEG_INFINITY, f64::max);
    let mut mix = [Mix::default(); REGIONS];
    for (region, mix) in mix.iter_mut().enumerate() {
        let len = within(region, from, to);
        if len > 0.0 {
            *mix = union(runs, region, len, world.live[region].max(1.0));
        }
    }
    Run { from, to, mix }
}

/// What a compaction writes: the base with the new entries and without the deleted ones.
pub(crate) fn compacted(base: Option<Run>, deltas: &[Run], world: &World) -> Run {
    let mut all = merged(deltas, world);
    let Some(base) = base else {
        for mix in &mut all.mix {
            *mix = Mix { over: mix.over + mix.fresh, ..Mix::default() };
        }
        return all;
    };
    let (from, to) = (base.from.min(all.from), base.to.max(all.to));
    let mut mix = [Mix::default(); REGIONS];
    for (region, mix) in mix.iter_mut().enumerate() {
        let len = within(region, from, to);
        if len > 0.0 {
            let below = base.mix[region].over * within(region, base.from, base.to);
            let above =
                (all.mix[region].fresh - all.mix[region].dead) * within(region, all.from, all.to);
            mix.over = ((below + above) / len).max(0.0);
        }
    }
    Run { from, to, mix }
}

impl World {
    /// Keys in [0, 1) with values of 100 bytes.
    pub(crate) fn new(data_bytes: f64) -> Self {
        let entry = 116.0;
        let entries = data_bytes / entry;
        Self { live: [entries; REGIONS], entries, end: 1.0, entry, delete: 16.0 }
    }

    pub(crate) fn live_bytes(&self) -> f64 {
        self.entries * self.entry
    }

    /// The base with which everything begins.
    pub(crate) fn base(&self) -> Run {
        let mix = self.live.map(|over| Mix { over, ..Mix::default() });
        Run { from: 0.0, to: self.end, mix }
    }
}

impl Load {
    /// The run that a flush of so many bytes makes; what is live changes.
    pub(crate) fn flush(self, world: &mut World, bytes: f64) -> Run {
        let average = match self {
            Self::Delete => f64::midpoint(world.entry, world.delete),
            Self::Shrink => world.delete,
            _ => world.entry,
        };
        let count = bytes / average;
        if self == Self::Ascending {
            let from = world.end;
            let len = count / world.live[1];
            world.end += len;
            world.entries += count;
            let fresh = Mix { fresh: world.live[1], ..Mix::default() };
            return Run { from, to: from + len, mix: [fresh; REGIONS] };
        }
        let (over, fresh, dead) = match self {
            Self::Insert | Self::Fill => (0.0, 1.0, 0.0),
            Self::Delete => (0.0, 0.5, 0.5),
            Self::Mixed => (0.5, 0.5, 0.0),
            Self::Shrink => (0.0, 0.0, 1.0),
            _ => (1.0, 0.0, 0.0),
        };
        let hot = if self == Self::Skewed { 0.8 } else { 0.0 };
        let mut mix = [Mix::default(); REGIONS];
        for (region, mix) in mix.iter_mut().enumerate() {
            let len = within(region, 0.0, world.end);
            let first = if region == 0 { hot } else { 0.0 };
            let density = count * (first / len + (1.0 - hot) / world.end);
            let live = world.live[region].max(1.0);
            mix.over = live * (1.0 - (-density * over / live).exp());
            mix.fresh = density * fresh;
            mix.dead = density * dead;
            world.live[region] += mix.fresh - mix.dead;
        }
        world.entries += count * (fresh - dead);
        Run { from: 0.0, to: world.end, mix }
    }
}
