use super::*;

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
    let step = take(&mut session, b"scan - - -", &mut out, &interrupt).unwrap();
    assert_eq!(step, Step::Continue);
    let shown = String::from_utf8(std::mem::take(&mut out.shown)).unwrap();
    assert!(shown.lines().count() < 10 && shown.ends_with("was interrupted\n"), "{shown}");
    take(&mut session, b"get k7", &mut out, &interrupt).unwrap();
    assert!(out.shown.starts_with(b"v\n"), "the next command is not");
    session.close().unwrap();
}
