//! What a run uses if a server works for it.
//!
//! An engine that is a server does its work in another process, whose use counts as if the run had done
//! it itself. `getrusage` tells nothing of other processes that are alive. The server's CPU time is
//! read from its process clock, which includes threads that have ended. Context switches are counted by
//! thread; those of a thread that has ended count as last seen, once a second and before and after each
//! step. Only Linux offers all of this; on other systems the server's part is left out.

#[cfg(target_os = "linux")]
use super::process::field;
use super::process::{self, ProcessUse};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The process of a run, and the server that works for it, if there is one.
#[derive(Debug, Default)]
pub struct Workers {
    server: Option<Server>,
}

impl Workers {
    /// The run's own process and the server of this number.
    pub fn new(server: Option<u32>) -> Self {
        let server = server.map(|pid| Server { pid, seen: Mutex::default() });
        Self { server }
    }

    /// What all of them have used.
    pub fn now(&self) -> ProcessUse {
        let own = ProcessUse::now();
        match &self.server {
            Some(server) => own.with(&server.now()),
            None => own,
        }
    }

    /// Starts a new maximum of memory, where the system allows it.
    pub fn reset_peak_memory(&self) {
        process::reset_peak_memory();
        if let Some(server) = &self.server {
            process::reset_peak_memory_of(&server.pid.to_string());
        }
    }

    /// The largest resident sizes since then, in bytes, added up.
    pub fn peak_memory(&self) -> Option<u64> {
        let own = process::peak_memory()?;
        match &self.server {
            Some(server) => Some(own + process::peak_memory_of(&server.pid.to_string())?),
            None => Some(own),
        }
    }
}

/// Another process, and what was seen of it.
#[derive(Debug)]
struct Server {
    pid: u32,
    seen: Mutex<Seen>,
}

/// What a process has used. One that has ended has used what it had when it was last looked at.
#[derive(Debug, Default)]
struct Seen {
    last: ProcessUse,
    /// Switches of each thread that lives.
    threads: HashMap<u64, u64>,
    /// Switches of threads that have ended.
    ended: u64,
}

impl Server {
    fn now(&self) -> ProcessUse {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.look(self.pid);
        seen.last
    }
}

impl Seen {
    #[cfg(target_os = "linux")]
    fn look(&mut self, pid: u32) {
        if let Some(cpu) = cpu_time(pid) {
            self.last.cpu = cpu;
        }
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        self.last.device_written = field(&io, "write_bytes:").or(self.last.device_written);
        self.last.device_read = field(&io, "read_bytes:").or(self.last.device_read);
        self.count(switches(pid));
    }

    #[cfg(not(target_os = "linux"))]
    fn look(&mut self, _: u32) {
        self.count(HashMap::new());
    }

    /// Takes the switches of the threads that live now.
    fn count(&mut self, now: HashMap<u64, u64>) {
        for (thread, before) in &self.threads {
            // A number may be given again, to a thread that begins at nothing.
            if now.get(thread).is_none_or(|switches| switches < before) {
                self.ended += before;
            }
        }
        self.threads = now;
        self.last.switches = self.ended + self.threads.values().sum::<u64>();
    }
}

/// User and system time of all threads of a process, those that have ended included.
#[cfg(target_os = "linux")]
fn cpu_time(pid: u32) -> Option<std::time::Duration> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).ok()?);
    let time = nix::time::clock_getcpuclockid(pid).ok()?.now().ok()?;
    Some(std::time::Duration::from(time))
}

/// Context switches of each thread of a process, wanted or not.
#[cfg(target_os = "linux")]
fn switches(pid: u32) -> HashMap<u64, u64> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return HashMap::new();
    };
    let count = |thread: std::fs::DirEntry| {
        let number = thread.file_name().to_str()?.parse().ok()?;
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let wanted = field(&status, "voluntary_ctxt_switches:")?;
        Some((number, wanted + field(&status, "nonvoluntary_ctxt_switches:")?))
    };
    threads.flatten().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_threads_that_ended_still_count() {
        let mut seen = Seen::default();
        let mut count = |threads: &[(u64, u64)]| {
            seen.count(threads.iter().copied().collect());
            seen.last.switches
        };
        assert_eq!(count(&[(1, 10), (2, 5)]), 15);
        assert_eq!(count(&[(1, 12)]), 17, "the second has ended");
        assert_eq!(count(&[(1, 12), (2, 3)]), 20, "its number was given again");
        assert_eq!(count(&[(1, 12), (2, 1)]), 21, "and once more");
        assert_eq!(count(&[]), 21, "all have ended");
    }

    /// A shell that counts, and then waits: the work is its own, and shows.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_another_process_does_is_added() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        let alone = Workers::new(None);
        let script = "read go; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo; read end";
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let both = Workers::new(Some(shell.id()));
        both.reset_peak_memory();
        let (before, own_before) = (both.now(), alone.now());
        let mut input = shell.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"go\n").unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let used = both.now().since(&before);
        let own = alone.now().since(&own_before);
        // Other tests run in this process meanwhile, so it may have worked more than the shell. What
        // the shell counts takes any machine longer than this.
        let of_shell = used.cpu.saturating_sub(own.cpu);
        assert!(of_shell > std::time::Duration::from_millis(5), "{used:?} {own:?}");
        assert!(used.switches > 0 && used.device_written.is_some());
        assert!(both.peak_memory().unwrap() > alone.peak_memory().unwrap());
        drop(input);
        shell.wait().unwrap();
        let ended = both.now().since(&before);
        assert!(ended.cpu >= used.cpu, "{ended:?} {used:?}");
    }
}
