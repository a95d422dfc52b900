//! The memtable: holds writes in key order until they are flushed.
//!
//! A memtable is a concurrent skiplist in an arena, with the first 8 bytes of each key in its node.
//! A Bloom filter lets reads of absent keys skip it, and a separate list holds range tombstones
//! (R18). Any number of threads insert and read at the same time without locks. The sequence number
//! of a reader decides what it sees, never the timing.
//!
//! One table serves all bytewise keyspaces of a database, with the keyspace id before the key
//! (R14, R16); each keyspace with a custom comparator has its own table, without heads and filter
//! (R15).
//!
//! Memory ordering: the contents of a node are written before a `Release` store links it, and
//! readers follow links with `Acquire`, so a reader that finds an entry sees it complete. A reader
//! is sure to find an entry only if it is ordered after the return of `insert`, for example by
//! `visible` of the commit pipeline. The bits of the filter rely on the same order and are relaxed.
//!
//! The heads of `arena`, `node`, `skiplist` and `tombstones` state their invariants.

mod arena;
mod bloom;
mod build;
mod cursor;
mod merged;
mod node;
mod prefetch;
mod several;
mod skiplist;
mod table;
#[cfg(test)]
mod tests;
mod tombstones;

pub use build::MemtableBuilder;
pub use cursor::MemCursor;
pub use merged::{MemorySource, Merged, MergedCursor};
pub use several::Several;
pub use table::{Found, Memtable, Pending};
pub use tombstones::TombstoneView;
