//! The request phase: LinkBench's default mix, without the requests for nodes.
//!
//! Ids are drawn as in LinkBench's workload for Facebook's graph: zipfian, with one exponent for reads
//! and another for writes, mostly independent of how many links an id has. The end of a link is drawn
//! from a range of ids in which one in two, nine in ten or one in twenty had a link when the graph was
//! loaded (`ends`). Every thread draws from a stream of its own. Times are not read from a clock but
//! grow by a millisecond with each request, so that all engines get the same requests.

use super::ends::{ADD_EXISTS, range};
use super::graph::{Graph, NEWEST, TYPES};
use super::place::Place;
use super::verify::{ALL_TIMES, Check};
use crate::engines::links::{Count, Link, LinkSession, keys};
use crate::experiments::published::figures::Figures;
use crate::harness::check::Checksum;
use crate::harness::dist::Stream;
use crate::harness::keys::{Permutation, mix};
use crate::harness::measure::latency::Latencies;
use crate::harness::measure::meter::Meter;
use crate::harness::runner::{Runner, Stage};
use crate::harness::step_report::{CheckScope, WorkloadReport};
use crate::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Add,
    Delete,
    Update,
    Count,
    Multiget,
    List,
    /// A list that goes on where one ended that was cut.
    History,
}

/// Names of requests, in the order of their numbers.
const NAMES: [&str; 7] = ["add", "delete", "update", "count", "multiget", "list", "history"];
/// LinkBench's percentages. Those of requests for nodes are left out, so that these make 76.
const MIX: [(Request, f64); 6] = [
    (Request::Add, 8.988_660_1),
    (Request::Delete, 2.990_766_4),
    (Request::Update, 8.012_212_5),
    (Request::Count, 4.886_356_7),
    (Request::Multiget, 0.526_114_2),
    (Request::List, 50.711_914_5),
];
/// The share of lists that ask for history, once there is any.
const HISTORY: f64 = 0.003;
/// Lists that were cut and are remembered.
const TAILS: usize = 2_048;
/// Links of one list at most.
const LIMIT: usize = 10_000;
/// The exponents of ids that are read and written, and the shares that are drawn without regard to how
/// many links they have.
const READS: (f64, f64) = (0.8, 0.995);
const WRITES: (f64, f64) = (0.741, 0.95);
/// The shares of requests that find a link that was loaded.
const CHANGE_EXISTS: f64 = 0.9;
const GET_EXISTS: f64 = 0.5;
/// How many ids a multiget asks for: geometric with this parameter, and at most so many.
const MULTIGET: f64 = 0.382;
const MULTIGET_MOST: usize = 128;
/// The streams of the load are steps 0 and 1.
const STEP: u64 = 2;
/// So many of the ids that are written most often are read back, beside those spread evenly.
const HOTTEST: u64 = 500;

/// How ids are drawn.
struct Access {
    rank: Zipf<f64>,
    scatter: Permutation,
    scattered: f64,
}

impl Access {
    fn new(graph: &Graph, (exponent, scattered): (f64, f64)) -> Result<Self> {
        let rank = Zipf::new(graph.ids as f64, exponent)
            .map_err(|error| Error::Failed(format!("no distribution of ids: {error}")))?;
        let scatter = Permutation::new(graph.ids, mix(graph.seed ^ mix(STEP)));
        Ok(Self { rank, scatter, scattered })
    }

    /// The id of a rank that pays no regard to links, from 0.
    fn scattered(&self, rank: u64) -> u64 {
        self.scatter.at(rank) + 1
    }

    fn draw(&self, graph: &Graph, rng: &mut SmallRng) -> u64 {
        let rank = (self.rank.sample(rng) as u64).clamp(1, graph.ids) - 1;
        if rng.random_bool(self.scattered) { self.scattered(rank) } else { graph.richest(rank) }
    }
}

