//! The monitor: what the database does so that others can see what it does.
//!
//! One thread, `esker-monitor`, takes the events from the bus, appends them to the file `EVENTS`
//! and tells the program's listener. About once per second it also calls the database's
//! [`Watch`], which writes the file of [`statistics`]. It holds no lock of the engine, so a slow listener and a slow device delay nothing
//! but later events.
//!
//! 1. The thread exists if somebody is told something: files are written, there is a listener, or
//!    the feature `tracing` is on. Otherwise the bus ignores events.
//! 2. The thread waits on the bus's signal, with a timeout: a second while something changes, and
//!    up to [`IDLE`] otherwise.
//! 3. The file is opened by the thread, so opening a database waits for nothing here. If opening the
//!    database fails, the thread that opened it tells the listener; the file is not written.
//! 4. A panic of the listener or of the watch is contained.

mod events_file;
pub mod statistics;
mod work;

use crate::error::{Error, Result};
use crate::events::{Event, EventBus, EventKind, EventListener, corruption};
use crate::fs::Fs;
use crate::options::Options;
use crate::sync::{Latch, contain, spawn};
use events_file::EventsFile;
pub use events_file::{EVENTS_BYTES_MAX, LINE_BYTES_MAX};
use parking_lot::Mutex;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
pub use work::{Compacting, Watched};

/// How often the watch is called while something changes.
const SECOND: Duration = Duration::from_secs(1);
/// How long the thread waits at most while nothing changes. Calls do not wake the thread, so other
/// processes see a call that ends a rest so much later.
const IDLE: Duration = Duration::from_secs(4);

/// What the database does in the monitor's thread.
pub trait Watch: Send {
    /// Called about once per second while something changes, rarely while nothing does, and once
    /// at the end. Returns whether anything has changed since the last call. It may emit events.
    fn look(&mut self, end: bool) -> bool;

    /// Whether there is space for files that nothing needs.
    fn has_space(&self) -> bool;
}

/// The monitor of a database.
pub struct Monitor {
    bus: Arc<EventBus>,
    listener: Option<Arc<dyn EventListener>>,
    writes_files: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether the thread was started.
    started: AtomicBool,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("writes_files", &self.writes_files).finish_non_exhaustive()
    }
}

impl Monitor {
    /// The monitor that the options ask for; its thread does not run yet. `filling`: the directory
    /// is marked as unfinished, and gets no files that its filling does not need.
    pub fn new(options: &Options, filling: bool) -> Self {
        let wanted = options.monitor.unwrap_or_else(|| options.fs.is_native());
        let writes_files = wanted && !options.read_only && !filling;
        let listener = options.on_event.clone();
        let listened = writes_files || listener.is_some() || cfg!(feature = "tracing");
        let (bus, (thread, started)) = (Arc::new(EventBus::new(listened)), Default::default());
        Self { bus, listener, writes_files, thread, started }
    }

    /// Puts an event into the bus.
    pub fn emit(&self, kind: EventKind) {
        self.bus.emit(kind);
    }

    /// Reports that opening has ended: with the database, or because of damage.
    pub fn opened<R>(&self, read_only: bool, since: Instant, opened: &Result<R>) {
        match opened {
            Ok(_) => {
                self.emit(EventKind::DatabaseOpened { read_only, duration: since.elapsed() });
            }
            Err(error) => self.damage(error),
        }
    }

    /// Reports damage, if the error is about damage.
    #[cold]
    pub fn damage(&self, error: &Error) {
        corruption(error).into_iter().for_each(|kind| self.emit(kind));
    }

    /// Reports that the device became full or has space again; `tight`: whether writes were refused
    /// before, and are now.
    pub fn tell_space(&self, free: u64, tight: (bool, bool)) {
        match tight {
            (false, true) => self.emit(EventKind::DeviceFull { free }),
            (true, false) => self.emit(EventKind::SpaceAgain { free }),
            _ => {}
        }
    }

    /// Reports that work in the background failed.
    pub fn failed(&self, work: &'static str, error: &Error) {
        self.damage(error);
        self.bus.warn(format_args!("{work} failed"), error, |error, message| {
            EventKind::BackgroundFailed { work, error, message }
        });
    }

    /// Reports that the manifest has grown and could not be replaced by a new one.
    pub fn manifest_not_rewritten(&self, error: &Error) {
        self.bus.warn("the manifest could not be rewritten yet", error, |error, message| {
            EventKind::ManifestNotRewritten { error, message }
        });
    }

