//! Reads back the links of some ids and compares them.
//!
//! After the load, the expected links are known exactly. After requests of several threads they are
//! not, but rows, index and counts must agree: the visible rows of an id and type must be those that
//! its list shows, newest first, and as many as its count says.

use super::ends::widest;
use super::graph::{Graph, TYPES};
use crate::Result;
use crate::engines::links::{Link, LinkSession, keys};
use crate::harness::check::Checksum;
use crate::harness::step_report::{CheckScope, StepCheck};

/// About so many ids are read back, evenly spread.
const SAMPLED: u64 = 2_000;
/// After requests, ids with more links of a type than this are left out: LinkBench adds links among
/// twenty times as many ids, each of which is looked for.
const MOST: u64 = 5_000;
/// Rows of one multiget.
const ROWS: usize = 512;
/// All times that a list can be asked for, and more links than there can be.
pub const ALL_TIMES: (u64, u64) = (0, i64::MAX as u64);
pub const NO_LIMIT: usize = i32::MAX as usize;

impl Graph {
    /// The ids that are read back.
    pub(super) fn sampled(&self) -> impl Iterator<Item = u64> + use<> {
        (1..=self.ids).step_by((self.ids / SAMPLED).max(1) as usize)
    }
}

/// What was read back.
#[derive(Default)]
pub struct Check {
    checksum: Checksum,
    compared: u64,
    wrong: u64,
    first_wrong: Option<String>,
}

impl Check {
    /// Notes whether something is as it has to be.
    pub fn expect(&mut self, right: bool, what: impl FnOnce() -> String) {
        self.compared += 1;
        if !right {
            self.wrong += 1;
            self.first_wrong.get_or_insert_with(what);
        }
    }

    /// Adds what another one compared, or a thread returned.
    pub fn merge(&mut self, other: Self) {
        self.checksum.merge(other.checksum);
        self.compared += other.compared;
        self.wrong += other.wrong;
        self.first_wrong = self.first_wrong.take().or(other.first_wrong);
    }

    /// Adds what the results of a step sum up to.
    pub fn add(&mut self, checksum: Checksum) {
        self.checksum.merge(checksum);
    }

    /// For the report of a step.
    pub fn report(self, scope: CheckScope, comparable: bool) -> StepCheck {
        StepCheck {
            scope,
            checksum: format!("{:016x}", self.checksum.value()),
            comparable,
            compared: self.compared,
            wrong: self.wrong,
            first_wrong: self.first_wrong,
        }
    }

    /// Compares the links of an id and type with those that were loaded.
    pub fn loaded(
        &mut self,
        session: &mut dyn LinkSession,
        (kind, id): (u64, u64),
        links: Vec<Link>,
    ) -> Result<()> {
        let ends: Vec<u64> = links.iter().map(|link| link.id2).collect();
        let rows = self.consistent(session, (kind, id), &ends)?;
        self.expect(rows == links, || {
            format!("the links of type {kind} of id {id} are not those that were loaded")
        });
        Ok(())
    }

    /// Compares what the tables tell of some ids after requests.
    pub fn requested(
        &mut self,
        session: &mut dyn LinkSession,
        graph: &Graph,
        ids: impl Iterator<Item = u64>,
    ) -> Result<()> {
        for id in ids {
            for kind in TYPES {
                let links = graph.links_of_kind(id, kind);
                if links <= MOST {
                    let first = graph.first_id2(id);
                    let ends: Vec<u64> = (first..first + widest(links)).collect();
                    self.consistent(session, (kind, id), &ends)?;
                }
            }
        }
        Ok(())
    }

    /// Compares rows, index and count of an id and type. Its links can end at these ids. Returns the
    /// visible rows by their ends.
    fn consistent(
        &mut self,
        session: &mut dyn LinkSession,
        (kind, id): (u64, u64),
        ends: &[u64],
    ) -> Result<Vec<Link>> {
        let (mut rows, mut listed) = (Vec::new(), Vec::new());
        for part in ends.chunks(ROWS) {
            session.multiget(kind, id, part, &mut |link| rows.push(link.clone()))?;
        }
        rows.sort_unstable_by_key(|link: &Link| link.id2);
        rows.iter().for_each(|link| self.row(link));
        rows.retain(|link| link.visible);
        let mut see = |link: &Link| listed.push(link.clone());
        session.link_list(kind, id, ALL_TIMES, NO_LIMIT, &mut see)?;
        let count = session.count(kind, id)?;
        self.checksum.found(&keys::count_key(kind, id), &count.to_be_bytes());
        let of = format!("of type {kind} of id {id}");
        let counted = listed.len() as u64;
        self.expect(count == counted, || {
            format!("{count} links {of} are counted, {counted} listed")
        });
        self.expect(listed.is_sorted_by(|a, b| a.time >= b.time), || {
            format!("the links {of} are not listed by time")
        });
        listed.sort_unstable_by_key(|link: &Link| link.id2);
        self.expect(listed == rows, || format!("the links {of} are not listed as their rows are"));
        Ok(rows)
    }

    /// Adds a row to the checksum.
    fn row(&mut self, link: &Link) {
        let key = keys::row_key(link.kind, link.id1, link.id2);
        self.checksum.found(&key, &keys::row_value(link));
    }
}
