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
    let files = Files::new(crate::fs::os(), dir.path().to_owned(), work.clone());
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
    for name in ["42.run", "0000000042", "000000004x.run", "+000000042.run", ".run", "x.run"] {
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
    let before = place.files.allocated_bytes();
    Reclaim::slice(&*place.files, 1, 0, 512 << 10);
    place.files.collect();
    assert!(place.files.allocated_bytes() <= before - (256 << 10));
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
    place.files.remove_orphans(&[3].into(), &|_| true).unwrap();
    assert!(live.exists() && !orphan.exists() && foreign.exists());
    assert_eq!(place.files.peek_next_id(), 10, "the number of an orphan is not used again");
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
    place.files.remove_orphans(&[3].into(), &|_| true).unwrap();
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
