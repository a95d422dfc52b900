//! The commands that do one thing and end.
//!
//! Each has its own file with its arguments and a function that opens the database, does the work
//! and prints the answer. Commands that only read open the database read-only and change no byte.

pub mod branch;
pub mod checkpoint;
pub mod compact;
pub mod del;
pub mod dump;
pub mod events;
pub mod explain;
pub mod get;
pub mod import;
pub mod inspect;
pub mod keyspaces;
pub mod load;
pub mod put;
pub mod repair;
pub mod scan;
pub mod serve_metrics;
pub mod stats;
pub mod top;
pub mod verify;
