//! The experiments, one file each: steps, settings, published figures, and what differs here.
//!
//! A new experiment is a file with an `Experiment`, and a line in `list`.

mod influx;
mod inserts;
mod leveldb;
mod links;
mod list;
mod splinterdb;
mod step;

pub use list::{ALL, find};
