//! Everything at once: calls that fail, a disk that fills up, blocks that are torn, a kernel that
//! writes back when it likes, kills and power cuts (C1, C2, C4, C7; R3 to R8, R11, R12, R24).
//!
//! One thread writes to a database and its branches, waits for its turn or does not, ingests, writes values in
//! pieces, makes and drops branches, named snapshots and checkpoints, flushes, compacts, closes and reopens, on
//! a simulated disk under a [`FaultFs`]. Images of the disk are taken at any of its operations: those inside
//! an open, a close, a checkpoint or the making and dropping of a branch are among them. Each is
//! opened, at times with a call that fails, and must hold what the history allows:
//!
//! 1. *Lives.* What one open found is the base of a history; the steps that follow are its writes.
//!    When the database ends (it was closed, or a failure ended writing), the images are judged by
//!    that history, and the next open begins another.
//! 2. *Floor and ceiling.* A kill leaves every step that had returned, a power cut every step that
//!    was durable; neither leaves more than had begun, nor a later step without an earlier one.
//! 3. *Failed steps* happened as a whole or not at all (C2). A write leaves a key of its own, a
//!    branch its name, so that the image itself says which of the two. A write that did not wait and would have
//!    had to has written nothing, and of an ingestion that failed nothing is ever there, unless its failure
//!    ended writing.
//! 4. *A failed sync that drops the cache* takes what was not durable from the process, too. Then
//!    open may refuse the hole that it leaves in the log, and keeps the prefix if told to.

mod failures;
mod ingestions;
mod life;
mod world;

use self::failures::{PATH, fault, is_expected, options, reopen};
use self::life::{Checkpoint, Life, Progress, Reached};
use self::world::{Change, History, SPACES, World, difference, read, read_root};
use super::{campaign, number, tail};
use esker::repair::salvage;
use esker::{Db, ErrorKind};
use esker_testkit::crashfs::Tear;
use esker_testkit::{CrashFs, FaultFs, Rng};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// What a crash left.
struct Image {
    disk: CrashFs,
    /// For people.
    what: String,
    killed: bool,
    low: usize,
    /// The floor if the power goes before the recovery is complete.
    durable: usize,
    high: usize,
    dropped: bool,
    checkpoint: Option<Checkpoint>,
}

type Images = Arc<Mutex<Vec<Image>>>;

/// Takes images at about one in `every` operations of `disk`, and at one in six of its syncs.
fn watch(
    disk: &CrashFs,
    faults: &FaultFs,
    progress: &Arc<Progress>,
    seed: u64,
    (every, most): (u64, usize),
) -> Images {
    let images = Images::default();
    let (taken, progress, source) = (images.clone(), progress.clone(), disk.clone());
    let faults = faults.clone();
    let dice = Mutex::new(Rng::new(seed));
    disk.set_hook(Some(Arc::new(move |operation, what| {
        let (chosen, killed, percent, seed) = {
            let mut dice = dice.lock().unwrap();
            let chosen = dice.below(if what.contains("====") { 6 } else { every }) == 0;
            (chosen, dice.percent(25), [0, 30, 70, 100][dice.below(4) as usize], dice.next())
        };
        if !chosen || taken.lock().unwrap().len() >= most {
            return;
        }
        // What is known now is in the image, which is taken after this look; what has not begun
        // when it was taken is not.
        let ended = progress.ended.load(Ordering::SeqCst);
        let durable = progress.durable.load(Ordering::SeqCst);
        let checkpoint = progress.checkpoints.lock().unwrap().last().cloned();
        let disk = if killed { source.kill_clone() } else { source.crash_clone(seed, percent) };
        let high = progress.begun.load(Ordering::SeqCst);
        let dropped = killed && progress.dropped(&faults);
        let low = if killed && !dropped { ended } else { durable };
        let what = format!("operation {operation} ({what}), killed {killed}, {percent} %");
        let image = Image { disk, what, killed, low, durable, high, dropped, checkpoint };
        taken.lock().unwrap().push(image);
    })));
    images
}

