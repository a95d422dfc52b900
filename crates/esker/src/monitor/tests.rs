#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::*;
use crate::directory::{EVENTS_BEFORE_NAME, EVENTS_NAME};
use crate::fs;

fn event(sequence: u64, text: &str) -> Event {
    let (path, duration) = (text.to_owned(), Duration::ZERO);
    Event { sequence, time: 1, kind: EventKind::CheckpointMade { path, duration } }
}

fn lines(path: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn both_files_together_have_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let (now, before) = (dir.path().join(EVENTS_NAME), dir.path().join(EVENTS_BEFORE_NAME));
    let mut file = EventsFile::new(fs::os(), dir.path());
    let mut rotated = false;
    for sequence in 0..4000 {
        file.append(&[event(sequence, &"x".repeat(900))], true);
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        assert!(bytes(&now) <= EVENTS_BYTES_MAX && bytes(&before) <= EVENTS_BYTES_MAX);
        rotated |= before.exists();
    }
    assert!(rotated && file.take_lost().is_none());
    let all: Vec<String> = lines(&before).into_iter().chain(lines(&now)).collect();
    assert_eq!(all.last().unwrap(), &event(3999, &"x".repeat(900)).to_json());
    let first: serde_json::Value = serde_json::from_str(&all[0]).unwrap();
    assert_eq!(4000 - first["seq"].as_u64().unwrap(), all.len() as u64, "none is missing");
}

#[test]
fn a_torn_line_is_ended_and_spoils_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(EVENTS_NAME);
    std::fs::write(&path, "{\"time\":1,\"se").unwrap();
    for sequence in 1..3 {
        // Each is a life of its own.
        EventsFile::new(fs::os(), dir.path()).append(&[event(sequence, "")], true);
    }
    let expected = ["{\"time\":1,\"se".to_owned(), event(1, "").to_json(), event(2, "").to_json()];
    assert_eq!(lines(&path), expected);
}

#[test]
fn what_cannot_be_written_waits_and_is_then_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(EVENTS_NAME);
    let mut file = EventsFile::new(fs::os(), dir.path());
    for sequence in 0..200 {
        file.append(&[event(sequence, &"x".repeat(900))], false);
    }
    assert!(!path.exists(), "nothing is written while there is no space");
    assert_eq!(file.take_lost(), None, "the loss is told when there is space again");
    file.append(&[event(200, "")], true);
    let lost = file.take_lost().unwrap();
    assert_eq!(lost + lines(&path).len() as u64, 201);
    assert_eq!(lines(&path)[0], event(0, &"x".repeat(900)).to_json(), "the newest are dropped");
    assert_eq!(file.take_lost(), None);
}

#[test]
fn a_longer_file_than_this_engine_writes_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(EVENTS_NAME);
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    EventsFile::new(fs::os(), dir.path()).append(&[event(1, "")], true);
    assert_eq!(lines(&path), [event(1, "").to_json()]);
    assert!(!dir.path().join(EVENTS_BEFORE_NAME).exists());
}

#[test]
fn a_taken_name_of_the_older_file_does_not_break_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(EVENTS_BEFORE_NAME)).unwrap();
    let mut file = EventsFile::new(fs::os(), dir.path());
    for sequence in 0..3000 {
        file.append(&[event(sequence, &"x".repeat(900))], true);
    }
    let path = dir.path().join(EVENTS_NAME);
    assert!(std::fs::metadata(&path).unwrap().len() <= EVENTS_BYTES_MAX);
    assert_eq!(lines(&path).last().unwrap(), &event(2999, &"x".repeat(900)).to_json());
    assert_eq!(file.take_lost(), None);
}

#[test]
fn a_hard_link_elsewhere_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join(EVENTS_NAME), dir.path().join("copy"));
    std::fs::write(&path, "of the copy\n").unwrap();
    std::fs::hard_link(&path, &copy).unwrap();
    EventsFile::new(fs::os(), dir.path()).append(&[event(1, "")], true);
    assert_eq!(lines(&copy), ["of the copy"]);
    assert_eq!(lines(&path), [event(1, "").to_json()]);
}

#[test]
fn failures_and_the_end_of_writing_are_told() {
    use crate::error::Error;
    let told: Arc<Mutex<Vec<Event>>> = Arc::default();
    let keep = told.clone();
    let mut options = Options::default();
    options.monitor = Some(false);
    options.on_event = Some(Arc::new(move |event: &Event| keep.lock().push(event.clone())));
    let monitor = Monitor::new(&options, false);
    let latch = monitor.latch();
    let damage = Error::corruption(Path::new("data/1.run"), 7, "block", "it is torn");
    monitor.failed("flush", &damage);
    for (before, now) in [(false, false), (false, true), (true, true), (true, false)] {
        monitor.tell_space(5, (before, now));
    }
    latch.fail(Error::Closed);
    latch.fail(damage);
    drop(monitor);
    let kinds: Vec<EventKind> = told.lock().iter().map(|event| event.kind.clone()).collect();
    let [found, failed, full, again, ended] = &kinds[..] else { panic!("{kinds:?}") };
    assert!(matches!(found, EventKind::CorruptionFound { offset: 7, section: "block", .. }));
    assert!(matches!(
        failed,
        EventKind::BackgroundFailed { work: "flush", error: "corruption", .. }
    ));
    assert_eq!(*full, EventKind::DeviceFull { free: 5 });
    assert_eq!(*again, EventKind::SpaceAgain { free: 5 });
    assert!(matches!(ended, EventKind::WritingEnded { error: "closed", .. }), "the first counts");
}
