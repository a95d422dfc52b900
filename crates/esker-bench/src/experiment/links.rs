//! The load phase of LinkBench: links with their index, and counts.
//!
//! The tables are those of LinkBench's schema for MySQL. A link is a row under its primary key and an
//! entry of its covering index; a count is a row of its own. Everything lies in one ordered map, so
//! keys begin with a byte for the table; integers are big-endian, so that they sort by their value.
//!
//! | table | key | value |
//! |---|---|---|
//! | 1, links | link type, id1, id2 | visibility, time, version, data |
//! | 2, index | id1, link type, visibility, time, id2, version, data | nothing |
//! | 3, counts | id, link type | count, time, version |
//!
//! Loaders take chunks of ids in turn. Each fills batches of links, a link's row and index entry in the
//! same batch, and batches of counts beside them, and commits a batch when it is full.

use super::Figures;
use crate::check::{Checksum, Scan};
use crate::dist::Stream;
use crate::engine::{Direction, Engine, Session};
use crate::keys::{Permutation, mix};
use crate::measure::meter::Meter;
use crate::report::{CheckScope, StepCheck, WorkloadReport};
use crate::runner::{Runner, Stage};
use crate::settings::{Durability, Settings};
use crate::{EngineSpec, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, LogNormal};
use std::sync::atomic::{AtomicU64, Ordering};

/// Links of one batch, and counts of one.
const BATCH: usize = 1_024;
/// Ids that a loader takes at a time.
const CHUNK: u64 = 2_048;
/// Two link types share the links of an id.
const TYPES: [u64; 2] = [123_456_789, 123_456_790];
const VISIBLE: u8 = 1;
/// The median and the largest length of a link's data, and the deviation of its logarithm.
const MEDIAN_DATA: f64 = 8.0;
const MAX_DATA: usize = 255;
const SIGMA: f64 = 1.0;
/// Data are bytes of this range. So many of them are drawn, the others repeat a motif of this length.
const DATA_BYTES: std::ops::Range<u8> = 32..100;
const UNIQUE: f64 = 0.225;
const MOTIF: usize = 128;
/// The time of the newest link in milliseconds; they are up to fifty days old.
const NEWEST: u64 = 1_456_000_000_000;
/// So many ids are read back.
const SAMPLED: u64 = 2_000;

/// How many links ids have: a number, and how many ids in a hundred have no more. Between two of them
/// the share grows evenly. LinkBench's measured distribution (`Distribution.dat`, `nlinks`), thinned out.
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
    ids: u64,
    seed: u64,
    ranks: Permutation,
    motif: Vec<u8>,
    lengths: LogNormal<f64>,
}

/// A link to be written.
struct Link {
    kind: u64,
    id1: u64,
    id2: u64,
    time: u64,
    data: Vec<u8>,
}

impl Link {
    fn row(&self) -> (Vec<u8>, Vec<u8>) {
        let key = [&[1][..], &be(self.kind), &be(self.id1), &be(self.id2)].concat();
        // Version 0.
        (key, [&[VISIBLE][..], &be(self.time), &[0; 4], &self.data].concat())
    }

    fn index(&self) -> Vec<u8> {
        let head = [&[2][..], &be(self.id1), &be(self.kind), &[VISIBLE], &be(self.time)].concat();
        [&head[..], &be(self.id2), &[0; 4], &self.data].concat()
    }
}

