//! A server of MariaDB that belongs to one run.
//!
//! Its data, temporary tables, socket and process identifier are in the directory of the database. A
//! shell starts it and waits on a pipe from this process. When the pipe closes, because the run closed
//! it or because the run's process ended in whatever way, the shell kills the process group of the
//! server. So no server outlives its run, and Ctrl-C reaches only the run.
//!
//! The server's error log is a pipe too: it says when the server is ready, without polling. The end of
//! the log is the end of the server.

use crate::{EngineSpec, Error, Result};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Starts what its arguments say, tells its number, and waits: for a line, after which it waits for
/// the end and passes on how that was, or for the end of its input, after which it ends the program,
/// and then whatever that has left in their group.
const GUARD: &str = r#""$@" </dev/null >&2 &
program=$!
echo "$program"
exec 2>/dev/null
if read -r line; then
    wait "$program"
    exit $?
fi
kill -9 "$program"
wait "$program"
kill -9 0"#;
/// The data directory and that of temporary tables.
const DATA: &str = "data";
const TMP: &str = "tmp";
/// The data directory while the server's own tables are made.
const UNFINISHED: &str = "unfinished";
/// The server's socket and its number, in the data directory, which is where it works.
const SOCKET: &str = "mariadb.sock";
const PID_FILE: &str = "mariadb.pid";
/// So many bytes the path of a socket may have everywhere.
const SOCKET_PATH: usize = 100;
/// What the server says when it answers.
const READY: &str = "ready for connections";
/// Lines of the log that an error shows: the first that tell of an error, and the last.
const ERRORS: usize = 3;
const TAIL: usize = 12;
/// How long an end may come after the connection broke.
const LATE: Duration = Duration::from_secs(10);
/// Where servers lie beside the search path.
const SYSTEM_DIRS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A program in a process group that ends with this value.
#[derive(Debug)]
pub struct Guarded {
    shell: Child,
    /// Held until the program may end.
    input: Option<ChildStdin>,
    pid: u32,
    log: Arc<Log>,
    reader: Option<JoinHandle<()>>,
}

/// What the program wrote.
#[derive(Debug, Default)]
struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The first lines that tell of an error: what follows them may be long and say little.
    errors: Vec<String>,
    tail: VecDeque<String>,
    ready: bool,
    ended: bool,
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all that comes.
    fn read(&self, from: impl Read) {
        let mut lines = BufReader::new(from);
        let mut bytes = Vec::new();
        while matches!(lines.read_until(b'\n', &mut bytes), Ok(length) if length > 0) {
            let line = String::from_utf8_lossy(&bytes).trim().to_owned();
            bytes.clear();
            let mut state = self.state();
            state.ready |= line.contains(READY);
            if line.contains("ERROR") && state.errors.len() < ERRORS {
                state.errors.push(line.clone());
            }
            if state.tail.len() == TAIL {
                state.tail.pop_front();
            }
            state.tail.push_back(line);
            self.changed.notify_all();
        }
        self.state().ended = true;
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state();
        let waited = self.changed.wait_while(state, |state| !until(state) && !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guarded {
    /// Starts a program.
    pub fn start(program: &Path, arguments: &[OsString]) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io("start", program, &error);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD, "sh"]).arg(program).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut shell = command.spawn().map_err(failed)?;
        let input = shell.stdin.take();
        let (output, errors) = (shell.stdout.take(), shell.stderr.take());
        let log = Arc::new(Log::default());
        let reader = errors.map(|errors| {
            let log = log.clone();
            std::thread::spawn(move || log.read(errors))
        });
        // From here on the shell is ended with the value.
        let mut guarded = Self { shell, input, pid: 0, log, reader };
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        guarded.pid = line.trim().parse().map_err(|_| {
            Error::Failed(format!("cannot start {}: the shell told no number", program.display()))
        })?;
        Ok(guarded)
    }

    /// The number of the program's process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it says that it is ready; fails if it ends before.
    pub fn wait_ready(&self) -> Result<(), Ended> {
        let state = self.log.wait(|state| state.ready);
        if state.ready { Ok(()) } else { Err(Ended::of(&state, None)) }
    }

    /// How it ended, if it does so now.
    pub fn ended(&self) -> Option<Ended> {
        let state = self.log.state();
        let waited = self.log.changed.wait_timeout_while(state, LATE, |state| !state.ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.ended.then(|| Ended::of(&state, None))
    }

    /// Waits until it ends by itself; fails if it ends badly.
    pub fn wait(mut self) -> Result<(), Ended> {
        drop(self.log.wait(|_| false));
        // A shell that is gone has nothing to wait for.
        let told = self.input.take().map(|mut input| input.write_all(b"wait\n").map(|()| input));
        let status = self.shell.wait();
        drop(told);
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Ended::of(&self.log.state(), Some(status.to_string()))),
            Err(error) => Err(Ended::of(&self.log.state(), Some(error.to_string()))),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.input.take());
        // It was waited for already, or ends now.
        let _ = self.shell.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// The end of a program that was still needed.
