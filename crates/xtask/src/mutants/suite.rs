//! The tests that try to notice a defect, and how one of them is run.

use super::results::Outcome;
use super::sites::Site;
use crate::workspace::Result;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The name of the library, and so of its unit tests.
pub(crate) const UNIT_TESTS: &str = "esker";

/// Some tests of one program.
#[derive(Debug)]
pub(crate) struct Part {
    /// The test target; [`UNIT_TESTS`] are in the library itself.
    pub program: &'static str,
    /// Names of tests, or parts of them; all if there is none.
    pub tests: &'static [&'static str],
}

impl Part {
    pub(crate) fn name(&self) -> String {
        [&[self.program], self.tests].concat().join(" ")
    }
}

/// In this order: cheap tests that notice much come first.
pub(crate) const PARTS: &[Part] = &[
    Part { program: "api", tests: &[] },
    Part { program: "crash", tests: &["storm"] },
    Part { program: UNIT_TESTS, tests: &[] },
    Part { program: "state_machine", tests: &[] },
    Part { program: "faults", tests: &[] },
    Part { program: "damage", tests: &[] },
    Part { program: "crash", tests: &["what_survives"] },
    Part { program: "suite", tests: &[] },
    Part { program: "concurrency", tests: &[] },
    Part { program: "contract_threads", tests: &[] },
    Part { program: "locked_instructions", tests: &[] },
    Part { program: "lifecycle", tests: &[] },
];

/// Sizes of the campaigns: smaller than those of the suite itself.
const SIZES: &[(&str, &str)] =
    &[("ESKER_CRASH_POINTS", "800"), ("ESKER_MODEL_OPS", "60000"), ("ESKER_ROUNDS", "1")];

/// A part may take this many times as long as without a defect, and a minute more.
const PATIENCE: f64 = 6.0;
const GRACE_SECONDS: f64 = 60.0;

/// The programs that the parts need, each once, as cargo is asked for them.
pub(crate) fn targets() -> Vec<String> {
    let mut names: Vec<_> = PARTS.iter().map(|part| part.program).collect();
    names.sort_unstable();
    names.dedup();
    let flag =
        |name: &str| if name == UNIT_TESTS { "--lib".into() } else { format!("--test={name}") };
    names.into_iter().map(flag).collect()
}

/// How long each part may take, in seconds.
#[derive(Debug, Default)]
pub(crate) struct Limits(BTreeMap<String, f64>);

impl Limits {
    pub(crate) fn set(&mut self, part: &Part, seconds: f64) {
        self.0.insert(part.name(), seconds * PATIENCE + GRACE_SECONDS);
    }

    fn of(&self, part: &Part) -> Option<f64> {
        self.0.get(&part.name()).copied()
    }
}

/// The programs, built.
pub(crate) struct Suite {
    /// Where logs and temporary files go.
    pub directory: PathBuf,
    /// By the name of the target.
    pub programs: BTreeMap<String, PathBuf>,
}

impl Suite {
    /// Runs the parts until one fails. The unit tests of the defect's own module come first.
    pub(crate) fn try_bug(&self, site: &Site, limits: &Limits) -> Result<Outcome> {
        let start = Instant::now();
        let own = [format!("{}::", site.module)];
        let unit = Part { program: UNIT_TESTS, tests: &[] };
        let mut outcome = self.run_tests(&unit, &own, &site.name, limits.of(&unit))?;
        for part in PARTS {
            if outcome.test.is_some() {
                break;
            }
            outcome = self.run(part, &site.name, limits.of(part))?;
        }
        outcome.seconds = start.elapsed().as_secs_f64();
        Ok(outcome)
    }

    /// Runs a part under a defect (none, if its name is empty), up to the first failure.
    pub(crate) fn run(&self, part: &Part, bug: &str, limit: Option<f64>) -> Result<Outcome> {
        let tests: Vec<String> = part.tests.iter().map(|&test| test.to_owned()).collect();
        self.run_tests(part, &tests, bug, limit)
    }

    /// What the tests under a defect said last.
    pub(crate) fn log_of(&self, bug: &str) -> PathBuf {
        self.directory.join("logs").join(if bug.is_empty() { "none" } else { bug })
    }

    fn run_tests(
        &self,
        part: &Part,
        tests: &[String],
        bug: &str,
        limit: Option<f64>,
    ) -> Result<Outcome> {
        let program = self.programs.get(part.program);
        let program = program.ok_or_else(|| format!("there is no test {}", part.program))?;
        let temporary = self.directory.join("temporary");
        let _ = fs::remove_dir_all(&temporary);
        let log = self.log_of(bug);
        for made in [&temporary, &self.directory.join("logs")] {
            fs::create_dir_all(made).map_err(|e| format!("cannot make {}: {e}", made.display()))?;
        }
        let log = File::create(&log).map_err(|e| format!("cannot make {}: {e}", log.display()))?;
        let errors = log.try_clone().map_err(|e| format!("cannot write a log: {e}"))?;
        let mut command = Command::new(program);
        command.args(tests).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../esker"));
        command.env("ESKER_BUG", bug).env("TMPDIR", &temporary).env_remove("RUST_BACKTRACE");
        command.envs(SIZES.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let start = Instant::now();
        let child = command.spawn().map_err(|e| format!("cannot run {}: {e}", part.program))?;
        let test = watch(child, log, limit.map(Duration::from_secs_f64))?;
        let seconds = start.elapsed().as_secs_f64();
        let by = test.as_ref().map(|_| part.name());
        Ok(Outcome { part: by, test, seconds })
    }
}

/// Follows a test program up to its first failure, then ends it; the name of what failed.
fn watch(mut child: Child, mut log: File, limit: Option<Duration>) -> Result<Option<String>> {
    let Some(output) = child.stdout.take() else { return Err("a test has no output".to_owned()) };
    let (send, lines) = mpsc::channel();
    // A thread, because a pipe cannot be read up to a moment. It ends when the pipe does.
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let end = limit.map(|limit| Instant::now() + limit);
    let failed = loop {
        let rest = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        match lines.recv_timeout(rest) {
            Ok(line) => {
                // A log that cannot be written is missed by nobody.
                let _ = writeln!(log, "{line}");
                let failed = line.strip_prefix("test ").and_then(|t| t.strip_suffix(" ... FAILED"));
                if let Some(test) = failed {
                    break Some(test.to_owned());
                }
            }
            Err(RecvTimeoutError::Timeout) => break Some("(does not come back)".to_owned()),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    if failed.is_some() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| format!("cannot wait for a test: {e}"))?;
    // With the receiver gone the thread ends even if a grandchild keeps the pipe open and writes.
    drop(lines);
    drop(reader);
    Ok(failed.or_else(|| died(status)))
}

/// What a program that named no failed test died of.
fn died(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("(the process ended: {status})"))
}
