//! What a person on a terminal sees, and a pipe does not.

use crate::support::{Shell, esker, run, succeed, text};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program on a terminal, and what it has shown.
struct Terminal {
    child: Child,
    screen: File,
    shown: Vec<u8>,
}

impl Terminal {
    /// Starts a command whose standard error is a terminal, and with `all` the other two as well.
    fn start(mut command: Command, all: bool) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        command.env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(end());
        if all {
            command.stdin(end()).stdout(end());
        }
        let child = command.spawn().unwrap();
        Self { child, screen: File::from(pty.master), shown: Vec::new() }
    }

    /// `esker shell DIR` on a terminal, whose history is kept beside the database.
    fn shell(db: &Path, flags: &[&str]) -> Self {
        let mut command = esker();
        command.arg("shell").arg(db).args(flags).env("XDG_STATE_HOME", db.with_extension("state"));
        Self::start(command, true)
    }

    /// Reads more of what is shown; false at the end.
    fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // Linux says so that no program is left.
        let read = self.screen.read(&mut bytes).unwrap_or(0);
        self.shown.extend_from_slice(&bytes[..read]);
        read > 0
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// Waits until this was shown; returns what was, from the last call on up to it.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        let wanted = text.as_bytes();
        let mut searched = 0;
        loop {
            let mut parts = self.shown[searched..].windows(wanted.len());
            if let Some(at) = parts.position(|part| part == wanted) {
                let end = searched + at + wanted.len();
                let shown: Vec<u8> = self.shown.drain(..end).collect();
                return String::from_utf8_lossy(&shown).into_owned();
            }
            searched = self.shown.len().saturating_sub(wanted.len());
            assert!(self.more(), "{text:?} was not shown: {:?}", self.text());
        }
    }

    fn send(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads to the end; returns the exit code, what was shown, and what went to a pipe.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut piped = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut piped).unwrap();
        }
        let code = self.child.wait().unwrap().code();
        while self.more() {}
        (code, self.text(), piped)
    }
}

#[test]
fn a_terminal_is_told_what_was_done_and_a_pipe_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let [path, copy, saved] = ["db", "copy", "saved"].map(|name| dir.path().join(name));
    let [db, copy, saved] = [&path, &copy, &saved].map(|path| text(path));
    for (arguments, told) in [
        (vec!["put", db, "k", "v"], vec!["set k to 1 bytes"]),
        (vec!["del", db, "k"], vec!["removed 1 keys"]),
        (vec!["delrange", db, "--all"], vec!["removed the keys of the range"]),
        (vec!["branch", db, "--make", "a b"], vec!["made the branch \"a b\""]),
        (vec!["branch", db, "--snapshot", "s"], vec!["made the named snapshot s"]),
        (vec!["branch", db, "--drop", "s"], vec!["dropped the snapshot s"]),
        (vec!["compact", db], vec!["compacting", "compacted: "]),
        (vec!["checkpoint", db, "--to", copy], vec!["copying", " files, ", "made a copy at "]),
        (vec!["verify", db], vec!["verifying", " run segments"]),
        (vec!["repair", db, "--to", saved], vec!["repairing", " files, "]),
        (vec!["repair", db, "--in-place"], vec!["repairing"]),
    ] {
        let mut command = esker();
        command.args(&arguments);
        let (code, shown, piped) = Terminal::start(command, false).end();
        assert_eq!(code, Some(0), "{arguments:?}: {shown}");
        for told in told {
            assert!(shown.contains(told), "{arguments:?}: {told:?} is not in {shown:?}");
        }
        let answers = matches!(arguments[0], "verify" | "repair");
        assert_eq!(!piped.is_empty(), answers, "{arguments:?}: {piped}");
        // JSON is an answer: nothing more has to be said.
        if arguments[0] == "put" {
            let mut command = esker();
            command.args(&arguments).arg("--json");
            assert_eq!(Terminal::start(command, false).end().1, "");
        }
    }
    for arguments in [&["put", db, "k", "v"][..], &["compact", db], &["verify", db]] {
        assert_eq!(run(arguments).stderr, b"", "{arguments:?}");
    }
}

#[test]
fn a_shell_on_a_terminal_completes_and_cuts_scans() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut shell = Shell::start(&db, &[]);
    shell.expect("use \"two words\"", &["ok"]);
    for number in 0..101 {
        shell.expect(&format!("put key{number:03} v"), &["ok"]);
    }
    shell.close();
    succeed(["branch", text(&db), "--make", "trial"]);

    let mut terminal = Terminal::shell(&db, &["--branch", "trial"]);
    terminal.until("trial/default> ");
    // The name of a command, and that of a keyspace.
    terminal.send("us\t tw\t\r");
    let shown = terminal.until("\"two words\"> ");
    assert!(shown.contains("use \"two words\"") && shown.contains("ok\r\n"), "{shown:?}");
    terminal.send("scan\r");
    let shown = terminal.until("there is more");
    assert!(shown.contains("key099 v") && !shown.contains("key100"), "{shown:?}");
    terminal.until("> ");
    terminal.send("scan - - -\r");
    assert!(terminal.until("ok 101\r\n").contains("key100 v"));
    terminal.until("> ");
    // What fails is seen, and does not matter at the end.
    terminal.send("fly\r");
    terminal.until("err usage");
    terminal.until("> ");
    terminal.send("quit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn ctrl_c_ends_a_scan_and_not_the_shell() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut shell = Shell::start(&db, &[]);
    const ENTRIES: usize = 5_000;
    for number in 0..ENTRIES {
        shell.expect(&format!("put key{number:04} #10000"), &["ok"]);
    }
    shell.close();

    let mut terminal = Terminal::shell(&db, &[]);
    terminal.until("default> ");
    terminal.send("scan - - -\r");
    terminal.until("key0001 0x");
    // All of it is a hundred megabytes: it is not shown by the time that the signal has come.
    kill(Pid::from_raw(terminal.child.id() as i32), Signal::SIGINT).unwrap();
    let shown = terminal.until("was interrupted");
    assert!(!shown.contains(&format!("key{:04}", ENTRIES - 1)), "all was shown");
    terminal.until("> ");
    terminal.send("put after yes\r");
    terminal.until("ok\r\n");
    terminal.until("> ");
    terminal.send("exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(succeed(["get", text(&db), "after"]), "yes\n");
}

/// What is pressed before the command has begun, or when it has ended, is not for it: then it is tried again.
#[test]
fn ctrl_c_ends_a_compaction_and_not_the_shell() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut terminal = Terminal::shell(&db, &[]);
    terminal.until("default> ");
    let mut command = |keys: &str| {
        terminal.send(keys);
        terminal.send("\r");
        terminal.until("\r\n");
        if keys == "compact" {
            kill(Pid::from_raw(terminal.child.id() as i32), Signal::SIGINT).unwrap();
        }
        terminal.until("> ")
    };
    let mut ended = false;
    for round in 0..1000 {
        assert!(command(&format!("put key{round} #1000")).contains("ok\r\n"));
        let shown = command("compact");
        ended = shown.contains("err interrupted the compaction was interrupted");
        assert!(ended || shown.contains("ok\r\n"), "{shown:?}");
        if ended {
            break;
        }
    }
    assert!(ended, "no compaction was ended");
    assert!(command("put after yes").contains("ok\r\n"));
    terminal.send("exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(succeed(["get", text(&db), "after"]), "yes\n");
    assert!(succeed(["verify", text(&db)]).contains("files "));
}
