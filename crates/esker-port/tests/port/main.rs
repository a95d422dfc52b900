//! Dumps, and imports from other stores: each module fills what it reads by itself.
//!
//! One program, because each that is linked by itself takes longer to link than to run.
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod docs;
mod dump_load;
#[cfg(feature = "import-fjall")]
mod fjall;
mod large;
mod leveldb;
mod lmdb;
#[cfg(feature = "import-redb")]
mod redb;
mod resume;
#[cfg(feature = "import-rocksdb")]
mod rocksdb;
mod support;
