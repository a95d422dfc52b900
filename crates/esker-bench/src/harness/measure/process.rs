//! What the process used: CPU time, context switches, device bytes, memory.
//!
//! CPU time and context switches come from `getrusage`, which includes threads that have ended. Device
//! bytes come from Linux's `/proc/self/io`: bytes that this process caused to be written to or read
//! from a device. A page of a mapped file is counted each time it is changed again after it was written
//! back, so a log in a mapped file is counted too high; reports show an engine's own count beside it.
//! Systems without a counter report none, never zero.

use std::time::Duration;

/// Counters of the process, since its start.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessUse {
    /// User and system time of all threads.
    pub cpu: Duration,
    /// Context switches of all threads, wanted or not.
    pub switches: u64,
    /// Bytes on their way to devices.
    pub device_written: Option<u64>,
    /// Bytes that came from devices.
    pub device_read: Option<u64>,
}

impl ProcessUse {
    /// Reads the counters.
    pub fn now() -> Self {
        let whole = usage(Scope::Process);
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        Self {
            cpu: whole.cpu,
            switches: whole.switches,
            device_written: field(&io, "write_bytes:"),
            device_read: field(&io, "read_bytes:"),
        }
    }

    /// What was used between `earlier` and now.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            switches: self.switches.saturating_sub(earlier.switches),
            device_written: difference(self.device_written, earlier.device_written),
            device_read: difference(self.device_read, earlier.device_read),
        }
    }

    /// Together with what another process used.
    pub fn with(&self, other: &Self) -> Self {
        let sum = |own: Option<u64>, other: Option<u64>| Some(own? + other?);
        Self {
            cpu: self.cpu + other.cpu,
            switches: self.switches + other.switches,
            device_written: sum(self.device_written, other.device_written),
            device_read: sum(self.device_read, other.device_read),
        }
    }

    /// Without what a thread of the harness used.
    pub fn without(mut self, own: &ThreadUse) -> Self {
        self.cpu = self.cpu.saturating_sub(own.cpu);
        self.switches = self.switches.saturating_sub(own.switches);
        self
    }
}

/// CPU time and context switches of one thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadUse {
    /// User and system time.
    pub cpu: Duration,
    /// Context switches, wanted or not.
    pub switches: u64,
}

impl ThreadUse {
    /// What was used between `earlier` and now.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

/// Counters of the calling thread; zeros where the system does not count by thread.
pub fn thread_use() -> ThreadUse {
    usage(Scope::Thread)
}

enum Scope {
    Process,
    Thread,
}

#[cfg(unix)]
fn usage(scope: Scope) -> ThreadUse {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeVal;
    let who = match scope {
        Scope::Process => UsageWho::RUSAGE_SELF,
        #[cfg(target_os = "linux")]
        Scope::Thread => UsageWho::RUSAGE_THREAD,
        #[cfg(not(target_os = "linux"))]
        Scope::Thread => return ThreadUse::default(),
    };
    let Ok(usage) = getrusage(who) else { return ThreadUse::default() };
    let duration = |time: TimeVal| {
        Duration::from_secs(time.tv_sec().max(0) as u64)
            + Duration::from_micros(time.tv_usec().max(0) as u64)
    };
    let switches = usage.voluntary_context_switches() + usage.involuntary_context_switches();
    ThreadUse {
        cpu: duration(usage.user_time()) + duration(usage.system_time()),
        switches: switches.max(0) as u64,
    }
}

#[cfg(not(unix))]
fn usage(_: Scope) -> ThreadUse {
    ThreadUse::default()
}

/// The largest resident size since [`reset_peak_memory`], in bytes.
pub fn peak_memory() -> Option<u64> {
    peak_memory_of("self")
}

/// The same of the process of this number.
pub(super) fn peak_memory_of(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(field(&status, "VmHWM:")? << 10)
}

/// Starts a new maximum, where the system allows it; else the maximum stays that of the process.
pub fn reset_peak_memory() {
    reset_peak_memory_of("self");
}

/// The same of the process of this number.
pub(super) fn reset_peak_memory_of(process: &str) {
    let _ = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
}

/// The number behind `name` in the text of a file under `/proc`.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files() {
        let text = "rchar: 10\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n";
        assert_eq!(field(text, "write_bytes:"), Some(4096));
        assert_eq!(field(text, "read_bytes:"), None);
        assert_eq!(field("VmHWM:\t  12345 kB\n", "VmHWM:"), Some(12_345));
    }

    #[test]
    fn work_shows_in_the_counters() {
        let before = ProcessUse::now();
        let mut sum = 0_u64;
        while ProcessUse::now().since(&before).cpu < Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
        std::thread::sleep(Duration::from_millis(1));
        let used = ProcessUse::now().since(&before);
        assert!(used.switches >= 1);
        assert!(peak_memory().unwrap() > 1 << 20);
    }
}
