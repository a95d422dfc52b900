//! What the process tests share: running the program, talking to its shell, random numbers that
//! can be replayed.

pub use esker_testkit::files::copy;

use esker_testkit::Rng;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// The program under test.
pub fn esker() -> Command {
    Command::new(env!("CARGO_BIN_EXE_esker"))
}

/// Runs the program to its end, with nothing on its input.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    esker().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs the program, which must succeed in silence, and returns what it printed.
pub fn succeed<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    assert_eq!(stderr, "");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program, which must succeed and say one thing on standard error that contains `named`;
/// returns what it printed.
#[track_caller]
pub fn succeed_with<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    named: &str,
) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    assert!(stderr.starts_with("esker: ") && stderr.lines().count() == 1, "{stderr:?}");
    assert!(stderr.contains(named), "{named:?} is not in {stderr:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program, which must fail with `code`, one line on standard error that contains
/// `named`, and nothing on standard output.
#[track_caller]
pub fn fail<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    code: i32,
    named: &str,
) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(stderr.starts_with("esker: ") && stderr.ends_with('\n'), "{stderr:?}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(named), "{named:?} is not in {stderr:?}");
    stderr
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A shell on a pipe.
pub struct Shell {
    pub child: Child,
    pub input: ChildStdin,
    pub answers: BufReader<ChildStdout>,
    /// Whether a line was answered with `err`, which the exit code tells.
    failed: bool,
}

impl Shell {
    /// Starts `esker shell DIR` with more flags.
    pub fn start(dir: &Path, flags: &[&str]) -> Self {
        let mut command = esker();
        command.arg("shell").arg(dir).args(flags);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, answers, failed: false }
    }

    /// Sends one line and reads its answer: the lines of data and the closing line.
    pub fn ask(&mut self, line: &str) -> (Vec<String>, String) {
        writeln!(self.input, "{line}").unwrap();
        self.input.flush().unwrap();
        let mut data = Vec::new();
        loop {
            let mut answer = String::new();
            let read = self.answers.read_line(&mut answer).unwrap();
            assert!(read > 0 && answer.ends_with('\n'), "{line:?} got no closing line: {data:?}");
            answer.pop();
            if matches!(answer.split(' ').next(), Some("ok" | "err")) {
                self.failed |= answer.starts_with("err");
                return (data, answer);
            }
            data.push(answer);
        }
    }

    /// Sends one line that must be answered with exactly this.
    #[track_caller]
    pub fn expect(&mut self, line: &str, answer: &[&str]) {
        let (mut lines, closing) = self.ask(line);
        lines.push(closing);
        assert_eq!(lines, answer, "{line}");
    }

    /// Sends one line that must be refused with this kind.
    #[track_caller]
    pub fn refuse(&mut self, line: &str, kind: &str) {
        let (data, closing) = self.ask(line);
        assert!(closing.starts_with(&format!("err {kind} ")), "{line}: {data:?} {closing}");
    }

    /// Closes the database and waits for the end.
    pub fn close(mut self) {
        self.expect("close", &["ok"]);
        assert_eq!(self.child.wait().unwrap().code(), Some(i32::from(self.failed)));
    }
}

/// Everything below a directory: relative path, and the content of files.
pub fn tree(dir: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                found.push((name, None));
                pending.push(path);
            } else if !meta.is_file() {
                found.push((name, None));
            } else {
                found.push((name, Some(std::fs::read(&path).unwrap())));
            }
        }
    }
    found.sort();
    found
}

/// Random numbers from `ESKER_SEED`, or from the clock; prints the seed.
pub fn random() -> Rng {
    let seed = match std::env::var("ESKER_SEED") {
        Ok(text) => text.parse().expect("ESKER_SEED is a number"),
        Err(_) => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64),
    };
    println!("replay with ESKER_SEED={seed}");
    Rng::new(seed)
}
