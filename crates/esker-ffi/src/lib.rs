//! The functions of libesker, the C interface of Esker.
//!
//! This crate holds them as a Rust library, for tests and fuzzing; `esker-capi` makes the shared
//! and the static library of them, and keeps their header, which is generated from this source.
//! The engine does the work; this crate turns pointers and lengths into the engine's arguments, and
//! the engine's answers into C values.
//!
//! # The contract of the border
//!
//! Every exported function is `unsafe` for the same reasons. Callers promise:
//!
//! - **B1** A pointer to a handle is NULL, or came from this library and was not freed since. Each
//!   handle begins with a word that names its kind, which is checked; only a pointer to freed or
//!   foreign memory cannot be detected.
//! - **B2** A pointer to bytes with a length points to that many readable bytes, until the call
//!   returns; with the length zero it may be anything.
//! - **B3** A pointer to a result is NULL or points to a writable place of its type.
//! - **B4** Batches, ingestions, iterators, readers of values, transactions and options are used by one
//!   thread at a time.
//!   Databases, keyspaces, snapshots, values, errors, callbacks and their contexts may be used by
//!   many at once. Nothing is freed while another thread uses it.
//! - **B5** Callbacks return, and neither throw nor jump out.
//!
//! The library promises in turn: no panic crosses the border (`border::border` catches it), a
//! result is NULL or zero after an error, and nothing is kept outside of handles.

#![allow(non_camel_case_types, reason = "types are named as C sees them")]
#![allow(clippy::too_many_arguments, reason = "C passes a pointer and a length for each text")]
#![allow(clippy::missing_safety_doc, reason = "the contract is the same for all and stands above")]

mod batch;
mod border;
mod callbacks;
mod code;
mod counts;
mod database;
mod error;
mod explain;
mod fault;
mod handle;
mod ingestion;
mod iterator;
mod keyspace;
mod maintenance;
mod operators;
mod options;
mod roots;
mod snapshot;
mod streamed;
mod text;
mod transact;
mod txn;
mod txn_iter;
mod value;

pub use batch::*;
pub use callbacks::*;
pub use code::*;
pub use counts::*;
pub use database::*;
pub use error::*;
pub use explain::*;
pub use fault::*;
pub use ingestion::*;
pub use iterator::*;
pub use keyspace::*;
pub use maintenance::*;
pub use operators::*;
pub use options::*;
pub use roots::*;
pub use snapshot::*;
pub use streamed::*;
pub use transact::*;
pub use txn::*;
pub use txn_iter::*;
pub use value::*;