    /// Reports that a superblock could not record how far log and manifest reach.
    pub fn reach_not_recorded(&self, error: &Error) {
        let failed = "how far log and manifest reach could not be recorded yet";
        self.bus
            .warn(failed, error, |error, message| EventKind::ReachNotRecorded { error, message });
    }

    /// Reports that files to which nothing refers could not be removed.
    pub fn files_left(&self, what: &'static str, error: &Error) {
        self.bus.files_left(what, error);
    }

    /// A latch that reports the end of writing.
    pub fn latch(&self) -> Latch {
        let bus = self.bus.clone();
        Latch::telling(move |error| {
            bus.emit_error(error, |error, message| EventKind::WritingEnded { error, message });
        })
    }

    /// Where events go.
    pub fn bus(&self) -> &Arc<EventBus> {
        &self.bus
    }

    /// Whether files are written into the database's directory.
    pub fn writes_files(&self) -> bool {
        self.writes_files
    }

    /// Starts the thread, if anybody is told anything.
    pub fn start(&self, fs: &Arc<dyn Fs>, directory: &Path, watch: Box<dyn Watch>) -> Result<()> {
        if !self.bus.is_listened() {
            return Ok(());
        }
        let file = self.writes_files.then(|| EventsFile::new(fs.clone(), directory));
        let (bus, listener) = (self.bus.clone(), self.listener.clone());
        let mut running = Running { bus, listener, file, watch };
        let thread = spawn("esker-monitor", directory, move || running.run())?;
        *self.thread.lock() = Some(thread);
        self.started.store(true, Ordering::Release);
        Ok(())
    }

    /// Passes on the events so far, and ends the thread. A listener that gets here waits for
    /// nothing.
    pub fn stop(&self) {
        self.bus.end();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches panics, so it has no result.
            let _ = thread.join();
        }
    }
}

impl Drop for Monitor {
    /// If opening the database failed, nobody has told the listener yet.
    fn drop(&mut self) {
        // In a forked child the lock of the queue may never become free (R26).
        if self.started.load(Ordering::Acquire) || !self.bus.is_listened() {
            return;
        }
        let mut events = Vec::new();
        self.bus.take(&mut events, true);
        events.iter().for_each(|event| tell(self.listener.as_deref(), event));
    }
}

/// Tells the listener, and the subscriber of `tracing`.
fn tell(listener: Option<&dyn EventListener>, event: &Event) {
    let told = contain(|| {
        #[cfg(feature = "tracing")]
        event.trace();
        if let Some(listener) = listener {
            listener.event(event);
        }
        Ok(())
    });
    if told.is_err() {
        log::error!("the listener panicked at event {}", event.kind.name());
    }
}

/// What the thread works with.
struct Running {
    bus: Arc<EventBus>,
    listener: Option<Arc<dyn EventListener>>,
    file: Option<EventsFile>,
    watch: Box<dyn Watch>,
}

impl Running {
    fn run(&mut self) {
        let mut due = Instant::now();
        let mut pause = SECOND;
        loop {
            let seen = self.bus.signal().epoch();
            // Read before the events are taken: none comes after the end.
            let end = self.bus.is_ended();
            if end || Instant::now() >= due {
                let changed = contain(|| Ok(self.watch.look(end))).unwrap_or(false);
                pause = if changed { SECOND } else { (pause * 2).min(IDLE) };
                due = Instant::now() + pause;
            }
            let more = self.pass_on(end);
            if end {
                return;
            }
            let wait = if more { SECOND } else { due.saturating_duration_since(Instant::now()) };
            if self.bus.signal().wait_past_timeout(seen, wait) {
                // Something happens, so the watch is not called late.
                due = due.min(Instant::now() + SECOND);
            }
        }
    }

    /// Passes on the events that wait. Returns whether there is more to say soon.
    fn pass_on(&mut self, end: bool) -> bool {
        let mut events = Vec::new();
        let more = self.bus.take(&mut events, end);
        let has_space = self.watch.has_space();
        if let Some(file) = &mut self.file {
            file.append(&events, has_space);
            if let Some(count) = file.take_lost() {
                self.bus.emit(EventKind::EventsLost { count, place: "file" });
            }
        }
        events.iter().for_each(|event| tell(self.listener.as_deref(), event));
        more
    }
}

#[cfg(test)]
mod tests;
