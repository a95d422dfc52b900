//! Reading many sorted sources as one.
//!
//! A keyspace is spread over memtables, delta runs and base runs. Each presents its entries through
//! a [`Cursor`](crate::base::Cursor): keys ascending, the versions of a key from new to old. Three
//! parts combine them into one ordered map. [`LoserTree`] merges the cursors without interpreting
//! the entries; compactions use it too. [`Tombstones`] finds the range tombstone that hides a key.
//! [`VisibleIter`] uses both for a snapshot: it shows the newest version of each key that the
//! snapshot sees, unless this is a delete or a range tombstone hides it.
//!
//! Everything is generic over the cursor and the key order, so that a step makes no virtual call.
//! An error of a source always reaches the caller and never looks like the end of the data (C3).

mod bounds;
mod loser_tree;
mod source;
mod sources;
#[cfg(test)]
pub(crate) mod testing;
mod tombstones;
mod visible;

pub use bounds::Bounds;
pub use loser_tree::LoserTree;
pub use source::{AnyCursor, AnyTombstones};
pub use sources::Sources;
pub use tombstones::{Span, Tombstones};
pub use visible::{Reading, VisibleIter};

pub(crate) use loser_tree::same_key;
pub(crate) use tombstones::{Cover, covering_seq};
