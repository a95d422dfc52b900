//! Walking a run, one pinned block at a time.
//!
//! A step within a block makes no call into the cache: the cursor has a copy of the layout,
//! rebuilds the key in a buffer (prefix, head and remainder together), and leaves the value in the
//! block. Blocks come from the cache or, for compactions, directly from the file in large pieces
//! that bypass the cache.
//!
//! The metadata of a run, which is in memory, has the first and the last key of each segment. Where they
//! say which entry a seek through the cache finds, the cursor can wait there: it shows the key, and reads
//! the segment when it is opened. So a merge reads only what it reaches (S19).

mod blocks;
mod locate;

use super::Run;
use super::fetch::{Fetched, Reading};
use super::index::SharedIndex;
use super::meta::Numbering;
use super::piece::{Direction, Piece, Source};
use super::reference::ValueRef;
use crate::base::{Cursor, KeyOrder, Kind, LaterValue, SEQ_MAX, SeekStage, Seq};
use crate::block::{Block, Layout};
use crate::cache::{BlockCache, Holder};
use crate::error::{Error, Result};
use std::sync::Arc;

/// The minimal number of bytes that are read ahead in one request, if enough blocks are left, where the
/// caller does not say how many.
const PIECE_BYTES: u64 = 256 << 10;

/// A segment and one of its blocks.
type Located = (usize, usize);

/// A cursor over the entries of a run. Range tombstones are not applied.
#[derive(Debug)]
pub struct RunCursor<O: KeyOrder> {
    run: Arc<Run>,
    order: O,
    /// The cache, and what this holds of it.
    holder: Holder,
    fill_cache: bool,
    /// About the bytes that are read at once.
    piece_bytes: u64,
    /// The index of the segment that was entered last, and the segment's number.
    index: Option<(usize, SharedIndex)>,
    /// The segment and block that the next seek begins with, if it was prepared.
    located: Option<Located>,
    /// How many neighbouring blocks were entered in a row.
    streak: usize,
    valid: bool,
    /// It waits at the first entry of `segment`, of which it knows only the key.
    waiting: bool,
    segment: usize,
    block: usize,
    entry: usize,
    count: usize,
    layout: Option<Layout>,
    source: Source,
    /// What was read past the cache.
    piece: Option<Box<Piece>>,
    key: Vec<u8>,
    /// Where the sequence numbers of the segment are.
    numbering: Numbering,
    seq: Seq,
    kind: Kind,
    value: (usize, usize),
    /// The value, if it is separated.
    fetched: Fetched,
    failure: Option<Error>,
}

impl<O: KeyOrder> RunCursor<O> {
    /// A cursor that was not positioned yet. With `fill_cache` blocks go through the cache, and a scan reads more and
    /// more of them at once; else they are read in large pieces.
    pub fn new(run: Arc<Run>, order: O, cache: Arc<BlockCache>, fill_cache: bool) -> Self {
        Self {
            run,
            order,
            holder: Holder::new(cache),
            fill_cache,
            piece_bytes: PIECE_BYTES,
            index: None,
            located: None,
            streak: 0,
            valid: false,
            waiting: false,
            segment: 0,
            block: 0,
            entry: 0,
            count: 0,
            layout: None,
            source: Source::Nowhere,
            piece: None,
            key: Vec::new(),
            numbering: Numbering::default(),
            seq: 0,
            kind: Kind::Put,
            value: (0, 0),
            fetched: Fetched::default(),
            failure: None,
        }
    }

    /// A cursor for a compaction, which reads about so many bytes at once, past the cache.
    pub fn past_cache(run: Arc<Run>, order: O, cache: Arc<BlockCache>, piece_bytes: u64) -> Self {
        Self { piece_bytes, ..Self::new(run, order, cache, false) }
    }

    /// Gives the cursor a buffer for keys, which is empty.
    pub fn with_buffer(mut self, buffer: Vec<u8>) -> Self {
        self.key = buffer;
        self
    }

    /// The run.
    pub fn run(&self) -> &Arc<Run> {
        &self.run
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.source.bytes(self.piece.as_deref())
    }