fn be(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A count's row.
fn count_row(id: u64, links: &[&Link]) -> Option<(Vec<u8>, Vec<u8>)> {
    let kind = links.first()?.kind;
    let newest = links.iter().map(|link| link.time).max()?;
    let key = [&[3][..], &be(id), &be(kind)].concat();
    Some((key, [&be(links.len() as u64)[..], &be(newest), &[0; 4]].concat()))
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
    fn links_of(&self, id: u64) -> u64 {
        let rank = self.ranks.at(id - 1) as f64 + 0.5;
        links_at(100.0 * rank / self.ids as f64)
    }

    fn rng(&self, id: u64) -> SmallRng {
        Stream { seed: self.seed, round: 0, step: 1, thread: id }.rng()
    }

    /// The links of an id, those of one type after those of the other.
    fn links(&self, id: u64) -> Vec<Link> {
        let (all, mut rng) = (self.links_of(id), self.rng(id));
        let mut links = Vec::with_capacity(all as usize);
        for (place, kind) in TYPES.into_iter().enumerate() {
            let types = TYPES.len() as u64;
            let share = all / types + u64::from((place as u64) < all % types);
            for number in 0..share {
                let age = rng.random_range(0..=u64::from(u32::MAX));
                let (id2, time) = (self.ids + id + number + 1, NEWEST - age);
                links.push(Link { kind, id1: id, id2, time, data: self.data(&mut rng) });
            }
        }
        links
    }

    fn data(&self, rng: &mut SmallRng) -> Vec<u8> {
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

    /// Loads everything, and reads some of it back.
    pub fn load(
        &self,
        runner: &mut Runner<'_>,
        engine: &dyn Engine,
        spec: &EngineSpec,
        settings: &Settings,
        name: &str,
    ) -> Result<(WorkloadReport, Figures)> {
        let all: u64 = (1..=self.ids).map(|id| self.links_of(id)).sum();
        let stage = Stage {
            name: name.into(),
            threads: settings.threads,
            operations: all,
            batch: BATCH,
            per_latency: BATCH as u64,
            ..Stage::default()
        };
        let chunks = AtomicU64::new(0);
        let (mut report, _) = runner.stage(&stage, &|_, meter| {
            self.load_chunks(engine, meter, &chunks, settings.durability)
        })?;
        if spec.answers() {
            report.check = Some(self.sample(engine)?);
        }
        let figures = Figures::from([
            ("ids".to_owned(), self.ids as f64),
            ("links_per_id".to_owned(), all as f64 / self.ids as f64),
        ]);
        Ok((report, figures))
    }

    fn load_chunks(
        &self,
        engine: &dyn Engine,
        meter: &mut Meter<'_>,
        chunks: &AtomicU64,
        class: Durability,
    ) -> Result<()> {
        let mut links = Loader { session: engine.session()?, full: 0 };
        let mut counts = Loader { session: engine.session()?, full: 0 };
        loop {
            let first = chunks.fetch_add(1, Ordering::Relaxed) * CHUNK + 1;
            if first > self.ids {
                break;
            }
            for id in first..=self.ids.min(first + CHUNK - 1) {
                let all = self.links(id);
                for kind in TYPES {
                    let of_kind: Vec<&Link> = all.iter().filter(|link| link.kind == kind).collect();
                    for link in &of_kind {
                        let (key, value) = link.row();
                        links.put(meter, &key, &value);
                        links.put(meter, &link.index(), &[]);
                        if links.ends(class, BATCH)? {
                            meter.lap(BATCH as u64);
                        }
                    }
                    if let Some((key, value)) = count_row(id, &of_kind) {
                        counts.put(meter, &key, &value);
                        counts.ends(class, BATCH)?;
                    }
                }
            }
        }
        let left = links.full as u64;
        links.ends(class, 0)?;
        counts.ends(class, 0)?;
        if left > 0 {
            meter.lap(left);
        }
        Ok(())
    }

    /// Reads the rows, the index and the counts of some ids, and compares them with what was loaded.
    fn sample(&self, engine: &dyn Engine) -> Result<StepCheck> {
        let mut session = engine.session()?;
        let mut check = Check::default();
        let every = (self.ids / SAMPLED).max(1);
        for id in (1..=self.ids).step_by(every as usize) {
            let links = self.links(id);
            let mut index: Vec<Vec<u8>> = links.iter().map(Link::index).collect();
            index.sort_unstable();
            let start = [&[2][..], &be(id)].concat();
            check.scan(&mut *session, &start, &index)?;
            for kind in TYPES {
                let of_kind: Vec<&Link> = links.iter().filter(|link| link.kind == kind).collect();
                for link in &of_kind {
                    let (key, value) = link.row();
                    check.get(&mut *session, &key, Some(&value))?;
                }
                let count = count_row(id, &of_kind);
                let key = [&[3][..], &be(id), &be(kind)].concat();
                check.get(&mut *session, &key, count.as_ref().map(|(_, value)| &value[..]))?;
            }
        }
        Ok(StepCheck {
            scope: CheckScope::Sample,
            checksum: format!("{:016x}", check.checksum.value()),
            comparable: true,
            compared: check.compared,
            wrong: check.wrong,
            first_wrong: check.first_wrong,
        })
    }
}

/// A session and what its batch holds.
struct Loader<'a> {
    session: Box<dyn Session + 'a>,
    /// Links or counts.
    full: usize,
}

impl Loader<'_> {
    fn put(&mut self, meter: &mut Meter<'_>, key: &[u8], value: &[u8]) {
        self.session.batch_put(key, value);
        let bytes = (key.len() + value.len()) as u64;
        meter.totals.bytes += bytes;
        meter.totals.bytes_written += bytes;
    }

    /// One more is in the batch; commits it when it holds so many, or whatever it holds for none.
    fn ends(&mut self, class: Durability, at: usize) -> Result<bool> {
        self.full += usize::from(at > 0);
        let commit = self.full >= at.max(1);
        if commit {
            self.session.batch_commit(class)?;
            self.full = 0;
        }
        Ok(commit)
    }
}

