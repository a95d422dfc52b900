//! The sources of an iterator: memtables and runs, behind one type each for entries and tombstones.
//!
//! An enum instead of a trait object lets the compiler see through the calls of every step.

use super::{Span, Tombstones};
use crate::base::rangedel::Fragments;
use crate::base::{Cursor, KeyOrder, Kind, LaterValue, SeekStage, Seq};
use crate::error::Result;
use crate::memtable::{MemCursor, MemorySource, MergedCursor, TombstoneView};
use crate::run::RunCursor;
use std::sync::Arc;

/// A cursor over a memtable or a run.
#[allow(clippy::large_enum_variant, reason = "a few per iterator, and a box would cost each step")]
pub enum AnyCursor<O: KeyOrder> {
    /// Over a memtable.
    Mem(MemCursor<O>),
    /// Over several memtables whose entries were merged.
    Merged(MergedCursor),
    /// Over a run.
    Run(RunCursor<O>),
}

impl<O: KeyOrder> From<MemorySource<O>> for AnyCursor<O> {
    fn from(source: MemorySource<O>) -> Self {
        match source {
            MemorySource::Table(cursor) => Self::Mem(cursor),
            MemorySource::Merged(cursor) => Self::Merged(cursor),
        }
    }
}

macro_rules! forward {
    ($self:ident, $cursor:ident => $call:expr) => {
        match $self {
            AnyCursor::Mem($cursor) => $call,
            AnyCursor::Merged($cursor) => $call,
            AnyCursor::Run($cursor) => $call,
        }
    };
}

impl<O: KeyOrder> Cursor for AnyCursor<O> {
    #[inline]
    fn valid(&self) -> bool {
        forward!(self, cursor => cursor.valid())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        forward!(self, cursor => cursor.key())
    }
    #[inline]
    fn peek(&self) -> Option<(&[u8], Seq, Kind)> {
        forward!(self, cursor => cursor.peek())
    }
    #[inline]
    fn seq(&self) -> Seq {
        forward!(self, cursor => cursor.seq())
    }
    #[inline]
    fn kind(&self) -> Kind {
        forward!(self, cursor => cursor.kind())
    }
    #[inline]
    fn value(&self) -> &[u8] {
        forward!(self, cursor => cursor.value())
    }
    #[inline]
    fn fetch_value(&mut self) -> Result<()> {
        if let Self::Run(cursor) = self { cursor.fetch_value() } else { Ok(()) }
    }
    fn value_later(&self) -> Option<LaterValue> {
        if let Self::Run(cursor) = self { cursor.value_later() } else { None }
    }
    fn is_in_pieces(&self) -> bool {
        matches!(self, Self::Run(cursor) if cursor.is_in_pieces())
    }
    #[inline]
    fn shows_newest(&self) -> bool {
        matches!(self, Self::Run(cursor) if cursor.shows_newest())
    }
    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        forward!(self, cursor => cursor.seek(key, below))
    }
    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        forward!(self, cursor => cursor.seek_before(key))
    }
    #[inline]
    fn prepare_seek(&mut self, key: &[u8], stage: SeekStage) {
        if let Self::Run(cursor) = self {
            cursor.prepare_seek(key, stage);
        }
    }
    fn seek_waiting(&mut self, key: &[u8], below: Seq) -> Result<()> {
        forward!(self, cursor => cursor.seek_waiting(key, below))
    }
    fn seek_to_first_waiting(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_to_first_waiting())
    }
    #[inline]
    fn is_waiting(&self) -> bool {
        matches!(self, Self::Run(cursor) if cursor.is_waiting())
    }
    fn open(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.open())
    }
    fn held(&self) -> u64 {
        forward!(self, cursor => cursor.held())
    }
    fn buffered(&self) -> u64 {
        forward!(self, cursor => cursor.buffered())
    }
    fn take_buffer(&mut self) -> Vec<u8> {
        forward!(self, cursor => cursor.take_buffer())
    }
    fn let_go(&mut self) {
        forward!(self, cursor => cursor.let_go());
    }
    fn seek_to_first(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_to_first())
    }
    fn seek_to_last(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_to_last())
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.next())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.prev())
    }
}

/// The range tombstones of a memtable or a run, shared with it.
#[derive(Debug, Clone)]
pub enum AnyTombstones {
    /// Of a memtable.
    Mem(TombstoneView),
    /// Of a run.
    Run(Arc<Fragments>),
}

impl Tombstones for AnyTombstones {
    fn is_empty(&self) -> bool {
        match self {
            Self::Mem(view) => view.is_empty(),
            Self::Run(fragments) => fragments.is_empty(),
        }
    }

    fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
        match self {
            Self::Mem(view) => view.covering_seq(order, key, below),
            Self::Run(fragments) => fragments.covering_seq(order, key, below),
        }
    }

    fn span<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Span<'_> {
        match self {
            Self::Mem(view) => view.span(order, key),
            Self::Run(fragments) => fragments.span(order, key),
        }
    }
}
