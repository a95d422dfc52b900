//! Runs in processes of their own.
//!
//! The same program is started with arguments that make it a run ([`super::child`]). It gets a process
//! group of its own, so Ctrl-C reaches only the comparison, which then ends the run and keeps what it
//! measured. With a memory limit, the process is put into its control group before it gets its order
//! and so before it opens anything.

use super::child::{Record, SEPARATOR};
use super::host::{Event, Host, Order};
use crate::harness::measure::cgroup::Group;
use crate::{Error, Result};
use shared_child::SharedChild;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Starts a process for each run.
#[derive(Debug)]
pub struct Processes {
    program: PathBuf,
    arguments: Vec<OsString>,
    group: Option<Group>,
    stop: Stop,
}

/// Ends the run under way, from any thread.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Arc<SharedChild>>>>,
}

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        if let Some(child) = &*self.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended by itself meanwhile.
            let _ = child.kill();
        }
    }

    /// Whether the end was asked for.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    fn watch(&self, child: Option<Arc<SharedChild>>) {
        let mut place = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // A request that came before the child was known could not end it.
        if let Some(child) = child.as_ref().filter(|_| self.asked()) {
            let _ = child.kill();
        }
        *place = child;
    }
}

impl Processes {
    /// Runs are `program` with these arguments.
    pub fn new(
        program: PathBuf,
        arguments: Vec<OsString>,
        memory_limit: Option<u64>,
        stop: Stop,
    ) -> Result<Self> {
        let group = memory_limit.map(Group::new).transpose()?;
        Ok(Self { program, arguments, group, stop })
    }

    fn start(&self) -> Result<Arc<SharedChild>> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = SharedChild::spawn(&mut command)
            .map_err(|error| Error::io("start", &self.program, &error))?;
        Ok(Arc::new(child))
    }

    /// Sends the order, and receives what the run reports.
    fn talk(
        &self,
        child: &SharedChild,
        order: &Order,
        seen: &mut dyn FnMut(Event) -> Result<()>,
    ) -> Result<bool> {
        let lost = |error: io::Error| Error::Failed(format!("lost touch with the run: {error}"));
        if let Some(group) = &self.group {
            group.add(child.id())?;
        }
        let mut line = serde_json::to_vec(order).map_err(|error| lost(error.into()))?;
        line.push(b'\n');
        // Kept open until the run has ended: closing it would end the run.
        let mut input = child.take_stdin();
        let output = child.take_stdout();
        if let Some(input) = &mut input {
            input.write_all(&line).and_then(|()| input.flush()).map_err(lost)?;
        }
        let mut closed = false;
        let Some(output) = output else { return Ok(closed) };
        let mut records = BufReader::new(output);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            if records.read_until(b'\n', &mut bytes).map_err(lost)? == 0 {
                return Ok(closed);
            }
            let Some(at) = bytes.iter().position(|byte| *byte == SEPARATOR) else {
                say(&bytes);
                continue;
            };
            say(&bytes[..at]);
            match serde_json::from_slice(&bytes[at + 1..]).map_err(|error| lost(error.into()))? {
                Record::Event(event) => {
                    closed |= matches!(event, Event::Closed { .. });
                    seen(event)?;
                }
                Record::Failed(message) => return Err(Error::Failed(message)),
            }
        }
    }
}

/// What an engine printed by itself.
fn say(bytes: &[u8]) {
    if !bytes.is_empty() {
        // If standard error is closed, nobody would read it.
        let _ = io::stderr().write_all(bytes);
    }
}

impl Host for Processes {
    fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
        if self.stop.asked() {
            return Err(Error::Failed("interrupted".into()));
        }
        let child = self.start()?;
        self.stop.watch(Some(child.clone()));
        let told = self.talk(&child, order, seen);
        if told.is_err() {
            let _ = child.kill();
        }
        let status = child.wait();
        self.stop.watch(None);
        let status =
            status.map_err(|error| Error::Failed(format!("cannot wait for the run: {error}")))?;
        match told? {
            // What it measured is complete, however it ended after that.
            true => Ok(()),
            false => Err(ended(status, self.group.is_some())),
        }
    }

    fn interrupted(&self) -> bool {
        self.stop.asked()
    }
}

/// The failure of a run that ended without a record.
fn ended(status: ExitStatus, limited: bool) -> Error {
    let hint = if limited { "; with --memory-limit the system ends what needs more" } else { "" };
    Error::Failed(format!("its process ended without a result ({status}){hint}"))
}
