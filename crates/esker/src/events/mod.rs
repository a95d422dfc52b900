//! Events: what happens in a database, for listeners and for the file `EVENTS`.
//!
//! The parts of the engine give an [`EventKind`] to the [`EventBus`], which numbers it, keeps it in
//! a bounded queue and returns at once: it does no I/O and calls no code of the program. The
//! monitor thread takes the events out of the queue, in their order, and passes them on. If events
//! come faster than they are taken, the newest are dropped and counted; a later event says how many.
//!
//! 1. An event never contains a key or a value. Names of keyspaces and of files are not keys.
//! 2. One table ([`kind`]) names all kinds and their fields. JSON, `tracing` and the check of the
//!    documentation follow from it.

mod bus;
mod describe;
mod json;
mod kind;
mod listener;
#[cfg(test)]
mod tests;

pub use bus::{EventBus, QUEUE_MAX};
pub use describe::{corruption, message_of};
pub use json::TEXT_MAX;
pub use kind::{Event, EventKind};
pub use listener::EventListener;
