//! The graph that LinkBench loads: which ids have how many links, and what the links hold.
//!
//! Everything follows from the number of ids and the seed, so every engine gets the same graph and the
//! links of an id can be computed again when they are read back.

use crate::Result;
use crate::engines::links::{Count, Link};
use crate::harness::dist::Stream;
use crate::harness::keys::{Permutation, mix};
use crate::harness::settings::Settings;
use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, LogNormal};

/// Two link types share the links of an id.
pub const TYPES: [u64; 2] = [123_456_789, 123_456_790];
/// The median and the largest length of a link's data, and the deviation of its logarithm.
const MEDIAN_DATA: f64 = 8.0;
const MAX_DATA: usize = 255;
const SIGMA: f64 = 1.0;
/// Data are bytes of this range. So many of them are drawn, the others repeat a motif of this length.
const DATA_BYTES: std::ops::Range<u8> = 32..100;
const UNIQUE: f64 = 0.225;
const MOTIF: usize = 128;
/// The time of the newest link in milliseconds; they are up to fifty days old.
pub const NEWEST: u64 = 1_456_000_000_000;
/// How many links ids have: a number of links, and how many ids in a hundred have at most that many.
/// Between two points the share grows evenly. LinkBench's measured distribution (`Distribution.dat`,
/// `nlinks`), thinned out.
const LINKS: &[(u64, f64)] = &[
    (0, 19.74745),
    (1, 72.98462),
    (2, 86.73752),
    (3, 91.81681),
    (4, 94.45913),
    (5, 95.86861),
    (6, 96.79778),
    (7, 97.37927),
    (8, 97.81674),
    (9, 98.11472),
    (10, 98.34099),
    (12, 98.67463),
    (15, 98.96339),
    (20, 99.22210),
    (25, 99.36913),
    (30, 99.46496),
    (40, 99.58616),
    (50, 99.65176),
    (64, 99.70283),
    (80, 99.74334),
    (100, 99.77352),
    (128, 99.80172),
    (200, 99.83979),
    (300, 99.86960),
    (400, 99.88791),
    (500, 99.89965),
    (600, 99.90849),
    (700, 99.91639),
    (2_730, 99.97006),
    (3_237, 99.97568),
    (3_999, 99.98171),
    (4_792, 99.98599),
    (11_430, 99.99698),
    (15_085, 99.99843),
    (20_188, 99.99910),
    (30_010, 99.99959),
    (50_105, 99.99985),
    (73_919, 99.99994),
    (124_441, 99.99996),
    (186_879, 99.99998),
    (311_772, 100.0),
];

/// How many links the id at this share of all ids has, from 0 to 100.
fn links_at(share: f64) -> u64 {
    let mut below = LINKS[0];
    if share < below.1 {
        return below.0;
    }
    for point in &LINKS[1..] {
        if share < point.1 {
            let part = (share - below.1) / (point.1 - below.1);
            // From the number behind the lower one up to the upper one.
            return below.0 + 1 + ((point.0 - below.0) as f64 * part) as u64;
        }
        below = *point;
    }
    below.0
}

/// The graph: everything about it follows from the number of ids and the seed.
#[derive(Debug)]
pub struct Graph {
    pub ids: u64,
    pub seed: u64,
    ranks: Permutation,
    motif: Vec<u8>,
    lengths: LogNormal<f64>,
}

/// A count row of these links, which are of one id and type.
pub fn count_of(links: &[Link]) -> Option<Count> {
    let first = links.first()?;
    let time = links.iter().map(|link| link.time).max()?;
    let count = links.len() as u64;
    Some(Count { id: first.id1, kind: first.kind, count, time, version: 0 })
}

impl Graph {
    /// As large as the settings ask for.
    pub fn new(settings: &Settings) -> Result<Self> {
        let mut rng = Stream { seed: settings.seed, round: 0, step: 0, thread: 0 }.rng();
        let lengths = LogNormal::new(MEDIAN_DATA.ln(), SIGMA).map_err(|error| {
            crate::Error::Failed(format!("no distribution of lengths: {error}"))
        })?;
        Ok(Self {
            ids: settings.num,
            seed: settings.seed,
            ranks: Permutation::new(settings.num, mix(settings.seed)),
            motif: (0..MOTIF).map(|_| rng.random_range(DATA_BYTES)).collect(),
            lengths,
        })
    }