/// Answers requests, and reads back what some ids have then.
pub fn run(
    graph: &Graph,
    runner: &mut Runner<'_>,
    place: &Place<'_>,
) -> Result<(WorkloadReport, Figures)> {
    let (store, threads) = (place.store()?, place.settings.threads.max(1) as u64);
    let stage = Stage {
        name: place.name.into(),
        threads: place.settings.threads,
        operations: graph.ids,
        length: place.settings.duration,
        ..Stage::default()
    };
    let begun = mark(&mut *store.links()?)?;
    let access = [Access::new(graph, READS)?, Access::new(graph, WRITES)?];
    let merged = Mutex::new(Tally::default());
    let (mut report, results) = runner.stage(&stage, &|thread, meter| {
        let thread = thread as u64;
        let share = graph.ids / threads + u64::from(thread < graph.ids % threads);
        let mut requester = Requester {
            graph,
            access: &access,
            session: store.links()?,
            rng: Stream { seed: graph.seed, round: 0, step: STEP, thread }.rng(),
            place: (thread, threads),
            tails: Vec::new(),
            tally: Tally::default(),
        };
        requester.run(meter, place.settings.duration.is_none().then_some(share))?;
        merged.lock().unwrap_or_else(PoisonError::into_inner).merge(requester.tally);
        Ok(())
    })?;
    let tally = merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    let figures = tally.figures();
    let mut check = tally.check;
    let hottest = (0..HOTTEST.min(graph.ids)).map(|rank| access[1].scattered(rank));
    check.requested(&mut *store.links()?, graph, hottest.chain(graph.sampled()))?;
    check.add(results);
    // Threads that meet are answered in the order in which they came, time cuts them anywhere, and
    // some requests of a phase that was stopped have been answered before.
    let comparable = threads == 1 && place.settings.duration.is_none() && !begun;
    report.check = Some(check.report(CheckScope::Results, comparable));
    Ok((report, figures))
}

/// Marks that requests have begun, by a count of no id. Returns whether they had, in a process that
/// was stopped.
fn mark(session: &mut dyn LinkSession) -> Result<bool> {
    let begun = session.count(TYPES[0], 0)? > 0;
    if !begun {
        let [kind, _] = TYPES;
        session.load_counts(&[Count { id: 0, kind, count: 1, time: 0, version: 0 }])?;
    }
    Ok(begun)
}

/// What one thread measured.
#[derive(Default)]
struct Tally {
    latencies: [Latencies; NAMES.len()],
    /// Links that lists returned.
    listed: u64,
    check: Check,
}

impl Tally {
    fn merge(&mut self, other: Self) {
        self.latencies.iter_mut().zip(&other.latencies).for_each(|(own, other)| own.merge(other));
        self.listed += other.listed;
        self.check.merge(other.check);
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::new();
        for (name, latencies) in NAMES.iter().zip(&self.latencies) {
            let summary = latencies.summary(1);
            if summary.samples == 0 {
                continue;
            }
            let all = [
                ("count", summary.samples as f64),
                ("p50_us", summary.p50_us),
                ("p99_us", summary.p99_us),
                ("p999_us", summary.p999_us),
                ("max_us", summary.max_us),
            ];
            figures.extend(all.map(|(figure, value)| (format!("request_{name}_{figure}"), value)));
        }
        let samples = |request: Request| self.latencies[request as usize].summary(1).samples;
        let lists = samples(Request::List) + samples(Request::History);
        figures.insert("links_per_list".into(), self.listed as f64 / lists.max(1) as f64);
        figures
    }
}

/// A list that was cut: of which id and type, and how old its last link was.
#[derive(Clone, Copy)]
struct Tail {
    kind: u64,
    id1: u64,
    time: u64,
}

/// One thread.
struct Requester<'a> {
    graph: &'a Graph,
    /// Of reads and of writes.
    access: &'a [Access; 2],
    session: Box<dyn LinkSession + 'a>,
    rng: SmallRng,
    /// Which thread of how many.
    place: (u64, u64),
    tails: Vec<Tail>,
    tally: Tally,
}

/// What a request asks for.
enum Asked {
    Change(Link),
    Delete(Link),
    Count { kind: u64, id1: u64 },
    Multiget { kind: u64, id1: u64, id2s: Vec<u64> },
    List { kind: u64, id1: u64, newest: u64, tail: Option<usize> },
}

