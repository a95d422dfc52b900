//! LevelDB's C interface (`leveldb/c.h`, version 1.23) on Esker.
//!
//! Programs that were written and compiled for LevelDB link with this library instead. All 68
//! functions are here, with LevelDB's rules of ownership and its wording of errors where programs
//! rely on it; `docs/leveldb.md` lists the differences. `cargo xtask leveldb-dropin` adds the C++
//! half, in `cxx/`, and makes the shared library that takes the place of LevelDB's.
//!
//! | module | what |
//! |---|---|
//! | `border` | the basics of every function: pointers, lengths, `malloc` and panics |
//! | `status` | the engine's errors in LevelDB's words |
//! | `options`, `comparator`, `objects` | what a program sets up before it opens a database |
//! | `handles` | what stands behind the handles of databases and snapshots |
//! | `database`, `iterator`, `batch` | the work |
//! | `open`, `manage`, `properties`, `rep` | the parts of it that need no pointer |
//! | `cxx` | a few functions more, for the C++ half only |
//!
//! # The contract of the border
//!
//! It is LevelDB's and applies to every function. Callers promise:
//!
//! - **L1** A pointer to an object came from this library and was not destroyed since. NULL is
//!   taken wherever LevelDB takes it, and everywhere else it does nothing or gives an error.
//! - **L2** A pointer to bytes with a length points to that many readable bytes until the call
//!   returns; with the length zero it may be anything.
//! - **L3** `errptr` is NULL or points to NULL or to an error that this library returned, which is
//!   then freed and replaced.
//! - **L4** Databases, snapshots, caches, environments and comparators may be used by many threads
//!   at once; iterators, batches and options by one at a time.
//! - **L5** Iterators and snapshots are destroyed before their database is closed. (Iterators and
//!   snapshots that are left over are safe here: they give errors.)
//! - **L6** A comparator outlives the databases that were opened with it. (One that was destroyed
//!   too early ends writing, with an error.)
//! - **L7** Callbacks return, and neither throw nor jump out.
//!
//! The library promises in turn that no panic crosses the border.

// The names are those of the header.
#![allow(clippy::missing_safety_doc, reason = "the contract is told once, above")]
#![allow(non_camel_case_types, reason = "the types are named as in LevelDB's header")]

mod batch;
mod border;
mod comparator;
mod cxx;
mod database;
mod handles;
mod iterator;
mod manage;
mod objects;
mod open;
mod options;
mod properties;
mod rep;
mod status;

pub use batch::*;
pub use comparator::*;
pub use cxx::*;
pub use database::*;
pub use handles::*;
pub use iterator::*;
pub use objects::*;
pub use options::*;