/// Opens an image and judges it; then crashes again, inside of the recovery and behind it.
fn judge(image: &Image, history: &History, seed: u64, depth: u32) -> u64 {
    let mut rng = Rng::new(seed);
    let what = || format!("{}\nthe latest operations:\n{}", image.what, tail(&image.disk));
    let faults = FaultFs::over(&image.disk);
    // No crash frees space, but then most of them would say no more than that.
    if rng.percent(70) {
        image.disk.set_capacity(None);
    }
    let nothing_new = Progress::from_now(&faults);
    if rng.percent(15) {
        nothing_new.add(&faults, fault(&mut rng));
    }
    // With nothing unsynced, so that what cuts the repair off does not change its source.
    let before = (depth > 0 && rng.percent(3)).then(|| image.disk.crash_clone(seed, 100));
    let again = watch(&image.disk, &faults, &nothing_new, rng.next(), (8, 2));
    let first = Db::open_with(PATH, options(&faults, &mut rng));
    // What failed in between may have dropped what the cache held.
    let dropped = image.dropped || nothing_new.dropped(&faults);
    let db = match first {
        Ok(db) => db,
        Err(error) => {
            let excused = is_expected(&error) || dropped;
            assert!(excused, "open: {error}\n{}", what());
            faults.clear();
            faults.forget_failed_syncs();
            image.disk.set_capacity(None);
            reopen(options(&faults, &mut rng), dropped)
                .unwrap_or_else(|error| panic!("open again: {error}\n{}", what()))
        }
    };
    image.disk.set_hook(None);
    faults.clear();
    image.disk.set_capacity(None);
    let low = if dropped { image.durable } else { image.low };
    let found = read(&db).unwrap_or_else(|error| panic!("read: {error}\n{}", what()));
    if let Err(wrong) = history.locate(&found, low, image.high) {
        panic!("{wrong}\n{}", what());
    }
    let report = db.verify().unwrap_or_else(|error| panic!("verify: {error}\n{}", what()));
    assert!(report.problems.is_empty(), "{:?}\n{}", report.problems, what());
    if let Some(checkpoint) = image.checkpoint.as_ref().filter(|_| rng.percent(50)) {
        check_checkpoint(image, checkpoint, &mut rng);
    }
    let mut points = 1;
    if let Some(before) = before.filter(|_| !dropped) {
        points += repair(&before, &mut rng);
    }
    if depth == 0 {
        return points;
    }
    for mut second in std::mem::take(&mut *again.lock().unwrap()) {
        // A kill and then a power cut lose what was never synced, as long as open has not returned.
        let dropped = second.dropped || image.dropped;
        second.low = if second.killed && !dropped { image.low } else { image.durable };
        second.durable = image.durable;
        second.high = image.high;
        second.dropped = dropped;
        second.what = format!("{}, in the recovery from: {}", second.what, image.what);
        points += judge(&second, history, rng.next(), depth - 1);
    }
    points + use_after(db, faults, &image.disk, found, rng.next())
}

/// Goes on with what a crash left (R7), and crashes once more.
fn use_after(db: Db, faults: FaultFs, disk: &CrashFs, found: World, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let progress = Progress::from_now(&faults);
    let images = watch(disk, &faults, &progress, rng.next(), (12, 2));
    let mut life = Life {
        faults,
        disk: disk.clone(),
        progress,
        history: History { base: found.clone(), steps: Vec::new() },
        world: found,
        serial: 900_000,
        reached: Reached::default(),
        cache: Arc::default(),
        rng,
    };
    let steps = 5 + life.rng.below(20);
    let alive = (0..steps).all(|_| life.go(&db).is_ok());
    if alive && life.rng.percent(50) {
        let _ = life.step(Change::Nothing, || db.close().map(|()| true));
    }
    disk.set_hook(None);
    drop(db);
    let images = std::mem::take(&mut *images.lock().unwrap());
    images.iter().map(|image| judge(image, &life.history, life.rng.next(), 0)).sum()
}

/// A checkpoint that returned is whole; of another, whatever opens is.
fn check_checkpoint(image: &Image, checkpoint: &Checkpoint, rng: &mut Rng) {
    let mut options = options(&FaultFs::over(&image.disk), rng);
    options.create_if_missing = false;
    let path = &checkpoint.path;
    match Db::open_with(path, options) {
        Ok(db) => {
            let found = read(&db).unwrap_or_else(|error| panic!("{path}: {error}; {}", image.what));
            let wrong = difference(&found, &checkpoint.world);
            assert!(found == checkpoint.world, "{path}: {wrong}; {}", image.what);
        }
        Err(error) => {
            let kind = error.kind();
            let partly = matches!(kind, ErrorKind::Missing | ErrorKind::Corruption);
            assert!(partly && !checkpoint.returned, "{path}: {error}; {}", image.what);
        }
    }
}

