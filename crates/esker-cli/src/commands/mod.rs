//! The commands that do one thing and end.
//!
//! Each has its own file with its arguments and a function that opens the database, does the work
//! and prints the answer. Commands that only read open the database read-only and change no byte.
//! `completions` and `man` describe the program itself and open nothing.

pub mod branch;
pub mod checkpoint;
pub mod compact;
pub mod completions;
pub mod del;
pub mod delrange;
pub mod drop;
pub mod dump;
pub mod events;
pub mod explain;
pub mod get;
pub mod import;
pub mod inspect;
pub mod keyspaces;
pub mod load;
pub mod man;
pub mod put;
pub mod repair;
pub mod scan;
pub mod serve_metrics;
pub mod stats;
pub mod top;
pub mod verify;
