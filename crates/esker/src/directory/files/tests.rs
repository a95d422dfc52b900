use super::*;
use crate::fs::OpenMode;

struct Place {
    dir: tempfile::TempDir,
    files: Arc<Files>,
    work: Arc<Signal>,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let work = Arc::new(Signal::new());
    let files = Files::new(
        crate::fs::os(),
        dir.path().to_owned(),
        work.clone(),
        Arc::new(EventBus::new(false)),
    );
    Place { dir, files, work }
}

impl Place {
    fn make(&self, id: FileId) -> PathBuf {
        let path = self.dir.path().join(crate::run::file_name(id));
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        path
    }
}

#[test]
fn names_of_run_files_are_read_strictly() {
    assert_eq!(parse_run_name("0000000042.run"), Some(42));
    assert_eq!(parse_run_name(&crate::run::file_name(u64::MAX)), Some(u64::MAX));
    for name in [
        "42.run",
        "0000000042",
        "000000004x.run",
        "+000000042.run",
        ".run",
        "x.run",
        "00000000042.run",
    ] {
        assert_eq!(parse_run_name(name), None, "{name}");
    }
    assert_eq!(parse_run_name("99999999999999999999999.run"), None);
}

#[test]
fn numbers_only_grow() {
    let place = place();
    assert_eq!((place.files.next_id(), place.files.next_id()), (1, 2));
    place.files.raise_next_id(50);
    place.files.raise_next_id(20);
    assert_eq!((place.files.peek_next_id(), place.files.next_id()), (50, 50));
}

#[test]
fn a_file_goes_when_it_is_obsolete_and_nobody_holds_it() {
    let place = place();
    let path = place.make(1);
    let (one, two) = (place.files.run_file(1), place.files.run_file(1));
    drop(two);
    assert!(!place.files.has_garbage(), "it was not obsolete");
    let reader = one.clone();
    one.mark_obsolete();
    drop(one);
    assert!(!place.files.has_garbage(), "a reader still holds it");
    let seen = place.work.epoch();
    drop(reader);
    place.work.wait_past(seen);
    assert!(place.files.has_garbage() && path.exists(), "a worker does the system call");
    place.files.collect();
    assert!(!place.files.has_garbage() && !path.exists());
}

#[test]
fn a_dead_slice_is_punched_out_and_small_ones_are_left() {
    let place = place();
    let path = place.make(1);
    Reclaim::slice(&*place.files, 1, 0, PUNCH_BYTES_MIN - 1);
    assert!(!place.files.has_garbage());
    let before = place.files.allocated().0;
    Reclaim::slice(&*place.files, 1, 0, 512 << 10);
    place.files.collect();
    assert!(place.files.allocated().0 <= before - (256 << 10));
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!((bytes.len(), bytes[0], bytes[512 << 10]), (1 << 20, 0, 7));
}

#[test]
fn a_file_with_a_second_name_is_never_punched() {
    let place = place();
    let path = place.make(1);
    std::fs::hard_link(&path, place.dir.path().join("elsewhere")).unwrap();
    Reclaim::slice(&*place.files, 1, 0, 512 << 10);
    place.files.collect();
    assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
    assert!(place.files.is_clean() && place.files.has_postponed(), "nobody waits for it");
}

#[test]
fn what_a_checkpoint_kept_is_given_back_when_it_is_gone() {
    let place = place();
    let (path, other) = (place.make(1), place.dir.path().join("elsewhere"));
    std::fs::hard_link(&path, &other).unwrap();
    Reclaim::slice(&*place.files, 1, 0, 512 << 10);
    place.files.collect();
    let before = place.files.allocated().0;
    std::fs::remove_file(&other).unwrap();
    let seen = place.work.epoch();
    place.files.try_again(usize::MAX);
    place.work.wait_past(seen);
    place.files.collect();
    assert!(!place.files.has_postponed());
    assert!(place.files.allocated().0 <= before - (256 << 10));
}

#[test]
fn few_of_those_that_wait_are_tried_at_a_time() {
    let place = place();
    for id in 1..=3 * TRIED_AGAIN as u64 {
        let path = place.make(id);
        std::fs::hard_link(&path, path.with_extension("elsewhere")).unwrap();
        Reclaim::slice(&*place.files, id, 0, 512 << 10);
    }
    place.files.collect();
    place.files.try_again(TRIED_AGAIN);
    assert_eq!(place.files.garbage.lock().len(), TRIED_AGAIN);
    // A file that is removed as a whole takes its slices with it.
    place.files.garbage.lock().clear();
    (1..=3 * TRIED_AGAIN as u64).for_each(|id| Reclaim::file(&*place.files, id));
    place.files.collect();
    assert!(!place.files.has_postponed() && !place.files.has_garbage());
}

