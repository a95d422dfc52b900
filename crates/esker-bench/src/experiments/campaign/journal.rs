//! What a run has finished, one line of JSON per event.
//!
//! Lines are only appended. A process that is killed may leave half a line at the end, which is
//! dropped. Any other line that cannot be read means that the file was damaged or written by another
//! version, which is an error.

use crate::experiments::published::{Figures, Step};
use crate::harness::step_report::WorkloadReport;
use crate::report::{Origin, RunReport};
use crate::{EngineSpec, Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// One line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// A process opened the database.
    Opened {
        /// The engine's name and version.
        version: String,
        /// What was set.
        settings: Vec<(String, String)>,
        /// How many steps it found finished. Steps recorded after these no longer count.
        behind: usize,
        /// The engine, as users name it; earlier versions left it to the name of the file.
        #[serde(default)]
        engine: Option<EngineSpec>,
        /// The command, and its build.
        #[serde(default)]
        origin: Option<Origin>,
    },
    /// A step ended.
    Step {
        /// What was measured.
        report: Box<WorkloadReport>,
        /// Its other figures.
        figures: Figures,
    },
    /// The database was closed, and all is done.
    Closed {
        /// How long that took.
        seconds: f64,
    },
}

/// The journal of one run.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    version: String,
    settings: Vec<(String, String)>,
    engine: Option<EngineSpec>,
    origin: Option<Origin>,
    /// Steps that are finished.
    steps: Vec<WorkloadReport>,
    /// Their other figures.
    pub figures: Vec<Figures>,
    /// After how many steps another process continued, for each time that one did.
    pub taken_up: Vec<usize>,
    closed: Option<f64>,
}

impl Journal {
    /// Reads the journal, or makes an empty one.
    pub fn open(path: PathBuf) -> Result<Self> {
        let failed = |what: &'static str| {
            let path = path.clone();
            move |error: std::io::Error| Error::io(what, &path, &error)
        };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read")(error)),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(failed("open"))?;
        file.set_len(whole as u64).map_err(failed("cut"))?;
        let mut journal = Self {
            path,
            file,
            version: String::new(),
            settings: Vec::new(),
            engine: None,
            origin: None,
            steps: Vec::new(),
            figures: Vec::new(),
            taken_up: Vec::new(),
            closed: None,
        };
        for (number, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
            if !line.is_empty() {
                let line = parse(&journal.path, number + 1, line)?;
                journal.take(line);
            }
        }
        Ok(journal)
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Opened { version, settings, behind, engine, origin } => {
                (self.version, self.settings) = (version, settings);
                (self.engine, self.origin) = (engine, origin);
                self.steps.truncate(behind);
                self.figures.truncate(behind);
                self.taken_up.retain(|step| *step < behind);
                if behind > 0 {
                    self.taken_up.push(behind);
                }
            }
            Line::Step { report, figures } => {
                self.steps.push(*report);
                self.figures.push(figures);
            }
            Line::Closed { seconds } => self.closed = Some(seconds),
        }
    }

    /// The engine, if the journal says which.
    pub fn engine(&self) -> Option<&EngineSpec> {
        self.engine.as_ref()
    }

    /// Whether the run is done.
    pub fn complete(&self) -> bool {
        self.closed.is_some()
    }

    /// What is known of the run.
    pub fn report(&self, spec: &EngineSpec, round: usize, turn: usize) -> RunReport {
        RunReport {
            version: self.version.clone(),
            settings: self.settings.clone(),
            workloads: self.steps.clone(),
            close_seconds: self.closed.unwrap_or(0.0),
            origin: self.origin.clone(),
            ..RunReport::begun(spec, round, turn)
        }
    }

    /// Appends a line and syncs it.
    pub fn append(&mut self, line: &Line) -> Result<()> {
        match line {
            Line::Closed { seconds } => self.closed = Some(*seconds),
            Line::Opened { behind, .. } if *behind > 0 => self.taken_up.push(*behind),
            _ => (),
        }
        let mut bytes = serde_json::to_vec(line).map_err(|error| {
            Error::Failed(format!("cannot write {}: {error}", self.path.display()))
        })?;
        bytes.push(b'\n');
        self.file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Error::io("write", &self.path, &error))
    }
}

/// A run with what is known of it beside its report.
#[derive(Debug)]
pub struct Known {
    pub report: RunReport,
    pub journal: Journal,
}

fn parse(path: &Path, number: usize, line: &[u8]) -> Result<Line> {
    serde_json::from_slice(line).map_err(|error| {
        Error::Failed(format!(
            "line {number} of {} is no result of this version ({error}): remove the file to measure \
             this engine again",
            path.display()
        ))
    })
}

/// How many of the finished steps survive the end of the process although nothing was synced: all
/// steps up to the last flush, and the steps after it that wrote nothing.
pub fn sound(steps: &[Step]) -> usize {
    let Some(persisted) = steps.iter().rposition(|step| step.action.persists()) else { return 0 };
    let quiet = steps[persisted + 1..].iter().take_while(|step| !step.action.writes());
    persisted + 1 + quiet.count()
}