    /// How many links an id has. Ids are counted from 1.
    pub fn links_of(&self, id: u64) -> u64 {
        let rank = self.ranks.at(id - 1) as f64 + 0.5;
        links_at(100.0 * rank / self.ids as f64)
    }

    fn rng(&self, id: u64) -> SmallRng {
        Stream { seed: self.seed, round: 0, step: 1, thread: id }.rng()
    }

    /// How many links of one type an id has.
    pub fn links_of_kind(&self, id: u64, kind: u64) -> u64 {
        let (all, types) = (self.links_of(id), TYPES.len() as u64);
        let place = TYPES.iter().position(|known| *known == kind).unwrap_or(0) as u64;
        all / types + u64::from(place < all % types)
    }

    /// Where the first of an id's links ends; the others end at the ids behind it.
    pub fn first_id2(&self, id: u64) -> u64 {
        self.ids + id + 1
    }

    /// The links of an id, a list for each type.
    pub fn links(&self, id: u64) -> [Vec<Link>; TYPES.len()] {
        let mut rng = self.rng(id);
        TYPES.map(|kind| {
            let ends = (0..self.links_of_kind(id, kind)).map(|number| self.first_id2(id) + number);
            let links = ends.map(|id2| {
                let time = NEWEST - rng.random_range(0..=u64::from(u32::MAX));
                let data = self.data(&mut rng);
                Link { kind, id1: id, id2, visible: true, time, version: 0, data }
            });
            links.collect()
        })
    }

    /// A link's data.
    pub fn data(&self, rng: &mut SmallRng) -> Vec<u8> {
        let len = (self.lengths.sample(rng) as usize).min(MAX_DATA);
        let start = rng.random_range(0..MOTIF);
        let byte = |place: usize| {
            if rng.random_bool(UNIQUE) {
                rng.random_range(DATA_BYTES)
            } else {
                self.motif[(start + place) % MOTIF]
            }
        };
        (0..len).map(byte).collect()
    }

    /// The id that has more links than all but so many others.
    pub fn richest(&self, place: u64) -> u64 {
        self.ranks.back(self.ids - 1 - place) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::links::keys::row_key;

    #[test]
    fn ids_have_as_many_links_as_linkbench_gives_them() {
        let settings = Settings { num: 200_000, ..Settings::default() };
        let graph = Graph::new(&settings).unwrap();
        let counts: Vec<u64> = (1..=settings.num).map(|id| graph.links_of(id)).collect();
        let share = |most: u64| {
            counts.iter().filter(|count| **count <= most).count() as f64 * 100.0 / 200_000.0
        };
        for (most, expected) in [(0, 19.747), (1, 72.985), (4, 94.459), (100, 99.774)] {
            assert!((share(most) - expected).abs() < 0.01, "{most}: {}", share(most));
        }
        assert!(LINKS.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        let mean = counts.iter().sum::<u64>() as f64 / 200_000.0;
        assert!((3.0..6.0).contains(&mean), "{mean}");
    }

    #[test]
    fn links_of_an_id_are_the_same_each_time_and_their_data_are_short() {
        let graph = Graph::new(&Settings { num: 5_000, ..Settings::default() }).unwrap();
        let all = || (1..=5_000).flat_map(|id| graph.links(id)).flatten();
        assert!(all().eq(all()));
        let all: Vec<Link> = all().collect();
        let mut lengths: Vec<usize> = all.iter().map(|link| link.data.len()).collect();
        lengths.sort_unstable();
        assert!((7..=9).contains(&lengths[lengths.len() / 2]));
        let rows: std::collections::HashSet<Vec<u8>> =
            all.iter().map(|link| row_key(link.kind, link.id1, link.id2)).collect();
        assert_eq!(rows.len(), all.len());
    }

    #[test]
    fn the_richest_id_has_the_most_links() {
        let graph = Graph::new(&Settings { num: 3_000, ..Settings::default() }).unwrap();
        let most = (1..=3_000).map(|id| graph.links_of(id)).max().unwrap();
        assert_eq!(graph.links_of(graph.richest(0)), most);
        let all: Vec<u64> = (0..3_000).map(|place| graph.links_of(graph.richest(place))).collect();
        assert!(all.is_sorted_by(|more, fewer| more >= fewer));
        for id in [1, 7, graph.richest(0)] {
            let [first, second] = graph.links(id);
            assert_eq!(first.len() as u64, graph.links_of_kind(id, TYPES[0]));
            assert_eq!((first.len() + second.len()) as u64, graph.links_of(id));
        }
    }
}
