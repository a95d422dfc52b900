//! Which process this is, and whether a process that said so still runs.
//!
//! A process id alone does not tell: the system gives it to another process later. On Linux the
//! time at which the process started, in ticks since the boot, and the boot of the machine tell one
//! process from a later one with the same id. Ids are those of a namespace, so a process in a
//! container may have an id that means nothing outside. Elsewhere only the id is known, and nobody
//! can say whether the process still runs.

/// A process, as it describes itself. A field that is zero is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Process {
    /// Its id.
    pub id: u64,
    /// When it started, in clock ticks since the boot.
    pub started: u64,
    /// The boot of the machine.
    pub boot: [u8; 16],
    /// The namespace in which the id is unique.
    pub namespace: u64,
}

/// Whether a process still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It runs.
    Runs,
    /// It has ended.
    Ended,
    /// This process cannot tell.
    Unknown,
}

impl Process {
    /// The process that calls.
    pub fn current() -> Self {
        let (id, boot) = (u64::from(std::process::id()), super::os::boot_id().unwrap_or_default());
        let namespace = namespace().unwrap_or_default();
        let started = started(id).map_or(0, |(_, started)| started);
        Self { id, started, boot, namespace }
    }

    /// Whether the process that described itself like this still runs.
    pub fn fate(&self) -> Fate {
        let here = Self::current();
        if self.boot == [0; 16] || here.boot == [0; 16] {
            return Fate::Unknown;
        }
        if self.boot != here.boot {
            return Fate::Ended;
        }
        if self.started == 0 || self.namespace == 0 || self.namespace != here.namespace {
            return Fate::Unknown;
        }
        match started(self.id) {
            // A process that has ended keeps its id until its parent has asked how.
            Some((b'Z' | b'X' | b'x', _)) => Fate::Ended,
            Some((_, started)) if started == self.started => Fate::Runs,
            Some(_) => Fate::Ended,
            // The system may hide the processes of other users.
            None if super::os::process_exists(self.id) => Fate::Unknown,
            None => Fate::Ended,
        }
    }
}

/// The state of a process and when it started.
#[cfg(target_os = "linux")]
fn started(id: u64) -> Option<(u8, u64)> {
    parse_stat(&std::fs::read(format!("/proc/{id}/stat")).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn started(_id: u64) -> Option<(u8, u64)> {
    None
}

/// The third and the 22nd field of `/proc/PID/stat`. The second is a name in parentheses that may
/// hold anything.
#[cfg(any(test, target_os = "linux"))]
fn parse_stat(text: &[u8]) -> Option<(u8, u64)> {
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// The number of the namespace of this process's ids: the link reads `pid:[4026531836]`.
#[cfg(target_os = "linux")]
fn namespace() -> Option<u64> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn namespace() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests;
