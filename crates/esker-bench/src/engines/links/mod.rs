//! LinkBench's tables, as an engine answers for them.
//!
//! LinkBench (Facebook, 2013) keeps a graph in two tables. `store` has their rows and the trait
//! [`LinkStore`] that an engine implements; `keys` lays the tables out in one ordered map, and `keyed`
//! implements the trait over the transactions of such a map.

pub mod keyed;
pub mod keys;
mod store;

pub use store::{Count, Link, LinkSession, LinkStore};