#[test]
fn gaps_between_live_slices_are_found() {
    let place = place();
    let least = PUNCH_BYTES_MIN;
    let at = |page: u64| page * least;
    // In no order; the first file has a gap at the front and one in the middle, the second file has
    // gaps that are too small.
    let live = [
        (1, at(6), at(1)),
        (2, HEADER_BYTES as u64, at(1)),
        (1, at(2), at(1)),
        (2, at(2), at(1)),
        (1, at(2), 8),
    ];
    place.files.note_gaps(live.into_iter());
    let found: Vec<_> = place.files.postponed.lock().iter().copied().collect();
    let header = HEADER_BYTES as u64;
    let front = Garbage::Slice { file: 1, offset: header, len: at(2) - header };
    assert_eq!(found, [front, Garbage::Slice { file: 1, offset: at(3), len: at(3) }]);
}

#[test]
fn slices_of_files_that_went_are_no_error() {
    let place = place();
    place.make(1);
    Reclaim::slice(&*place.files, 1, 0, 512 << 10);
    Reclaim::file(&*place.files, 1);
    place.files.collect();
    Reclaim::slice(&*place.files, 1, 0, 512 << 10);
    place.files.collect();
    assert!(!place.files.has_garbage());
}

#[test]
fn orphans_go_and_everything_else_stays() {
    let place = place();
    let (live, orphan) = (place.make(3), place.make(9));
    let foreign = place.dir.path().join("notes.txt");
    std::fs::write(&foreign, "mine").unwrap();
    place.files.remove_orphans(&[3].into(), &|_| true, None).unwrap();
    assert!(live.exists() && !orphan.exists() && foreign.exists());
    assert_eq!(place.files.peek_next_id(), 10, "the number of an orphan is not used again");
}

#[test]
fn orphans_of_a_torn_manifest_are_set_aside_under_a_name_that_says_so() {
    let place = place();
    let aside = |id: u64, manifest: u64| {
        let name = format!("{}{SET_ASIDE}{manifest:06}", crate::run::file_name(id));
        assert_eq!(set_aside_for(&name), Some(manifest));
        place.dir.path().join(name)
    };
    let (live, orphan) = (place.make(3), place.make(9));
    assert!(place.files.remove_orphans(&[3].into(), &|_| true, Some(7)).unwrap());
    assert!(live.exists() && !orphan.exists() && aside(9, 7).exists());
    assert!(place.files.remove_orphans(&[3].into(), &|_| true, Some(7)).unwrap());
    assert!(!place.files.remove_orphans(&[3].into(), &|_| true, Some(8)).unwrap());
    place.make(10);
    place.files.remove_orphans(&[3].into(), &|_| true, Some(7)).unwrap();
    assert!(aside(9, 7).exists() && aside(10, 7).exists());
    place.make(11);
    place.files.remove_orphans(&[3].into(), &|_| true, Some(8)).unwrap();
    assert!(!aside(9, 7).exists() && aside(11, 8).exists(), "they never become many");
    for name in ["0000000009.run.set-aside-7", "notes.set-aside-000007", "0000000009.run"] {
        assert_eq!(set_aside_for(name), None, "{name}");
    }
}

#[test]
fn one_object_stands_for_a_file_that_is_being_written() {
    let place = place();
    let one = place.files.output_file(4);
    assert!(Arc::ptr_eq(&one, &place.files.output_file(4)));
    assert!(!Arc::ptr_eq(&one, &place.files.output_file(5)));
    drop(one);
    place.make(4);
    let again = place.files.output_file(4);
    assert_eq!(again.id(), 4);
    assert!(crate::fs::os().open(again.path(), OpenMode::Read).is_ok());
}

#[test]
fn nothing_goes_while_a_live_file_is_missing() {
    let place = place();
    let orphan = place.make(9);
    place.files.remove_orphans(&[3].into(), &|_| true, None).unwrap();
    assert!(orphan.exists(), "it may be needed for a repair");
}

#[test]
fn nothing_is_given_back_while_files_are_linked() {
    let place = place();
    let path = place.make(1);
    Reclaim::file(&*place.files, 1);
    place.files.hold_still(|| {
        assert!(!place.files.collect() && path.exists());
        assert!(!place.files.is_clean());
    });
    assert!(place.files.collect() && !path.exists());
}
