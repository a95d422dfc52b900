//! Ingestions and values in pieces: how they are made at random, and what is there of one that failed.

use super::failures::fault;
use super::life::Life;
use super::world::{Change, Ingested, SPACES, root};
use esker::Db;
use esker_testkit::harness::is_poisoned;
use std::collections::BTreeMap;

impl Ingested {
    /// Ingests it, in one ingestion or, from the entry with this number on, in two that are joined; an ingestion
    /// that is not `whole` is not committed.
    fn run(&self, db: &Db, cut: Option<usize>, whole: bool) -> esker::Result<bool> {
        let db = root(db, &self.root)?;
        let spaces = [db.keyspace(SPACES[0])?, db.keyspace(SPACES[1])?];
        let mut ingestion = db.ingest()?;
        for (space, low, high) in &self.ranges {
            ingestion.remove_range(&spaces[*space], &low[..]..&high[..])?;
        }
        let mut other = cut.map(|_| db.ingest()).transpose()?;
        for (number, ((space, key), value)) in self.entries.iter().enumerate() {
            let behind = cut.is_some_and(|cut| number >= cut);
            let to = other.as_mut().filter(|_| behind).unwrap_or(&mut ingestion);
            match value {
                // Half of the long values come in pieces.
                Some(value) if number % 2 == 0 => {
                    to.insert_reader(&spaces[*space], key, &value[..]).map(drop)
                }
                Some(value) => to.insert(&spaces[*space], key, value),
                None => to.remove(&spaces[*space], key),
            }?;
        }
        if let Some(other) = other {
            ingestion.join(other)?;
        }
        if whole {
            ingestion.commit()?;
        }
        Ok(whole)
    }
}

impl Life {
    /// Ingests to both keyspaces.
    pub(super) fn ingest(&mut self, db: &Db) -> Result<(), esker::Error> {
        self.serial += 1;
        let root = self.writable();
        let mark = format!("!{:06}", self.serial).into_bytes();
        let mut entries = BTreeMap::from([((0, mark.clone()), Some(b"ingested".to_vec()))]);
        for _ in 0..self.rng.below(30) {
            let place = (self.rng.below(2) as usize, self.key());
            let len = if self.rng.percent(5) { 5_000 } else { self.rng.below(200) };
            let value = vec![self.serial as u8; len as usize];
            entries.insert(place, self.rng.percent(85).then_some(value));
        }
        let mut ranges = Vec::new();
        for _ in 0..self.rng.below(3) {
            let (low, high) = (self.key(), self.key());
            ranges.push((self.rng.below(2) as usize, low.clone().min(high.clone()), low.max(high)));
        }
        let cut = self.rng.percent(40).then(|| self.rng.below(entries.len() as u64) as usize);
        let whole = self.rng.percent(85);
        self.at_times_a_fault();
        let ingested = Ingested { root, mark, ranges, entries };
        let change = if whole { Change::Ingest(ingested.clone()) } else { Change::Nothing };
        let result = self.step(change, || ingested.run(db, cut, whole));
        self.reached.ingestions += u64::from(whole && self.was_done());
        self.check_ingestion(db, (&ingested.root, &ingested.mark));
        result
    }

    /// Writes a value in pieces.
    pub(super) fn write_in_pieces(&mut self, db: &Db) -> Result<(), esker::Error> {
        let name = self.writable();
        self.serial += 1;
        let mark = format!("!{:06}", self.serial).into_bytes();
        let value = vec![self.serial as u8; 5_000 + self.rng.below(20_000) as usize];
        let change = Change::Write(name.clone(), vec![(0, mark.clone(), Some(value.clone()))]);
        let result =
            self.step(change, || root(db, &name)?.insert_reader(&mark, &value[..]).map(|_| true));
        self.reached.pieces += u64::from(self.was_done());
        self.check_ingestion(db, (&name, &mark));
        result
    }

    /// Few steps are ingestions, so that a call of one fails is rare without this.
    fn at_times_a_fault(&mut self) {
        if self.rng.percent(30) {
            self.progress.add(&self.faults, fault(&mut self.rng));
        }
    }

    /// Whether the latest step returned without an error.
    fn was_done(&self) -> bool {
        self.history.steps.last().is_some_and(|(_, certain)| *certain)
    }

    /// If the latest step was an ingestion that failed, nothing of it is there, now or after a crash, unless the
    /// failure ended writing: then the next open decides.
    fn check_ingestion(&mut self, db: &Db, (name, mark): (&str, &[u8])) {
        if self.was_done() || is_poisoned(db) {
            return;
        }
        self.reached.without_trace += 1;
        if let Ok(found) = root(db, name).and_then(|root| root.get(mark)) {
            assert_eq!(found, None, "an ingestion failed and is visible");
        }
        if let Some(step) = self.history.steps.last_mut() {
            *step = (Change::Nothing, true);
        }
    }
}
