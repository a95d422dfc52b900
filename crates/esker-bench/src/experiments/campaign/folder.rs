//! The directory of a campaign.
//!
//! | what | where |
//! |---|---|
//! | the experiment and its settings | `experiment.json` |
//! | what every run has finished | `results/ROUND-ENGINE.jsonl` |
//! | samples, where the experiment takes some | `samples/ROUND-ENGINE.csv` |
//! | databases of runs that are not done | `databases/ROUND-ENGINE/` |
//! | the report | `report.json`, `report.csv` |
//! | plots of samples | `rate.svg`, `pauses.svg` |

use super::journal::Journal;
use crate::experiments::published::Experiment;
use crate::harness::measure::caches;
use crate::harness::settings::Settings;
use crate::{EngineSpec, Error, Result};
use serde_json::{Value, json};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The directory, locked against other campaigns until this value is dropped.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    _lock: File,
}

impl Folder {
    /// Takes the directory, or makes it.
    pub fn open(root: &Path, experiment: &Experiment, settings: &Settings) -> Result<Self> {
        for part in ["results", "samples", "databases"] {
            let path = root.join(part);
            fs::create_dir_all(&path).map_err(|error| Error::io("make", &path, &error))?;
        }
        let path = root.join("lock");
        let lock = File::create(&path).map_err(|error| Error::io("make", &path, &error))?;
        match lock.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::usage(format!(
                    "another experiment runs in {}: wait for it, or give another --dir",
                    root.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, &error)),
        }
        let folder = Self { root: root.to_owned(), _lock: lock };
        folder.claim(experiment, settings)?;
        Ok(folder)
    }

    /// Writes what the directory is for, or compares it with what an earlier process wrote.
    fn claim(&self, experiment: &Experiment, settings: &Settings) -> Result<()> {
        let path = self.root.join("experiment.json");
        let wanted = purpose(experiment, settings)?;
        let found = match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = format!("{wanted:#}\n");
                return fs::write(&path, text).map_err(|error| Error::io("write", &path, &error));
            }
            Err(error) => return Err(Error::io("read", &path, &error)),
            Ok(bytes) => serde_json::from_slice::<Value>(&bytes).unwrap_or(Value::Null),
        };
        if found == wanted {
            return Ok(());
        }
        let differs = difference(&found, &wanted);
        Err(Error::usage(format!(
            "{} holds another experiment ({differs} differs): give another --dir, or remove it",
            self.root.display()
        )))
    }

    fn name(spec: &EngineSpec, round: usize) -> String {
        format!("{round}-{}", spec.file_name())
    }

    /// The runs that have a journal, whichever command wrote it: the round, and the engine as far as the
    /// name of the file tells. In the order of rounds and names.
    pub fn journals(&self) -> Result<Vec<(usize, EngineSpec)>> {
        let results = self.root.join("results");
        let failed = |error: std::io::Error| Error::io("read", &results, &error);
        let mut found = Vec::new();
        for entry in results.read_dir().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let parts = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.split_once('-'));
            let Some((round, engine)) = parts else { continue };
            if let Ok(round) = round.parse::<usize>() {
                found.push((round, engine.to_owned()));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(round, name)| (round, EngineSpec::named(name))).collect())
    }

    /// The journal of a run.
    pub fn journal(&self, spec: &EngineSpec, round: usize) -> Result<Journal> {
        Journal::open(self.root.join("results").join(Self::name(spec, round) + ".jsonl"))
    }

    /// The directory of a run's database.
    pub fn database(&self, spec: &EngineSpec, round: usize) -> PathBuf {
        self.root.join("databases").join(Self::name(spec, round))
    }

    /// Where a run writes samples.
    pub fn samples(&self, spec: &EngineSpec, round: usize) -> PathBuf {
        self.root.join("samples").join(Self::name(spec, round) + ".csv")
    }

    /// An empty directory for a database.
    pub fn renew(&self, database: &Path) -> Result<()> {
        self.remove(database, false)?;
        caches::write_back();
        fs::create_dir(database).map_err(|error| Error::io("make", database, &error))
    }

    /// Removes a database unless it is to be kept.
    pub fn remove(&self, database: &Path, keep: bool) -> Result<()> {
        if keep || !database.exists() {
            return Ok(());
        }
        fs::remove_dir_all(database).map_err(|error| Error::io("remove", database, &error))
    }

    /// Writes a file of results.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.root.join(name);
        fs::write(&path, text).map_err(|error| Error::io("write", &path, &error))
    }
}

/// What decides whether results may stand side by side: everything but which engines, how many
/// rounds, and where.
fn purpose(experiment: &Experiment, settings: &Settings) -> Result<Value> {
    let neutral =
        Settings { engines: Vec::new(), rounds: 1, dir: None, keep: false, ..settings.clone() };
    let settings = serde_json::to_value(neutral)
        .map_err(|error| Error::Failed(format!("cannot write the settings: {error}")))?;
    Ok(json!({ "experiment": experiment.name, "settings": settings }))
}

/// The first thing that differs, by name.
fn difference(found: &Value, wanted: &Value) -> String {
    if found.get("experiment") != wanted.get("experiment") {
        return "its name".into();
    }
    let fields = wanted["settings"].as_object().into_iter().flatten();
    let mut other = fields.filter(|(name, value)| found["settings"].get(name) != Some(value));
    other.next().map_or("something".into(), |(name, _)| format!("`{name}`"))
}