/// What was read back.
#[derive(Default)]
struct Check {
    checksum: Checksum,
    compared: u64,
    wrong: u64,
    first_wrong: Option<String>,
}

impl Check {
    fn compare(&mut self, right: bool, key: &[u8]) {
        self.compared += 1;
        if !right {
            self.wrong += 1;
            self.first_wrong.get_or_insert_with(|| format!("{key:02x?} is not what was loaded"));
        }
    }

    fn get(
        &mut self,
        session: &mut dyn Session,
        key: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<()> {
        let mut right = false;
        let checksum = &mut self.checksum;
        let found = session.get(key, &mut |value| {
            checksum.found(key, value);
            right = Some(value) == expected;
        })?;
        if !found {
            checksum.missing(key);
        }
        self.compare(if found { right } else { expected.is_none() }, key);
        Ok(())
    }

    fn scan(
        &mut self,
        session: &mut dyn Session,
        start: &[u8],
        expected: &[Vec<u8>],
    ) -> Result<()> {
        let (mut scan, mut seen) = (Scan::default(), 0);
        let mut cursor = session.cursor(Some(start), Direction::Forward)?;
        while let Some((key, value)) = cursor.next()? {
            if !key.starts_with(start) {
                break;
            }
            scan.entry(key, value);
            self.compare(expected.get(seen).is_some_and(|other| *other == key), key);
            seen += 1;
        }
        if seen < expected.len() {
            self.compare(false, start);
        }
        self.checksum.scan(scan);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let all: Vec<Link> = (1..=5_000).flat_map(|id| graph.links(id)).collect();
        let again: Vec<Link> = (1..=5_000).flat_map(|id| graph.links(id)).collect();
        assert!(all.iter().zip(&again).all(|(a, b)| a.row() == b.row() && a.index() == b.index()));
        let mut lengths: Vec<usize> = all.iter().map(|link| link.data.len()).collect();
        lengths.sort_unstable();
        assert!((7..=9).contains(&lengths[lengths.len() / 2]));
        let rows: std::collections::HashSet<Vec<u8>> =
            all.iter().map(|link| link.row().0).collect();
        assert_eq!(rows.len(), all.len());
    }
}
