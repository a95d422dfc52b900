//! The load phase: loaders fill batches, each of which is one transaction.
//!
//! Loaders take chunks of ids in turn. A batch holds links or counts, never both, and bulk loads read
//! nothing.

use super::graph::{Graph, TYPES, count_of};
use super::place::Place;
use super::verify::Check;
use crate::Result;
use crate::engines::links::{Count, Link, LinkSession, keys};
use crate::experiments::published::figures::Figures;
use crate::harness::measure::meter::Meter;
use crate::harness::runner::{Runner, Stage};
use crate::harness::step_report::{CheckScope, WorkloadReport};
use std::sync::atomic::{AtomicU64, Ordering};

/// Links of one batch, and counts of one: LinkBench's default for MySQL.
const BATCH: usize = 1_024;
/// Ids that a loader takes at a time.
const CHUNK: u64 = 2_048;

/// Loads everything, and reads some of it back.
pub fn run(
    graph: &Graph,
    runner: &mut Runner<'_>,
    place: &Place<'_>,
) -> Result<(WorkloadReport, Figures)> {
    let store = place.store()?;
    let all: u64 = (1..=graph.ids).map(|id| graph.links_of(id)).sum();
    let stage = Stage {
        name: place.name.into(),
        threads: place.settings.threads,
        operations: all,
        batch: BATCH,
        per_latency: BATCH as u64,
        ..Stage::default()
    };
    let chunks = AtomicU64::new(0);
    let (mut report, _) = runner.stage(&stage, &|_, meter| {
        Loader { session: store.links()?, links: Vec::new(), counts: Vec::new(), meter }
            .load(graph, &chunks)
    })?;
    let mut session = store.links()?;
    let mut check = Check::default();
    for id in graph.sampled() {
        for (links, kind) in graph.links(id).into_iter().zip(TYPES) {
            check.loaded(&mut *session, (kind, id), links)?;
        }
    }
    report.check = Some(check.report(CheckScope::Sample, true));
    let figures = Figures::from([
        ("ids".to_owned(), graph.ids as f64),
        ("links_per_id".to_owned(), all as f64 / graph.ids as f64),
        ("cpu_us_per_insert".to_owned(), report.cpu_us_per_op),
        ("context_switches_per_insert".to_owned(), report.context_switches_per_op),
    ]);
    Ok((report, figures))
}

/// One loader with its batches.
struct Loader<'a, 'm> {
    session: Box<dyn LinkSession + 'a>,
    links: Vec<Link>,
    counts: Vec<Count>,
    meter: &'a mut Meter<'m>,
}

impl Loader<'_, '_> {
    /// Loads chunks of ids until none is left.
    fn load(mut self, graph: &Graph, chunks: &AtomicU64) -> Result<()> {
        loop {
            let first = chunks.fetch_add(1, Ordering::Relaxed) * CHUNK + 1;
            if first > graph.ids {
                break;
            }
            for id in first..=graph.ids.min(first + CHUNK - 1) {
                for links in graph.links(id) {
                    self.add(links)?;
                }
            }
        }
        self.send_links()?;
        self.send_counts()
    }

    /// Adds the links of an id and type to the batches.
    fn add(&mut self, links: Vec<Link>) -> Result<()> {
        if let Some(count) = count_of(&links) {
            self.counts.push(count);
        }
        for link in links {
            self.links.push(link);
            if self.links.len() >= BATCH {
                self.send_links()?;
            }
        }
        if self.counts.len() >= BATCH {
            self.send_counts()?;
        }
        Ok(())
    }

    fn send_links(&mut self) -> Result<()> {
        if self.links.is_empty() {
            return Ok(());
        }
        self.session.load_links(&self.links)?;
        self.wrote(self.links.iter().map(keys::link_bytes).sum());
        self.meter.lap(self.links.len() as u64);
        self.links.clear();
        Ok(())
    }

    fn send_counts(&mut self) -> Result<()> {
        if !self.counts.is_empty() {
            self.session.load_counts(&self.counts)?;
            self.wrote(self.counts.len() * keys::COUNT_BYTES);
            self.counts.clear();
        }
        Ok(())
    }

    fn wrote(&mut self, bytes: usize) {
        self.meter.totals.bytes += bytes as u64;
        self.meter.totals.bytes_written += bytes as u64;
    }
}
