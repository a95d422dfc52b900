//! The engines that can be measured, and the interface that they share.
//!
//! `interface` has the traits that the harness drives. `adapters` has one file or folder for each
//! engine; an adapter opens its engine as the engine's own documentation recommends, at the durability
//! class and with the memory asked for, and reports what it set ([`Engine::settings`]), so that a reader
//! of the report can judge the comparison. `native` has the bindings of engines that are loaded at run
//! time. `links` has LinkBench's tables, for the engines that offer transactions.
//!
//! `spec` says what is known of an engine before it is opened, `registry` lists all engines, and
//! `lookup` finds the one that a name means. The registry imports the adapters; no adapter imports the
//! registry.

mod adapters;
mod durability;
mod interface;
pub mod links;
pub mod lookup;
pub mod memory;
#[cfg(any(
    feature = "peer-berkeleydb",
    feature = "peer-capi",
    feature = "peer-splinterdb",
    feature = "peer-wiredtiger"
))]
mod native;
#[cfg(any(
    feature = "peer-berkeleydb",
    feature = "peer-lmdb",
    feature = "peer-redb",
    feature = "peer-splinterdb",
    feature = "peer-sqlite",
    feature = "peer-tidesdb",
    feature = "peer-wiredtiger"
))]
mod pending;
mod registry;
pub mod spec;
mod version;

pub use durability::Durability;
pub use interface::{Cursor, Direction, Engine, EngineBytes, OpenOptions, Session};
pub use lookup::{describe_all, with_links};
pub use spec::{EngineSpec, Tuning};
use version::locked_version;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;
