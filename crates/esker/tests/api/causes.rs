//! Listeners that tell compactions apart by their cause.

use esker::{Event, EventKind, EventListener};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Counts compactions by cause.
#[derive(Default)]
pub struct Causes(Mutex<BTreeMap<&'static str, u64>>);

impl Causes {
    pub fn of(&self, cause: &str) -> u64 {
        self.0.lock().unwrap().get(cause).copied().unwrap_or(0)
    }
}

impl EventListener for Causes {
    fn event(&self, event: &Event) {
        if let EventKind::CompactionEnd { cause, .. } = event.kind {
            *self.0.lock().unwrap().entry(cause).or_default() += 1;
        }
    }
}

/// Tells when a compaction with a cause has ended.
pub struct Ended {
    cause: &'static str,
    tell: Mutex<Sender<()>>,
}

impl Ended {
    /// A listener, and where it tells.
    pub fn of(cause: &'static str) -> (Arc<Self>, Receiver<()>) {
        let (tell, told) = channel();
        (Arc::new(Self { cause, tell: Mutex::new(tell) }), told)
    }
}

impl EventListener for Ended {
    fn event(&self, event: &Event) {
        if matches!(event.kind, EventKind::CompactionEnd { cause, .. } if cause == self.cause) {
            let _ = self.tell.lock().unwrap().send(());
        }
    }
}