    fn current(&self) -> Option<Block<'_>> {
        self.layout.as_ref().map(|layout| Block::new(self.bytes(), layout))
    }

    /// Takes over the entry at `entry`; `same` if the key buffer holds another key of this block.
    #[inline]
    fn show(&mut self, entry: usize, same: bool) {
        let Some(layout) = &self.layout else { return };
        let bytes = self.source.bytes(self.piece.as_deref());
        let block = Block::new(bytes, layout);
        if same {
            block.next_key_into(entry, &mut self.key);
        } else {
            block.key_into(entry, &mut self.key);
        }
        let (stored, kind) = block.version(entry);
        (self.seq, self.kind) = (self.numbering.seq(stored), kind);
        self.value = block.value_range(entry);
        self.entry = entry;
        self.valid = true;
        if kind.is_separated() || self.fetched.separated {
            self.separate(kind);
        }
    }

    /// Notes whether the value of the entry is separated. Readers see a put whose value is to be fetched,
    /// and compactions the reference.
    #[cold]
    fn separate(&mut self, kind: Kind) {
        // Seeded: a scan shows the value of the entry before in place of one that stands in its entry.
        bug!("run_fetched_value_stays", {
            if !kind.is_separated() {
                return;
            }
        });
        let held = self.fetched.held();
        self.fetched.reset(kind.is_separated());
        if held > 0 {
            self.holder.hold(self.holder.bytes().saturating_sub(held));
        }
        if self.fill_cache {
            self.kind = kind.joined();
        }
    }

    /// The kind that stands in the block, of an entry whose value is separated.
    fn stored_kind(&self) -> Kind {
        self.kind.separated().unwrap_or(self.kind)
    }

    #[cold]
    fn fetch(&mut self) -> Result<()> {
        let owner = &self.run.segments[self.segment];
        let kind = self.stored_kind();
        let reading = Reading { cache: self.holder.cache(), through_cache: self.fill_cache };
        let mut fetched = std::mem::take(&mut self.fetched);
        let stored = &self.bytes()[self.value.0..self.value.1];
        let found = fetched.fetch(owner, (kind, stored), reading);
        self.fetched = fetched;
        (self.value, self.kind) = (found?, kind.joined());
        if let (Source::Frame(pin), Some((_, index))) = (&self.source, &self.index) {
            self.holder.hold(pin.size() + index.bytes() + self.fetched.held());
        }
        Ok(())
    }

    fn seek_inner(&mut self, key: &[u8], below: Seq) -> Result<()> {
        let Some((segment, mut block)) = self.locate(key)? else { return self.first_inner() };
        self.enter(segment, block, Direction::Forward)?;
        let below = self.numbering.bound(below);
        loop {
            let found = self.current().map_or(0, |b| b.lower_bound(&self.order, key, below));
            if found < self.count {
                self.show(found, false);
                return Ok(());
            }
            let index = self.index.as_ref().map(|(_, index)| index);
            if !index.is_some_and(|index| index.continues(&self.order, block + 1, key)) {
                return self.step_block(Direction::Forward);
            }
            block += 1;
            self.enter(segment, block, Direction::Forward)?;
        }
    }

    /// A seek to what is not [near](Self::near).
    fn seek_from_root(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.position(|cursor| cursor.seek_inner(key, below))
    }

    fn seek_before_inner(&mut self, key: &[u8]) -> Result<()> {
        let Some((segment, block)) = self.locate(key)? else { return Ok(()) };
        self.enter(segment, block, Direction::Backward)?;
        // Every version of `key` is below the bound, so this is the newest one.
        let found = self.current().map_or(0, |b| b.lower_bound(&self.order, key, SEQ_MAX + 1));
        match found.checked_sub(1) {
            Some(before) => self.show(before, false),
            None => self.step_block(Direction::Backward)?,
        }
        Ok(())
    }

    fn first_inner(&mut self) -> Result<()> {
        self.first_of(0)
    }

    fn first_of(&mut self, segment: usize) -> Result<()> {
        if segment < self.run.segments.len() {
            self.enter(segment, 0, Direction::Forward)?;
            self.show(0, false);
        }
        Ok(())
    }

    fn last_inner(&mut self) -> Result<()> {
        let Some(segment) = self.run.segments.len().checked_sub(1) else { return Ok(()) };
        let blocks = self.index(segment)?.places.len();
        self.enter(segment, blocks - 1, Direction::Backward)?;
        self.show(self.count - 1, false);
        Ok(())
    }

    /// Positions anew: clears an earlier failure and keeps a new one. What was prepared is for this
    /// move only.
    fn position(&mut self, go: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.failure = None;
        (self.valid, self.waiting) = (false, false);
        self.streak = 0;
        let result = go(self);
        self.located = None;
        self.keep_failure(result)
    }

    fn keep_failure(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            // Seeded: a scan ends at a damaged block as if nothing followed, without an error.
            bug!("run_cursor_ends_at_damage", {
                self.valid = false;
                return Ok(());
            });
            self.valid = false;
            self.failure = Some(error.clone());
        }
        result
    }

    #[cold]
    fn leave_block(&mut self, direction: Direction) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if !self.valid {
            return Ok(());
        }
        let result = self.step_block(direction);
        self.keep_failure(result)
    }
}

