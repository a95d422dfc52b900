//! One adapter for each engine: how it is opened, and how its calls become those of the interface.
//!
//! An adapter imports the interface and what engines share, never another engine's adapter (except
//! `faulty`, which spoils `mem`) and never the registry. The head of each file says what the adapter
//! sets, and what each durability class means for its engine.

#[cfg(feature = "peer-berkeleydb")]
pub mod berkeleydb;
pub mod esker;
pub mod faulty;
#[cfg(feature = "peer-fjall")]
pub mod fjall;
#[cfg(feature = "peer-capi")]
pub mod leveldb;
#[cfg(feature = "peer-lmdb")]
pub mod lmdb;
#[cfg(feature = "peer-mariadb")]
pub mod mariadb;
pub mod mem;
pub mod null;
#[cfg(feature = "peer-redb")]
pub mod redb;
#[cfg(feature = "peer-rocksdb")]
pub mod rocksdb;
#[cfg(feature = "peer-sled")]
pub mod sled;
#[cfg(feature = "peer-splinterdb")]
pub mod splinterdb;
#[cfg(feature = "peer-sqlite")]
pub mod sqlite;
#[cfg(feature = "peer-tidesdb")]
pub mod tidesdb;
#[cfg(feature = "peer-wiredtiger")]
pub mod wiredtiger;
