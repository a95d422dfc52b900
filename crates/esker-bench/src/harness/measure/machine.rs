//! What the figures were measured on.
//!
//! Every report names the machine, because figures of different machines cannot be compared. What the
//! system does not tell is absent.

use super::storage::Storage;
use crate::engines::memory::machine_memory;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The machine, as far as the system tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's name.
    pub processor: Option<String>,
    /// Bytes of memory that this process may use.
    pub memory: Option<u64>,
    /// The operating system and its version.
    pub system: String,
    /// The disk that the databases lie on.
    #[serde(default)]
    pub disk: Option<String>,
    /// The kind of file system that they lie on.
    #[serde(default)]
    pub file_system: Option<String>,
    /// Whether this program was built without optimisation, which makes its figures worthless.
    pub debug_build: bool,
}

impl Machine {
    /// Looks; the databases are in `dir`.
    pub fn inspect(dir: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let system =
            format!("{} {} {}", std::env::consts::OS, release.trim(), std::env::consts::ARCH);
        let processor = read("/proc/cpuinfo").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        let Storage { disk, file_system } = Storage::of(dir);
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor,
            memory: machine_memory(),
            system: system.split_whitespace().collect::<Vec<_>>().join(" "),
            disk,
            file_system,
            debug_build: cfg!(debug_assertions),
        }
    }
}