/// Saves what a crash left into another directory, and is cut off at some steps of that: what is
/// there then opens as a whole or not at all, and saving begins anew.
fn repair(disk: &CrashFs, rng: &mut Rng) -> u64 {
    const TO: &str = "/saved";
    disk.set_capacity(None);
    let options = |disk: &CrashFs, rng: &mut Rng| {
        let mut options = options(&FaultFs::over(disk), rng);
        options.create_if_missing = false;
        options
    };
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (taken, source, dice) = (cuts.clone(), disk.clone(), Mutex::new(Rng::new(rng.next())));
    disk.set_hook(Some(Arc::new(move |operation, what| {
        let mut dice = dice.lock().unwrap();
        if dice.below(8) != 0 || taken.lock().unwrap().len() >= 6 {
            return;
        }
        let killed = dice.percent(50);
        let percent = [0, 50, 100][dice.below(3) as usize];
        let cut = if killed { source.kill_clone() } else { source.crash_clone(operation, percent) };
        taken.lock().unwrap().push((cut, format!("cut off at {what}, killed {killed}")));
    })));
    salvage(PATH, TO, &options(disk, rng)).unwrap_or_else(|error| panic!("repair: {error}"));
    disk.set_hook(None);
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    let points = cuts.len() as u64;
    // It may be more than an open shows: what stands behind the end of the log is saved, too.
    let db = Db::open_with(TO, options(disk, rng)).unwrap_or_else(|error| panic!("saved: {error}"));
    let saved = read_root(&db).unwrap_or_else(|error| panic!("saved: {error}"));
    drop(db);
    for (cut, what) in cuts {
        let opened = match Db::open_with(TO, options(&cut, rng)) {
            Ok(db) => read_root(&db).ok(),
            Err(_) => {
                let again = salvage(PATH, TO, &options(&cut, rng));
                again.unwrap_or_else(|error| panic!("repair, {what}, again: {error}"));
                let db =
                    Db::open_with(TO, options(&cut, rng)).unwrap_or_else(|e| panic!("{what}: {e}"));
                read_root(&db).ok()
            }
        };
        assert!(opened.as_ref() == Some(&saved), "repair, {what}: something else was saved");
    }
    points
}

/// One disk, several lives on it, and what crashes would have left of them.
fn workload(seed: u64) -> (u64, Reached) {
    let mut rng = Rng::new(seed);
    let disk = CrashFs::new();
    disk.set_tear([Tear::Never, Tear::Sectors, Tear::Bytes][rng.below(3) as usize]);
    let every = 5 + rng.below(60);
    disk.set_write_back(rng.next(), rng.percent(60).then_some(every));
    if rng.percent(50) {
        disk.set_mapped_chunk(1 + rng.below(64));
    }
    let faults = FaultFs::over(&disk);
    let db = Db::open_with(PATH, options(&faults, &mut rng)).unwrap();
    db.keyspace(SPACES[1]).unwrap();
    db.sync().unwrap();
    let world = read(&db).unwrap();
    let mut life = Life {
        faults,
        disk: disk.clone(),
        progress: Arc::default(),
        history: History { base: world.clone(), steps: Vec::new() },
        world,
        serial: 0,
        reached: Reached::default(),
        cache: Arc::default(),
        rng,
    };
    let (mut points, mut db) = (0, Some(db));
    for _ in 0..3 {
        let every = 20 + life.rng.below(150);
        let seed = life.rng.next();
        let images = watch(&disk, &life.faults, &life.progress, seed, (every, 10));
        let steps = 40 + life.rng.below(160);
        let present = db.take().unwrap_or_else(|| unreachable!("each life opens the next one"));
        let alive = (0..steps).all(|_| life.go(&present).is_ok());
        if alive && life.rng.percent(60) {
            let _ = life.step(Change::Nothing, || present.close().map(|()| true));
        }
        drop(present);
        let broken = life.faults.violations();
        let broken = broken.iter().find(|line| !line.contains("superblock"));
        assert_eq!(broken, None, "a file was synced again after a failed sync");
        // The images that are taken during this open belong to the life before.
        let next = life.open();
        disk.set_hook(None);
        life.fair_weather();
        let found = read(&next).unwrap_or_else(|error| panic!("read: {error}"));
        life.read_again(&next, &found);
        let end = life.history.steps.len();
        let floor = &life.progress;
        let dropped = floor.dropped(&life.faults);
        let low = if dropped { &floor.durable } else { &floor.ended }.load(Ordering::SeqCst);
        life.history.locate(&found, low, end).unwrap_or_else(|wrong| panic!("reopened: {wrong}"));
        for image in std::mem::take(&mut *images.lock().unwrap()) {
            let seed = life.rng.next();
            let judged = || judge(&image, &life.history, seed, 1);
            points += catch_unwind(AssertUnwindSafe(judged)).unwrap_or_else(|panic| {
                eprintln!("what had failed until then: {:?}", life.faults.fired());
                resume_unwind(panic)
            });
        }
        db = Some(next);
        life.progress = Progress::from_now(&life.faults);
        life.history = History { base: found.clone(), steps: Vec::new() };
        life.world = found;
    }
    (points, life.reached)
}

#[test]
fn faults_and_crashes_together_leave_a_prefix() {
    let _alone = super::alone();
    let wanted = number("ESKER_CRASH_POINTS").unwrap_or(800);
    let reached = Mutex::new(Reached::default());
    campaign("faults and crashes", 1, wanted, |seed| {
        let (points, came_to) = workload(seed);
        reached.lock().unwrap().add(came_to);
        points
    });
    let reached = reached.into_inner().unwrap();
    eprintln!("{reached:?}");
    if number("ESKER_SEED").is_none() {
        let Reached { ingestions, pieces, without_trace, refused, .. } = reached;
        assert!(ingestions > 0 && pieces > 0 && without_trace > 0 && refused > 0, "{reached:?}");
        assert!(reached.blocks_again > 0 && reached.indexes_again > 0, "{reached:?}");
    }
}
