//! Wires the layers into a database; no algorithm lives here.
//!
//! | file | what |
//! |---|---|
//! | `core` | what all calls and threads share |
//! | `open`, `record` | from a path to a running database; the recorded reach of manifest and log |
//! | `write` | the path of a write |
//! | `read`, `scan` | the path of a read |
//! | `flush`, `push`, `compact`, `output` | from memtables to runs, and from runs to runs |
//! | `change` | the one way to change the tree |
//! | `full`, `thin`, `held` | what happens when the device is full |
//! | `worker`, `watch` | what each background thread does; what the monitor looks at |
//! | `keyspaces`, `branches` | named keyspaces, and copies of all of them |
//! | `checkpoint` | a second database that shares files with this one |
//! | `admin`, `verify` | flush, compact, close, statistics and checks on request |
//!
//! Locks, in the order in which they may be taken together: `placing`, `store`, `pressing`, `catalog`, the
//! pipeline's gate, that of `state`, `totals`, and last those inside `record`, `work` and
//! `transactions`. No lock is held while a reader runs. No lock is held across a sync, with three
//! exceptions: `store` (one change at a time), `catalog` (making a keyspace or a branch), and the
//! lock of `record`, which no writer takes.

mod admin;
mod branches;
mod calm;
mod change;
mod checkpoint;
mod compact;
mod core;
mod flush;
mod full;
mod held;
pub mod keyspaces;
mod open;
mod output;
mod push;
mod read;
mod record;
pub mod scan;
mod thin;
mod verify;
mod watch;
mod worker;
mod write;

pub use self::core::Core;
pub use crate::lookup::{Held, Seen, ShortValue};
pub use change::Change;
pub use write::Write;
