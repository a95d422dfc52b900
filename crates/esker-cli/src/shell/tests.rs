use super::*;
use esker::internals::sync::Point;
use esker_testkit::barriers::Barriers;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes output until it was written to twice, and then has the user press Ctrl-C.
struct Terminal {
    shown: Vec<u8>,
    interrupt: Interrupt,
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.shown.extend_from_slice(bytes);
        if self.shown.iter().filter(|byte| **byte == b'\n').count() == 2 {
            self.interrupt.ask();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn ctrl_c_ends_what_a_command_prints_and_not_the_shell() {
    let dir = tempfile::tempdir().unwrap();
    let db = esker::Db::open(dir.path().join("db")).unwrap();
    for number in 0..1000 {
        db.insert(format!("k{number}"), "v").unwrap();
    }
    let mut session = Session::new(db);
    let interrupt = Interrupt::default();
    let mut out = Terminal { shown: Vec::new(), interrupt: interrupt.clone() };
    session.end_when(interrupt);
    let step = session.execute(b"scan - - -", &mut out).unwrap();
    assert_eq!(step, Step::Continue);
    let shown = String::from_utf8(std::mem::take(&mut out.shown)).unwrap();
    assert!(shown.lines().count() < 10 && shown.ends_with("is not shown\n"), "{shown}");
    session.execute(b"get k7", &mut out).unwrap();
    assert!(out.shown.starts_with(b"v\n"), "the next command is not");
    session.close().unwrap();
}

/// A session on a database whose only worker has begun nothing when Ctrl-C is pressed.
fn interrupted_at(point: Point, line: &[u8]) -> (String, esker::Db, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = esker::Options::default();
    options.workers = Some(1);
    let (db, barriers) = Barriers::open(dir.path().join("db"), options).unwrap();
    for round in ["old", "new"] {
        for number in 0..100 {
            db.insert(format!("k{number}"), round).unwrap();
        }
        if point != Point::FlushBegins {
            db.flush().unwrap();
        }
    }
    let mut session = Session::new(db.clone());
    let interrupt = Interrupt::default();
    session.end_when(interrupt.clone());
    barriers.close(&[point]);
    barriers.at(point, move |_| {
        interrupt.ask();
    });
    let mut out = Vec::new();
    assert_eq!(session.execute(line, &mut out).unwrap(), Step::Continue);
    assert_eq!(session.failed(), 1);
    barriers.let_go(&[point]);
    (String::from_utf8(out).unwrap(), db, dir)
}

#[test]
fn ctrl_c_ends_the_wait_for_a_compaction_or_a_flush() {
    for (point, line, said) in [
        (Point::CompactionBegins, "compact", "the compaction was interrupted: what it finished"),
        (
            Point::CompactionBegins,
            "compact - z",
            "the compaction was interrupted: what it finished",
        ),
        (Point::FlushBegins, "compact", "the compaction was interrupted: what it finished stays"),
        (Point::FlushBegins, "flush", "the wait was interrupted: what of the flush had begun goes"),
    ] {
        let (shown, db, _dir) = interrupted_at(point, line.as_bytes());
        assert!(shown.starts_with(&format!("err interrupted {said}")), "{line}: {shown}");
        assert!(shown.ends_with('\n') && shown.lines().count() == 1, "{line}: {shown}");
        // The next one is another command, and nothing is lost.
        let mut session = Session::new(db);
        let mut out = Vec::new();
        for line in ["compact", "get k7", "close"] {
            session.execute(line.as_bytes(), &mut out).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), "ok\nnew\nok 1\nok\n");
    }
}

#[test]
fn ctrl_c_ends_a_check() {
    let dir = tempfile::tempdir().unwrap();
    let db = esker::Db::open(dir.path().join("db")).unwrap();
    for number in 0..10 {
        db.insert(format!("k{number}"), "v").unwrap();
        db.flush().unwrap();
    }
    let mut session = Session::new(db);
    let interrupt = Interrupt::default();
    session.end_when(interrupt.clone());
    let (over, mut out) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                interrupt.ask();
            }
        });
        // One may be over before somebody presses it.
        while !String::from_utf8_lossy(&out).contains("err") {
            session.execute(b"verify", &mut out).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    let shown = String::from_utf8(out).unwrap();
    let said = "err interrupted the check was interrupted: 0 problems in ";
    assert!(shown.lines().last().unwrap().starts_with(said), "{shown}");
    session.close().unwrap();
}