#[derive(Debug)]
pub struct Ended {
    /// How, if that is known.
    status: Option<String>,
    /// The first lines that told of an error.
    pub errors: Vec<String>,
    /// The last lines of its log.
    pub tail: Vec<String>,
}

impl Ended {
    fn of(state: &State, status: Option<String>) -> Self {
        let tail = state.tail.iter().cloned().collect();
        Self { status, errors: state.errors.clone(), tail }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_deref().map_or(String::new(), |status| format!(" ({status})"));
        write!(f, "the server ended{status}")?;
        if !self.errors.is_empty() {
            write!(f, "; errors in its log: {}", self.errors.join(" | "))?;
        }
        write!(f, "; the end of its log: {}", self.tail.join(" | "))
    }
}

/// A program of MariaDB.
pub fn program(spec: &EngineSpec, name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(SYSTEM_DIRS.iter().map(PathBuf::from));
    let mut found = dirs.map(|dir| dir.join(name)).filter(|path| path.is_file());
    found.next().ok_or_else(|| spec.missing_program(name))
}

/// As which user it runs: a server does not run as root unless it is told to.
fn user() -> Option<OsString> {
    #[cfg(unix)]
    if nix::unistd::Uid::effective().is_root() {
        return Some("--user=root".into());
    }
    None
}

/// Makes the server's own tables in `dir`.
pub fn initialise(spec: &EngineSpec, dir: &Path) -> Result<()> {
    let program = program(spec, "mariadb-install-db")?;
    let (data, unfinished) = (dir.join(DATA), dir.join(UNFINISHED));
    if unfinished.exists() {
        // An earlier run was interrupted here.
        std::fs::remove_dir_all(&unfinished)
            .map_err(|error| Error::io("remove", &unfinished, &error))?;
    }
    for part in [&unfinished, &dir.join(TMP)] {
        std::fs::create_dir_all(part).map_err(|error| Error::io("make", part, &error))?;
    }
    let mut arguments = private(dir, UNFINISHED);
    arguments.push("--auth-root-authentication-method=normal".into());
    arguments.push("--skip-test-db".into());
    arguments.extend(user());
    Guarded::start(&program, &arguments)?
        .wait()
        .map_err(|ended| Error::engine(spec.name(), "making of the server's tables", ended))?;
    std::fs::rename(&unfinished, &data).map_err(|error| Error::io("make", &data, &error))
}

fn option(name: &str, value: impl Into<OsString>) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    option.push(value.into());
    option
}

/// What keeps a server to its own directory. Temporary tables of two servers may have the same name.
fn private(dir: &Path, data: &str) -> Vec<OsString> {
    vec!["--no-defaults".into(), option("datadir", dir.join(data)), option("tmpdir", dir.join(TMP))]
}

/// Whether a server's own tables were made in `dir`.
pub fn is_initialised(dir: &Path) -> bool {
    dir.join(DATA).is_dir()
}

/// Starts a server in `dir` with these options beside those that make it a private one, and waits
/// until it answers.
pub fn start(spec: &EngineSpec, dir: &Path, options: &[(String, String)]) -> Result<Guarded> {
    let program = program(spec, "mariadbd")?;
    let mut arguments = private(dir, DATA);
    arguments.push(option("socket", SOCKET));
    arguments.push(option("pid-file", PID_FILE));
    arguments.push("--skip-networking".into());
    arguments.extend(user());
    arguments.extend(options.iter().map(|(name, value)| match value.is_empty() {
        true => OsString::from(format!("--{name}")),
        false => option(name, value),
    }));
    let server = Guarded::start(&program, &arguments)?;
    match server.wait_ready() {
        Ok(()) => Ok(server),
        Err(ended) if ended.errors.iter().any(|line| line.contains("open shared library")) => {
            Err(spec.missing_program("plugin for this engine of MariaDB"))
        }
        Err(ended) => Err(Error::engine(spec.name(), "start of the server", ended)),
    }
}

/// The path of the socket of the server that works in `dir`. Linux names a working directory by the
/// number of the process, which is short however long its path is.
pub fn socket(spec: &EngineSpec, server: &Guarded, dir: &Path) -> Result<String> {
    let short = PathBuf::from(format!("/proc/{}/cwd/{SOCKET}", server.pid()));
    let path = if short.exists() { short } else { dir.join(DATA).join(SOCKET) };
    match path.to_str() {
        Some(path) if path.len() <= SOCKET_PATH => Ok(path.to_owned()),
        _ => Err(Error::usage(format!(
            "{spec}: the path of its socket is too long ({}): give a shorter --dir",
            path.display()
        ))),
    }
}
