//! How many runs lie over a key in a tree with four tiers while it is overwritten at full speed: never more
//! than the policy says, however fast writers are (S15). An iterator has no more sources either.

use super::{Place, key, small};
use esker::internals::compaction::policy::{TIERS_MAX, runs_bound};
use esker::internals::options::SmallTiers;
use esker::{Compression, Db, Explanation, Options, Stats, StepSource};
use esker_testkit::Rng;

/// These make about 30 partitions and half as many spans. The 64 most urgent parts say how full a tree
/// is, so in this one no path is overlooked.
const KEYS: usize = 2400;
/// A run that leaves tier 1 holds those of 16 flushes if spans are due at two runs, and of 81 at three.
const FLUSHES: u64 = 400;
/// A flush that began before the last run was counted adds one.
const UNDER_WAY: usize = 1;

fn options(runs: usize) -> Options {
    let mut options = small();
    options.memtable_bytes = Some(16 << 10);
    options.partition_bytes = Some(16 << 10);
    options.segment_bytes = 2 << 10;
    options.compression = Compression::None;
    // A single worker flushes before anything else, and so without a bound.
    options.workers = Some(2);
    // No flush goes past the tiers, so what is in a row came through all rows above it.
    let tiers = SmallTiers { count: TIERS_MAX, fan_out: 3, runs, direct: 0, tightens: false };
    options.small_tiers = Some(tiers);
    options
}

fn put(db: &Db, number: usize, round: u64) {
    let value = [&round.to_le_bytes()[..], &[b'v'; 150]].concat();
    db.insert(key(number), value).unwrap();
}

/// A database with all keys, and with four tiers in which nothing waits.
fn loaded(place: &Place, runs: usize) -> Db {
    let db = Db::open_with(place.path(), options(runs)).unwrap();
    // Each change of the tree adds a tier until all are there.
    (0..KEYS).for_each(|number| put(&db, number, 0));
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    let waiting: Vec<u64> = stats.trees[0].tiers.iter().map(|tier| tier.runs).collect();
    assert_eq!(waiting, [0; TIERS_MAX]);
    db
}

fn runs_in(explanation: &Explanation) -> usize {
    let is_run = |source: StepSource| matches!(source, StepSource::Run { .. });
    explanation.steps.iter().filter(|step| is_run(step.source)).count()
}

/// How many memtables there were when a scan began.
fn memtables(scan: &Explanation) -> usize {
    let of = |source: StepSource| match source {
        StepSource::Memtable { of, .. } => of as usize,
        _ => 0,
    };
    scan.steps.iter().map(|step| of(step.source)).max().unwrap_or(0)
}

/// The most that was seen.
#[derive(Default)]
struct Seen {
    /// Runs over a key.
    runs: usize,
    /// Runs that waited in each tier, tier 1 first.
    tiers: [u64; TIERS_MAX],
}

impl Seen {
    /// Looks at what lies over a key, for a get and for an iterator.
    fn look(&mut self, db: &Db, number: usize, bound: usize) {
        let most = bound + UNDER_WAY;
        let name = key(number);
        let get = db.explain_get(&name).unwrap();
        assert!(get.found, "{get}");
        let scan = db.explain_scan(name.., 1).unwrap();
        for explanation in [&get, &scan] {
            let runs = runs_in(explanation);
            assert!(runs <= most, "{runs} runs, and {bound} may lie there: {explanation}");
            self.runs = self.runs.max(runs);
        }
        let (sources, memtables) = (scan.steps.len(), memtables(&scan));
        assert!(sources <= most + memtables, "{sources} sources, {memtables} memtables: {scan}");
    }

    fn note(&mut self, stats: &Stats) {
        let tiers = &stats.trees[0].tiers;
        assert_eq!(tiers.len(), TIERS_MAX);
        for (most, tier) in self.tiers.iter_mut().zip(tiers) {
            *most = (*most).max(tier.runs);
        }
        let (open, most) = (stats.run_files_open, stats.run_files_open_max);
        assert!(open <= most, "{open} run files are open, of {most}");
    }
}

/// Each key has the value that was written to it last.
fn check_contents(db: &Db, rounds: &[u64]) {
    let found: Vec<_> = db.iter().unwrap().map(Result::unwrap).collect();
    assert_eq!(found.len(), KEYS);
    for (number, (name, value)) in found.iter().enumerate() {
        assert_eq!(*name, key(number).into_bytes());
        assert_eq!(value[..8], rounds[number].to_le_bytes(), "key {number}");
    }
}

#[test]
fn at_full_speed_no_more_runs_lie_over_a_key_than_four_tiers_may_hold() {
    for runs in [2, 3] {
        let place = Place::new();
        let db = loaded(&place, runs);
        let bound = runs_bound(TIERS_MAX, runs);
        let (mut rng, mut rounds) = (Rng::new(runs as u64), vec![0_u64; KEYS]);
        let mut random = || rng.below(KEYS as u64) as usize;
        let (before, mut seen, mut round) = (db.stats(), Seen::default(), 0);
        loop {
            for _ in 0..40 {
                let number = random();
                round += 1;
                put(&db, number, round);
                rounds[number] = round;
            }
            seen.look(&db, random(), bound);
            let stats = db.stats();
            seen.note(&stats);
            if stats.flushes >= before.flushes + FLUSHES {
                break;
            }
        }
        db.wait_until_idle().unwrap();
        check_contents(&db, &rounds);
        let after = db.stats();
        let (most, pushes) = (seen.runs, after.pushes - before.pushes);
        let what = format!("due at {runs}: {most} of {bound} runs, {pushes} pushes");
        println!("{what}; by tier {:?}", seen.tiers);
        // What waited in a tier was pushed into it, but for the top one. Partitions are compacted only
        // if something was pushed out of tier 1.
        assert!(seen.tiers.iter().all(|most| *most > 0), "{what}; {:?}", seen.tiers);
        assert!(after.compactions > before.compactions, "{what}");
        assert!(pushes > FLUSHES / 10, "{what}");
        assert!(most > TIERS_MAX, "{what}");
    }
}
