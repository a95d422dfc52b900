//! Who is told about events.

use crate::events::Event;

/// Is told about the events of a database.
///
/// Closures that take an `&Event` implement it. Give one to
/// [`Options::on_event`](crate::Options::on_event).
///
/// All calls come from one thread of the database, `esker-monitor`, in the order of the events, and
/// while the engine holds no lock. A slow listener delays later events but no reads or writes: up
/// to 1,024 events wait, then the newest are dropped, and [`EventKind::EventsLost`] says how many.
/// If opening fails, the thread that called open reports the events of the attempt. A panic of the
/// listener is caught and logged; later events are still reported.
///
/// Closing waits until the listener has returned from the last event. So a listener must not close
/// the database, and must not keep the last handle of it.
///
/// [`EventKind::EventsLost`]: crate::EventKind::EventsLost
///
/// # Example
/// ```
/// use esker::{Event, EventKind, EventListener};
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// #[derive(Default)]
/// struct Flushed(AtomicU64);
/// impl EventListener for Flushed {
///     fn event(&self, event: &Event) {
///         if let EventKind::Flush { bytes, .. } = &event.kind {
///             self.0.fetch_add(*bytes, Ordering::Relaxed);
///         }
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap();
/// let flushed = Arc::new(Flushed::default());
/// let mut options = esker::Options::default();
/// options.on_event = Some(flushed.clone());
/// let db = esker::Db::open_with(&dir, options)?;
/// db.insert("k", "v")?;
/// db.close()?; // Flushes.
/// assert!(flushed.0.load(Ordering::Relaxed) > 0);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait EventListener: Send + Sync + 'static {
    /// Takes note of an event.
    fn event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> EventListener for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}
