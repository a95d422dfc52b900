//! What the figures were measured on.

use super::process::field;
use serde::{Deserialize, Serialize};

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
    /// Whether this program was built without optimisation, which makes its figures worthless.
    pub debug_build: bool,
}

impl Machine {
    /// Looks.
    pub fn inspect() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let system =
            format!("{} {} {}", std::env::consts::OS, release.trim(), std::env::consts::ARCH);
        let processor = read("/proc/cpuinfo").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor,
            memory: memory_bytes(),
            system: system.split_whitespace().collect::<Vec<_>>().join(" "),
            debug_build: cfg!(debug_assertions),
        }
    }
}

/// Memory of the machine or of the control group, whichever is less.
pub fn memory_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = field(&meminfo, "MemTotal:")? << 10;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    // "max" where there is no limit.
    let group = group.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some(machine.min(group))
}