impl Requester<'_> {
    /// Makes so many requests, or as many as the time allows.
    fn run(&mut self, meter: &mut Meter<'_>, share: Option<u64>) -> Result<()> {
        let mut number = 0;
        while share.is_none_or(|share| number < share) {
            let (request, asked) = self.draw(number);
            let begun = Instant::now();
            self.answer(asked, meter)?;
            self.tally.latencies[request as usize].record(begun.elapsed().as_nanos() as u64);
            number += 1;
            if !meter.lap(1) {
                break;
            }
        }
        Ok(())
    }

    /// Draws the next request.
    fn draw(&mut self, number: u64) -> (Request, Asked) {
        let mut left = self.rng.random_range(0.0..MIX.iter().map(|(_, part)| part).sum());
        let drawn = MIX.iter().find(|(_, part)| {
            left -= part;
            left < 0.0
        });
        let request = drawn.map_or(Request::List, |(request, _)| *request);
        let writes = matches!(request, Request::Add | Request::Delete | Request::Update);
        let history = request == Request::List && self.rng.random_bool(HISTORY);
        if history && !self.tails.is_empty() {
            let place = self.rng.random_range(0..self.tails.len());
            let Tail { kind, id1, time } = self.tails[place];
            // LinkBench leaves the first link out, which it has seen.
            let newest = time.saturating_sub(1);
            return (Request::History, Asked::List { kind, id1, newest, tail: Some(place) });
        }
        let id1 = self.access[usize::from(writes)].draw(self.graph, &mut self.rng);
        let kind = TYPES[self.rng.random_range(0..TYPES.len())];
        let asked = match request {
            Request::Add => Asked::Change(self.link(number, kind, id1, ADD_EXISTS)),
            Request::Update => Asked::Change(self.link(number, kind, id1, CHANGE_EXISTS)),
            Request::Delete => Asked::Delete(self.link(number, kind, id1, CHANGE_EXISTS)),
            Request::Count => Asked::Count { kind, id1 },
            Request::Multiget => Asked::Multiget { kind, id1, id2s: self.ends(kind, id1) },
            Request::List | Request::History => {
                Asked::List { kind, id1, newest: ALL_TIMES.1, tail: None }
            }
        };
        (request, asked)
    }

    /// A link that was loaded with this probability.
    fn link(&mut self, number: u64, kind: u64, id1: u64, exists: f64) -> Link {
        let links = self.graph.links_of_kind(id1, kind);
        let id2 = self.graph.first_id2(id1) + self.rng.random_range(0..range(links, exists));
        let (thread, threads) = self.place;
        let time = NEWEST + 1 + number * threads + thread;
        let data = self.graph.data(&mut self.rng);
        Link { kind, id1, id2, visible: true, time, version: 0, data }
    }

    /// The ids of a multiget, none of them twice.
    fn ends(&mut self, kind: u64, id1: u64) -> Vec<u64> {
        let tries = (1.0 - self.rng.random::<f64>()).ln() / (1.0 - MULTIGET).ln();
        let wanted = (1 + tries as usize).min(MULTIGET_MOST);
        let range = range(self.graph.links_of_kind(id1, kind), GET_EXISTS);
        let first = self.graph.first_id2(id1);
        if range <= wanted as u64 {
            return (first..first + wanted as u64).collect();
        }
        let mut ends: Vec<u64> = Vec::with_capacity(wanted);
        while ends.len() < wanted {
            let end = first + self.rng.random_range(0..range);
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        ends
    }

    /// Has the engine answer, and adds the answer to the checksum.
    fn answer(&mut self, asked: Asked, meter: &mut Meter<'_>) -> Result<()> {
        let totals = &mut meter.totals;
        match asked {
            Asked::Change(link) => {
                let added = self.session.add_link(&link)?;
                let bytes = keys::link_bytes(&link) as u64;
                totals.bytes += bytes;
                totals.bytes_written += bytes;
                returned(&mut totals.checksum, &link, added);
            }
            Asked::Delete(link) => {
                let hidden = self.session.delete_link(link.kind, link.id1, link.id2)?;
                if hidden {
                    // The row and its index entry are written anew; how long their data are is not known.
                    totals.bytes_written +=
                        keys::link_bytes(&Link { data: Vec::new(), ..link.clone() }) as u64;
                }
                returned(&mut totals.checksum, &link, hidden);
            }
            Asked::Count { kind, id1 } => {
                let count = self.session.count(kind, id1)?;
                totals.checksum.found(&keys::count_key(kind, id1), &count.to_be_bytes());
            }
            Asked::Multiget { kind, id1, id2s } => {
                let mut found = 0;
                self.session.multiget(kind, id1, &id2s, &mut |link| {
                    found += 1;
                    totals.bytes += link.data.len() as u64;
                    let key = keys::row_key(link.kind, link.id1, link.id2);
                    totals.checksum.found(&key, &keys::row_value(link));
                })?;
                totals.found += found;
                totals.missing += id2s.len() as u64 - found;
            }
            Asked::List { kind, id1, newest, tail } => {
                return self.list((kind, id1, newest), tail, meter);
            }
        }
        Ok(())
    }

    /// Lists links and remembers where the list was cut.
    fn list(
        &mut self,
        (kind, id1, newest): (u64, u64, u64),
        tail: Option<usize>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let totals = &mut meter.totals;
        let (mut found, mut last, mut right) = (0, newest, true);
        self.session.link_list(kind, id1, (0, newest), LIMIT, &mut |link| {
            right &= link.visible && (link.kind, link.id1) == (kind, id1) && link.time <= last;
            (found, last) = (found + 1, link.time);
            totals.bytes += link.data.len() as u64;
            totals.checksum.found(&keys::index_key(link), &[]);
        })?;
        totals.checksum.found(&keys::index_prefix(kind, id1, true), &usize::to_be_bytes(found));
        if found > 0 {
            totals.found += 1
        } else {
            totals.missing += 1
        }
        self.tally.listed += found as u64;
        let what = || format!("the list of type {kind} of id {id1} holds what it should not");
        self.tally.check.expect(right, what);
        let cut = (found >= LIMIT).then_some(Tail { kind, id1, time: last });
        match (tail, cut) {
            (Some(place), Some(cut)) => self.tails[place] = cut,
            (Some(place), None) => {
                self.tails.swap_remove(place);
            }
            (None, Some(cut)) => self.remember(cut),
            (None, None) => {}
        }
        Ok(())
    }

    fn remember(&mut self, cut: Tail) {
        if self.tails.iter().any(|known| (known.kind, known.id1) == (cut.kind, cut.id1)) {
            return;
        }
        if self.tails.len() < TAILS {
            self.tails.push(cut);
        } else {
            let place = self.rng.random_range(0..TAILS);
            self.tails[place] = cut;
        }
    }
}

