//! Damage in a run that waits in a tier: its span is left alone, and everything else goes on (C3.11,
//! S16).

use super::tiers::tiered;
use super::{Place, key};
use esker::internals::compaction::policy::{DELTAS_MAX, runs_bound};
use esker::internals::run::file_name;
use esker::{Db, Error, PaceMode, SegmentShape};
use esker_testkit::Rng;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Keys that are written before the damage.
const KEYS: usize = 1200;
/// Keys behind these that are written only after it.
const MORE: usize = 300;
const FAN_OUT: usize = 2;
/// The runs at which a span is pushed after the damage.
const RUNS: usize = 3;
/// Flushes that are waited for, one after the other.
const ROUNDS: u64 = 24;

/// The spans of a tier that hold something, each with its run segments, those of the newest run first.
/// Neighbours that hold one run each count as one.
fn spans(db: &Db, tier: u64) -> Vec<Vec<SegmentShape>> {
    let mut spans: Vec<Vec<SegmentShape>> = Vec::new();
    let segments = db.default_keyspace().segments().unwrap();
    for segment in segments.into_iter().filter(|segment| segment.tier == tier) {
        let last = spans.last().and_then(|span| span.last());
        if last.is_none_or(|last| last.age < segment.age) {
            spans.push(Vec::new());
        }
        spans.last_mut().unwrap().push(segment);
    }
    spans
}

/// What was written, and what it should have come to.
struct Written {
    rng: Rng,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Written {
    fn put(&mut self, db: &Db, name: Vec<u8>) {
        let value = [&self.rng.next().to_le_bytes()[..], &[b'v'; 150]].concat();
        db.insert(&name, &value).unwrap();
        self.model.insert(name, value);
    }

    /// Puts and deletes at random among the first so many keys, but nothing of `spared`.
    fn write(&mut self, db: &Db, (count, keys): (usize, usize), spared: &[u8]) {
        for _ in 0..count {
            let name = key(self.rng.below(keys as u64) as usize).into_bytes();
            if name == spared {
                continue;
            }
            if self.rng.percent(10) {
                db.remove(&name).unwrap();
                self.model.remove(&name);
            } else {
                self.put(db, name);
            }
        }
    }
}

/// A database in whose spans runs wait, with damage in one of these.
struct Story {
    place: Place,
    written: Written,
    /// The run segment that begins with the damaged block. Nothing newer has its first key.
    segment: SegmentShape,
    /// From this key on no read needs that block.
    end: Vec<u8>,
    file: PathBuf,
}

impl Story {
    /// Runs wait in each span of this tier, the only one that holds any; the newest of the first span
    /// is damaged. That span is the first child of the one that will lie above it, if one will: the
    /// paths through both lead along the same key.
    fn begin(tier: usize) -> Self {
        let place = Place::new();
        // However many runs there are, none is pushed.
        let db = Db::open_with(place.path(), tiered(tier, FAN_OUT, 100)).unwrap();
        let mut written = Written { rng: Rng::new(11), model: BTreeMap::new() };
        (0..KEYS).for_each(|number| written.put(&db, key(number).into_bytes()));
        db.flush().unwrap();
        written.write(&db, (1200, KEYS), b"");
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
        let spans = spans(&db, tier as u64);
        assert!(spans.len() >= 3, "{} spans", spans.len());
        let segment = spans[0][0].clone();
        assert!(segment.age > RUNS as u64, "{} runs wait", segment.age);
        // The run may have nothing else in this span.
        let next = spans[0].get(1).filter(|next| next.age == segment.age);
        let next = next.map(|next| next.smallest.clone());
        let beside = || spans[1].iter().map(|segment| segment.smallest.clone()).min();
        let end = next.or_else(beside).unwrap();
        db.close().unwrap();
        let file = place.path().join("data").join(file_name(segment.file));
        let mut bytes = std::fs::read(&file).unwrap();
        // A segment begins with its first block.
        bytes[segment.offset as usize + 24] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        Self { place, written, segment, end, file }
    }

    /// Opens it with two tiers, of which all spans with runs are due.
    fn open(&self, workers: usize) -> Db {
        let mut options = tiered(2, FAN_OUT, RUNS);
        options.workers = Some(workers);
        let db = Db::open_with(self.place.path(), options).unwrap();
        db.wait_until_idle().unwrap();
        db
    }

    /// Whether a span holds the damaged run.
    fn is_damaged(&self, span: &[SegmentShape]) -> bool {
        let place = (self.segment.file, self.segment.offset);
        span.iter().any(|segment| (segment.file, segment.offset) == place)
    }

    /// Writes to old keys and to new ones. The first key of the damaged block gets nothing newer.
    fn write(&mut self, db: &Db, count: usize) {
        self.written.write(db, (count, KEYS + MORE), &self.segment.smallest);
    }

    /// One small flush, and all the work that follows from it.
    fn round(&mut self, db: &Db) {
        self.write(db, 40);
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
    }

