//! Reading many sorted sources as one.
//!
//! A keyspace is spread over memtables, delta runs and base runs. Each shows its entries through
//! a [`Cursor`](crate::base::Cursor): keys ascending, the versions of a key from new to old. Three
//! pieces make one ordered map of them. [`LoserTree`] interleaves the cursors without regard to
//! what the entries mean; compactions use it too. [`Tombstones`] tells which range tombstone hides
//! a key. [`VisibleIter`] puts a snapshot over both: of each key it shows the newest version that
//! the snapshot sees, unless that is a delete or a range tombstone hides it.
//!
//! Everything is generic over the cursor and the key order, so that the path of one entry holds
//! no virtual call; an error of a source always reaches the caller and never looks like the end
//! of the data (C3).

mod loser_tree;
mod source;
#[cfg(test)]
pub(crate) mod testing;
mod tombstones;
mod visible;

pub use loser_tree::LoserTree;
pub use source::{AnyCursor, AnyTombstones};
pub use tombstones::{Span, Tombstones};
pub use visible::{Bounds, Reading, Source, VisibleIter};

pub(crate) use loser_tree::same_key;
pub(crate) use tombstones::{Cover, covering_seq};