/// Adds what a change returned.
fn returned(checksum: &mut Checksum, link: &Link, answer: bool) {
    checksum.found(&keys::row_key(link.kind, link.id1, link.id2), &[u8::from(answer)]);
}

#[cfg(test)]
mod tests {
    use super::super::ends::widest;
    use super::*;
    use crate::harness::settings::Settings;

    #[test]
    fn the_mix_is_linkbenchs_without_nodes() {
        let all: f64 = MIX.iter().map(|(_, part)| part).sum();
        // Reading, adding, updating and deleting nodes.
        let nodes = 12.932_668_3 + 2.573_278_9 + 7.366_437 + 1.011_591_4;
        assert!((all + nodes - 100.0).abs() < 1e-4, "{all}");
    }

    #[test]
    fn writes_meet_few_ids_often_and_reads_more_so() {
        let graph = Graph::new(&Settings { num: 10_000, ..Settings::default() }).unwrap();
        let mut rng = Stream { seed: 1, round: 0, step: 0, thread: 0 }.rng();
        let mut share = |how: (f64, f64)| {
            let access = Access::new(&graph, how).unwrap();
            let top: std::collections::HashSet<u64> =
                (0..100).map(|rank| access.scattered(rank)).collect();
            let drawn = (0..50_000).map(|_| access.draw(&graph, &mut rng));
            drawn.filter(|id| (1..=10_000).contains(id) && top.contains(id)).count() as f64 / 5e4
        };
        let (reads, writes) = (share(READS), share(WRITES));
        assert!(reads > 0.2 && writes > 0.15 && reads > writes && reads < 0.5, "{reads} {writes}");
    }

    #[test]
    fn ranges_hold_the_share_that_exists() {
        assert_eq!((range(0, 0.9), range(9, 0.9), range(1, 0.5), widest(3)), (1, 10, 2, 60));
    }
}
