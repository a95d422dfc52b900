//! Which key comes next: uniform, zipfian or latest, from seeded and independent streams.
//!
//! Every thread of every workload draws from its own stream, derived from the run's seed, the round,
//! the place of the workload in the list and the thread. A workload therefore never repeats the keys of
//! the one before it, which would be in the caches and would make the rate too high.
//!
//! *Zipfian* ranks are scattered over the key space by a permutation, as YCSB does by hashing, so that
//! popular keys are not neighbours. *Latest* takes the rank as a distance from the newest key, which in
//! this harness is the highest number.

use crate::harness::keys::{Permutation, mix};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution as _, Zipf};
use serde::{Deserialize, Serialize};

/// The distribution of the keys that operations use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every key alike.
    #[default]
    Uniform,
    /// A few keys most of the time, scattered over the key space.
    Zipfian,
    /// The newest keys most of the time.
    Latest,
}

/// Names one stream of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The seed of the run.
    pub seed: u64,
    /// Which round of the suite.
    pub round: u64,
    /// Which workload of the list.
    pub step: u64,
    /// Which thread of the workload.
    pub thread: u64,
}

impl Stream {
    /// The seed that all threads of the step share, for permutations.
    pub fn shared_seed(&self) -> u64 {
        mix(mix(mix(self.seed) ^ self.round) ^ self.step)
    }

    /// The generator of this stream.
    pub fn rng(&self) -> SmallRng {
        SmallRng::seed_from_u64(mix(self.shared_seed() ^ mix(self.thread + 1)))
    }
}

/// Draws numbers `0..num`.
#[derive(Debug, Clone)]
pub struct Sampler {
    num: u64,
    shape: Shape,
}

#[derive(Debug, Clone)]
enum Shape {
    Uniform,
    Zipfian { rank: Zipf<f64>, scatter: Permutation },
    Latest { rank: Zipf<f64> },
}

impl Sampler {
    /// A sampler of `0..num` (`num` at least 1); `theta` is the exponent of the skewed ones.
    pub fn new(distribution: Distribution, num: u64, theta: f64) -> Self {
        let num = num.max(1);
        // `Zipf::new` refuses only n < 1 and a negative or undefined exponent; settings are
        // checked before, and a uniform sampler is a harmless answer to anything else.
        let shape = match (distribution, Zipf::new(num as f64, theta)) {
            // The scatter is fixed for a key count: all workloads agree on what is popular.
            (Distribution::Zipfian, Ok(rank)) => {
                Shape::Zipfian { rank, scatter: Permutation::new(num, num) }
            }
            (Distribution::Latest, Ok(rank)) => Shape::Latest { rank },
            _ => Shape::Uniform,
        };
        Self { num, shape }
    }

    /// The next number.
    pub fn sample(&self, rng: &mut SmallRng) -> u64 {
        match &self.shape {
            Shape::Uniform => rng.random_range(0..self.num),
            Shape::Zipfian { rank, scatter } => scatter.at(self.rank(rank, rng)),
            Shape::Latest { rank } => self.num - 1 - self.rank(rank, rng),
        }
    }

    fn rank(&self, zipf: &Zipf<f64>, rng: &mut SmallRng) -> u64 {
        (zipf.sample(rng) as u64).clamp(1, self.num) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn counts(distribution: Distribution) -> HashMap<u64, u64> {
        let sampler = Sampler::new(distribution, 1_000, 0.99);
        let mut rng = Stream { seed: 7, round: 0, step: 0, thread: 0 }.rng();
        let mut counts = HashMap::new();
        for _ in 0..100_000 {
            *counts.entry(sampler.sample(&mut rng)).or_default() += 1;
        }
        assert!(counts.keys().all(|&n| n < 1_000));
        counts
    }

    #[test]
    fn uniform_draws_every_key_about_alike() {
        let counts = counts(Distribution::Uniform);
        assert_eq!(counts.len(), 1_000);
        assert!(counts.values().all(|&c| (30..300).contains(&c)));
    }

    #[test]
    fn zipfian_has_scattered_favourites() {
        let counts = counts(Distribution::Zipfian);
        let mut order: Vec<(u64, u64)> = counts.into_iter().map(|(n, c)| (c, n)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let top: u64 = order.iter().take(100).map(|&(c, _)| c).sum();
        assert!(top > 55_000, "the top tenth got {top} of 100000 draws");
        let apart = order[0].1.abs_diff(order[1].1);
        assert!(apart > 1, "the two favourites are neighbours");
    }

    #[test]
    fn latest_prefers_the_highest_numbers() {
        let counts = counts(Distribution::Latest);
        let high: u64 = counts.iter().filter(|(n, _)| **n >= 900).map(|(_, c)| c).sum();
        assert!(high > 55_000, "the newest tenth got {high} of 100000 draws");
    }

    #[test]
    fn streams_differ_in_every_coordinate_and_repeat() {
        let base = Stream { seed: 1, round: 0, step: 0, thread: 0 };
        let first = |stream: Stream| stream.rng().random::<u64>();
        let others = [
            Stream { seed: 2, ..base },
            Stream { round: 1, ..base },
            Stream { step: 1, ..base },
            Stream { thread: 1, ..base },
        ];
        assert_eq!(first(base), first(base));
        for other in others {
            assert_ne!(first(base), first(other), "{other:?}");
        }
    }
}