impl<O: KeyOrder> Cursor for RunCursor<O> {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    fn peek(&self) -> Option<(&[u8], Seq, Kind)> {
        self.valid.then_some((&self.key, self.seq, self.kind))
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.seq
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.kind
    }

    #[inline]
    fn value(&self) -> &[u8] {
        let bytes = self.fetched.bytes().unwrap_or_else(|| self.bytes());
        &bytes[self.value.0..self.value.1]
    }

    fn value_later(&self) -> Option<LaterValue> {
        if self.fetched.is_there() {
            return None;
        }
        let kind = self.stored_kind();
        let owner = &self.run.segments[self.segment];
        Some(owner.value_later(kind, self.value(), self.holder.cache()))
    }

    fn is_in_pieces(&self) -> bool {
        // What is no reference is reported when the value is read.
        let reference = || ValueRef::decode(self.stored_kind(), self.value());
        !self.fetched.is_there() && reference().is_ok_and(|found| found.is_in_pieces())
    }

    #[inline]
    fn shows_newest(&self) -> bool {
        let newest = if self.entry == 0 {
            !self.may_continue()
        } else {
            self.current().is_some_and(|block| block.is_newest::<O>(self.entry))
        };
        // Seeded: an entry counts as the newest of its key although a newer one is before it.
        (newest || bug!("run_newest_although_one_precedes")) && self.fetched.is_there()
    }

    #[inline]
    fn fetch_value(&mut self) -> Result<()> {
        if self.fetched.is_there() {
            return Ok(());
        }
        let result = self.fetch();
        self.keep_failure(result)
    }

    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        if let Some(entry) = self.near(key, below) {
            self.stay(entry);
            return Ok(());
        }
        self.seek_from_root(key, below)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        if let Some(entry) = self.near(key, SEQ_MAX + 1) {
            self.stay(entry - 1);
            return Ok(());
        }
        self.position(|cursor| cursor.seek_before_inner(key))
    }

    fn prepare_seek(&mut self, key: &[u8], stage: SeekStage) {
        if stage == SeekStage::Locate {
            self.located = None;
            // What is near is in the block that the cursor has.
            if self.near(key, SEQ_MAX + 1).is_none() {
                self.locate_ahead(key);
            }
        }
        if let (Some((_, block)), Some((_, index))) = (self.located, &self.index) {
            match stage {
                SeekStage::Locate => index.slots.prefetch(block),
                SeekStage::Fetch => index.slots.prefetch_frame(block),
            }
        }
    }

    fn seek_waiting(&mut self, key: &[u8], below: Seq) -> Result<()> {
        if self.located.is_none() {
            if let Some(entry) = self.near(key, below) {
                self.stay(entry);
                return Ok(());
            }
            self.locate_ahead(key);
        }
        match self.segment_behind(key).filter(|_| self.fill_cache) {
            Some(segment) => self.position(|cursor| {
                cursor.wait_at(segment);
                Ok(())
            }),
            None => self.seek_from_root(key, below),
        }
    }

    fn seek_to_first_waiting(&mut self) -> Result<()> {
        if !self.fill_cache {
            return self.seek_to_first();
        }
        self.position(|cursor| {
            cursor.wait_at(0);
            Ok(())
        })
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        self.waiting
    }

    fn held(&self) -> u64 {
        self.holder.bytes()
    }

    fn buffered(&self) -> u64 {
        self.key.capacity() as u64
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.key)
    }

    fn let_go(&mut self) {
        (self.valid, self.waiting) = (false, false);
        (self.index, self.located, self.layout) = (None, None, None);
        self.source = Source::Nowhere;
        self.fetched.let_go();
        // Seeded: what was let go counts until the iterator moves.
        bug!("run_let_go_still_counts", return);
        self.holder.hold(0);
    }

    fn open(&mut self) -> Result<()> {
        if !self.waiting {
            return Ok(());
        }
        let segment = self.segment;
        self.position(|cursor| cursor.first_of(segment))
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.position(Self::first_inner)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.position(Self::last_inner)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.valid && self.entry + 1 < self.count {
            self.show(self.entry + 1, true);
            return Ok(());
        }
        self.leave_block(Direction::Forward)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.valid && self.entry > 0 {
            self.show(self.entry - 1, true);
            return Ok(());
        }
        self.leave_block(Direction::Backward)
    }
}
