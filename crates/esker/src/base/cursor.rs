//! The interface by which memtables and runs expose their entries.

use crate::base::{Kind, SEQ_MAX, Seq};
use crate::error::Result;

/// The stages of [`Cursor::prepare_seek`]. Each needs memory that the one before it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekStage {
    /// Find the block.
    Locate,
    /// Ask for the memory of the block.
    Fetch,
}

/// Reads a value, wherever the cursor stands by then.
pub type LaterValue = Box<dyn FnOnce() -> Result<Vec<u8>> + Send>;

/// A position among entries that are sorted by key (in the keyspace's order), and by sequence
/// number **from new to old** within a key.
///
/// A new cursor is not valid until it is positioned. The accessors `key`, `seq`, `kind` and
/// `value` may be called only while `valid()`; what they return stays the same until the cursor
/// moves. Moving past either end makes the cursor invalid, without an error. After an error the
/// cursor is invalid, and every later move returns an error again until it is positioned anew.
pub trait Cursor {
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// The key, the sequence number and the kind of the entry; `None`: the cursor stands on none. A cursor that waits has
    /// only the key to tell, and the rest means nothing. A merge asks once for each move.
    fn peek(&self) -> Option<(&[u8], Seq, Kind)> {
        let known = self.valid() && !self.is_waiting();
        let (seq, kind) = if known { (self.seq(), self.kind()) } else { (0, Kind::Put) };
        self.valid().then(|| (self.key(), seq, kind))
    }
    /// The user key of the entry.
    fn key(&self) -> &[u8];
    /// The sequence number of the entry; 0 if a compaction cleared it, since every reader sees the
    /// entry.
    fn seq(&self) -> Seq;
    /// The kind of the entry.
    fn kind(&self) -> Kind;
    /// The value; empty for a delete. If the cursor's source separates values from keys, it may be called
    /// only after [`Self::fetch_value`]; a cursor for compactions shows the reference until then.
    fn value(&self) -> &[u8];
    /// Reads the value of the entry if it is not there yet. By default it always is.
    fn fetch_value(&mut self) -> Result<()> {
        Ok(())
    }
    /// What reads the value of the entry later; `None`: it is there. By default it always is.
    fn value_later(&self) -> Option<LaterValue> {
        None
    }
    /// Whether the value of the entry is in pieces and was not read. By default none is.
    fn is_in_pieces(&self) -> bool {
        false
    }
    /// Whether it is known, without a look at others, that the entry is the newest of its key in the
    /// cursor's source, and the value is there. By default it is not known.
    fn shows_newest(&self) -> bool {
        false
    }
    /// Goes to the first entry, in cursor order, whose key is greater than `key`, or equal with a
    /// sequence number **less than** `below`.
    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()>;
    /// Goes to the last entry, in cursor order, whose key is **less than** `key`.
    fn seek_before(&mut self, key: &[u8]) -> Result<()>;
    /// Starts to fetch what a seek to `key`, or before it, will look at. A merge calls it for all its
    /// cursors, once for each stage, before it moves the first of them, so that the processor waits for
    /// the memory of all sources at once. The next move must be that seek. By default it does nothing.
    fn prepare_seek(&mut self, _key: &[u8], _stage: SeekStage) {}
    /// Like [`Self::seek`], but a cursor that knows the key of that entry without reading it may wait
    /// there. Until a waiting cursor is [opened](Self::open) or positioned anew, only `valid`, `key` and
    /// `peek` may be called. By default it does not wait.
    fn seek_waiting(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.seek(key, below)
    }
    /// Like [`Self::seek_to_first`], but may wait.
    fn seek_to_first_waiting(&mut self) -> Result<()> {
        self.seek_to_first()
    }
    /// Whether the cursor waits: it has not read the entry of which it shows the key.
    fn is_waiting(&self) -> bool {
        false
    }
    /// Reads the entry at which the cursor waits.
    fn open(&mut self) -> Result<()> {
        Ok(())
    }
    /// Bytes of blocks and indexes that it holds. By default none.
    fn held(&self) -> u64 {
        0
    }
    /// Bytes of its own buffers. By default none.
    fn buffered(&self) -> u64 {
        0
    }
    /// Gives its buffer away, before it is dropped, so that another cursor can have it. By default it has none.
    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }
    /// Lets go what it holds. It is not valid until it is positioned again.
    fn let_go(&mut self) {}
    /// Goes to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Goes to the first entry whose key is not less than `start`; `None`: to the first entry.
    fn seek_start(&mut self, start: Option<&[u8]>) -> Result<()> {
        match start {
            Some(start) => self.seek(start, SEQ_MAX),
            None => self.seek_to_first(),
        }
    }
    /// Goes to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Goes one entry forward. The cursor must be valid.
    fn next(&mut self) -> Result<()>;
    /// Goes one entry back. The cursor must be valid.
    fn prev(&mut self) -> Result<()>;
}
