//! LinkBench: the graph that it loads, and the two phases on it.
//!
//! The tables are those of LinkBench's schema for MySQL; each engine keeps them in its own way
//! ([`crate::engines::links`]). Loaders take chunks of ids in turn, and commit batches of links and
//! batches of counts (`load`). Requests are drawn from LinkBench's mix (`requests`). After either
//! phase, the tables of some ids are read back and compared (`verify`).

mod ends;
mod graph;
mod load;
mod phase;
mod place;
mod requests;
mod verify;

pub use graph::Graph;
pub use phase::{Phase, run};
pub use place::Place;
