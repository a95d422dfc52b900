//! Where writes stand, in order, until they are flushed.
//!
//! A memtable is a concurrent skiplist in an arena, with the first 8 bytes of each key in its
//! node, a Bloom filter in front so that reads of absent keys skip it, and a side list of range
//! tombstones (R18). Any number of threads insert and read at the same time without locks; what a
//! reader may see is decided by the sequence number it reads at, never by timing.
//!
//! One table serves all bytewise keyspaces of a database, with the keyspace id before the key
//! (R14, R16); each keyspace with a custom comparator has its own table, without heads and filter
//! (R15).
//!
//! Memory ordering: a node's contents are written before it is linked with `Release` and links
//! are followed with `Acquire`, so a reader that finds an entry finds it whole. Only readers that
//! are ordered after the return of `insert` (through the commit pipeline's `visible`, say) are sure
//! to find it; the filter's bits rest on the same order and are relaxed.
//!
//! Invariants of the parts stand at their heads: `arena`, `node`, `skiplist`, `tombstones`.

mod arena;
mod bloom;
mod build;
mod cursor;
mod node;
mod prefetch;
mod skiplist;
mod table;
#[cfg(test)]
mod tests;
mod tombstones;

pub use arena::ChunkPool;
pub use build::MemtableBuilder;
pub use cursor::MemCursor;
pub use table::{Found, Memtable, Pending};
pub use tombstones::TombstoneView;
