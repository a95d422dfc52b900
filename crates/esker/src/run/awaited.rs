//! What a search of a key would read, so that the reads of several keys are asked for at once.
//!
//! A search asks for one block after the other and waits for each, though a device serves many requests in the time of
//! one. A caller that has several keys finds out what each of them waits for ([`Run::awaits`], under an epoch and without
//! I/O), says all of that to the system ([`AwaitedRange::ask`]), and searches then (`api/together.rs`). What is said is a
//! hint: it decides nothing, and what was not foreseen is read as always.

use super::file::RunFile;
use super::get::Wanted;
use super::located::{Located, Location};
use super::segment::Segment;
use super::{Role, Run};
use crate::base::KeyOrder;
use crate::block::tag_of;
use crate::cache::BlockCache;
use crate::error::Result;
use crate::sync::Guard;
use crate::trace::Purpose;
use std::sync::Arc;

/// Bytes that a search would read next.
#[derive(Debug)]
pub struct Awaited {
    segment: Arc<Segment>,
    /// The block that is read; `None`: the index.
    block: Option<usize>,
}

/// How a search would leave a run.
#[derive(Debug)]
pub enum Awaits {
    /// For the next one: this has no version of the key.
    NextRun,
    /// With its answer, as far as memory tells.
    Nothing,
    /// After it has read this.
    Read(Awaited),
}

impl Run {
    /// What a search of this run would read first. Range tombstones count for nothing here.
    pub fn awaits<O: KeyOrder>(&self, order: &O, wanted: Wanted<'_>, guard: &Guard) -> Awaits {
        match self.locate_entry(order, wanted, guard) {
            Location::Absent(_) => Awaits::NextRun,
            Location::Unknown => Awaits::Nothing,
            Location::Unread(segment) => Awaits::Read(Awaited::index(segment)),
            Location::Block(located) => {
                located.awaits(order, wanted, guard).unwrap_or(Awaits::Nothing)
            }
        }
    }
}

impl Located<'_> {
    /// The same for the run whose block was found. An error is left to the search.
    fn awaits<O: KeyOrder>(&self, order: &O, wanted: Wanted<'_>, guard: &Guard) -> Result<Awaits> {
        let Self { run, segment, index, block, .. } = *self;
        let Some(view) = index.slots.get(block, guard) else {
            let filter = &index.filter;
            let excluded =
                run.role == Role::Base && !filter.is_empty() && !filter.may_contain(wanted.hash);
            return Ok(match excluded {
                true => Awaits::NextRun,
                false => Awaits::Read(Awaited { segment: segment.clone(), block: Some(block) }),
            });
        };
        let frame = view.block();
        let below = index.numbering.bound(wanted.below);
        let Some(entry) = frame.get(order, wanted.key, tag_of(wanted.hash), below) else {
            let ends = !index.continues(order, block + 1, wanted.key);
            return Ok(if ends { Awaits::NextRun } else { Awaits::Nothing });
        };
        let (_, kind) = frame.version(entry);
        if !kind.is_separated() {
            return Ok(Awaits::Nothing);
        }
        let range = frame.value_range(entry);
        let (reference, values) = segment.referred(kind, &view.bytes()[range.0..range.1])?;
        let Some(index) = values.index_cached(guard) else {
            return Ok(Awaits::Read(Awaited::index(values)));
        };
        if reference.is_in_pieces() {
            return Ok(Awaits::Nothing);
        }
        let block = values.value_block(reference, index)?;
        Ok(match index.slots.is_vacant(block) {
            true => Awaits::Read(Awaited { segment: values.clone(), block: Some(block) }),
            false => Awaits::Nothing,
        })
    }
}

impl Awaited {
    fn index(segment: &Arc<Segment>) -> Self {
        Self { segment: segment.clone(), block: None }
    }

    /// Whether it is an index: then it says what is read after it.
    pub fn is_index(&self) -> bool {
        self.block.is_none()
    }

    /// Whether both are the same bytes.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.segment, &other.segment) && self.block == other.block
    }

    /// Where its bytes are; `None`: the index that says it has gone. Do not call it inside an epoch.
    pub fn place(&self) -> Option<AwaitedRange> {
        let meta = self.segment.meta();
        let (offset, len) = match self.block {
            None => (meta.tail_offset(), meta.tail_len.into()),
            Some(block) => self.segment.reads_for(block)?,
        };
        Some(AwaitedRange { file: self.segment.file().clone(), offset, len })
    }

    /// Reads the index, so that a search goes on to what is behind it.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(&self, cache: &Arc<BlockCache>) -> Result<()> {
        self.segment.index(cache, Purpose::Get).map(|_| ())
    }
}

/// Bytes of a file.
#[derive(Debug)]
pub struct AwaitedRange {
    file: Arc<RunFile>,
    offset: u64,
    /// How many there are.
    pub len: u64,
}

impl PartialEq for AwaitedRange {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && self.offset == other.offset && self.len == other.len
    }
}

impl AwaitedRange {
    /// Asks the system to read them, and does not wait. May open the file; do not call it inside an epoch.
    pub fn ask(&self) {
        // Seeded: the reads of several keys wait for the device one after the other.
        bug!("run_nothing_is_asked_ahead", return);
        self.file.read_ahead(self.offset, self.len);
    }
}