    /// Writes so slowly that no other work is ever late. Then nobody is slowed, however many runs the
    /// damaged span holds.
    fn write_slowly(&mut self, db: &Db) {
        self.round(db);
        let before = db.stats();
        for round in 0..ROUNDS {
            self.round(db);
            assert_eq!(db.stats().pace.mode, PaceMode::Open, "round {round}");
        }
        let after = db.stats();
        assert_eq!(after.stalls.compaction_debt, before.stalls.compaction_debt);
        assert!(after.flushes >= before.flushes + ROUNDS, "{} flushes", after.flushes);
        let spans = spans(db, self.segment.tier);
        let damaged = spans.iter().find(|span| self.is_damaged(span)).unwrap();
        // More than may lie on a path where all is well.
        assert!(damaged[0].age > runs_bound(2, RUNS) as u64, "{} runs wait", damaged[0].age);
    }

    /// Writes as fast as it goes, and waits only at the end.
    fn write_fast(&mut self, db: &Db) {
        let before = db.stats();
        self.write(db, 4000);
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
        let after = db.stats();
        let flushes = after.flushes - before.flushes;
        assert!(flushes > 10, "{flushes} flushes");
        assert!(after.pushes > before.pushes, "{} pushes", after.pushes);
        assert!(after.compactions > before.compactions, "{} compactions", after.compactions);
    }

    /// The damaged run stays where it is, and nothing else is due.
    fn check_shape(&self, db: &Db) {
        let mut stays = false;
        for tier in [1, 2] {
            for span in spans(db, tier) {
                let damaged = self.is_damaged(&span);
                stays |= damaged && tier == self.segment.tier;
                let runs = span[0].age;
                assert!(damaged || runs < RUNS as u64, "{runs} runs in a span of tier {tier}");
            }
        }
        assert!(stays, "the damaged run is gone");
        let deltas = db.stats().trees[0].deltas.len();
        assert!(deltas < DELTAS_MAX, "{deltas} deltas");
    }

    /// An answer is right, or needs the damaged block and says so.
    fn check_reads(&self, db: &Db) {
        let model = &self.written.model;
        for name in (0..KEYS + MORE).map(|number| key(number).into_bytes()) {
            match db.get(&name) {
                Ok(found) => assert_eq!(found.as_ref(), model.get(&name)),
                Err(error) => {
                    self.check_error(&error);
                    let needs_it = self.segment.smallest <= name && name < self.end;
                    assert!(needs_it, "{}: {error}", name.escape_ascii());
                }
            }
        }
        self.check_error(&db.get(&self.segment.smallest).unwrap_err());
        self.check_error(&db.iter().unwrap().find_map(Result::err).unwrap());
        let behind = model.range(self.end.clone()..);
        let behind = behind.map(|(name, value)| (name.clone(), value.clone()));
        assert!(db.range(self.end.clone()..).unwrap().map(Result::unwrap).eq(behind));
        let problems = db.verify().unwrap().problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        self.check_error(&problems[0].error);
    }

    /// It is the error of damage, and names where that is.
    fn check_error(&self, error: &Error) {
        let Error::Corruption(damage) = error else { panic!("{error}") };
        assert_eq!((&damage.path, damage.keyspace.as_deref()), (&self.file, Some("default")));
    }

    /// What a program asks for is done where nothing is damaged, and refused where it needs what is.
    fn check_requests(&self, db: &Db) {
        let (low, keyspace) = (key(1000), db.default_keyspace());
        keyspace.compact_range(low.clone()..).unwrap();
        let segments = keyspace.segments().unwrap();
        let waits = |segment: &SegmentShape| {
            segment.tier > 0 && segment.largest.as_slice() >= low.as_bytes()
        };
        assert!(!segments.iter().any(waits), "what is compacted has no runs above it");
        self.check_error(&db.compact().unwrap_err());
        db.wait_until_idle().unwrap();
    }
}

fn all_but_a_damaged_span_goes_on(tier: usize, workers: usize) {
    let mut story = Story::begin(tier);
    let db = story.open(workers);
    assert!(db.stats().pushes > 0, "the spans beside it are pushed");
    story.check_shape(&db);
    story.check_reads(&db);
    story.write_slowly(&db);
    story.check_shape(&db);
    story.write_fast(&db);
    story.check_shape(&db);
    story.check_reads(&db);
    story.check_requests(&db);
    story.check_reads(&db);
    db.close().unwrap();
    drop(db);
    // An open knows nothing of it, and finds it again.
    let db = story.open(workers);
    story.round(&db);
    story.check_shape(&db);
    story.check_reads(&db);
    db.close().unwrap();
}

#[test]
fn a_damaged_span_of_the_top_tier_is_left_alone_and_all_else_goes_on() {
    all_but_a_damaged_span_goes_on(2, 1);
}

/// What is pushed goes on top of it, and lies on the paths of keys whose runs above it are due.
#[test]
fn a_damaged_span_below_the_top_tier_slows_nobody_who_writes_above_it() {
    all_but_a_damaged_span_goes_on(1, 1);
}

#[test]
fn flushes_on_a_thread_of_their_own_do_not_wait_for_a_damaged_span() {
    for tier in [1, 2] {
        all_but_a_damaged_span_goes_on(tier, 2);
    }
}
