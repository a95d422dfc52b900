//! The entries that are only in LevelDB's logs: LevelDB would have them in its memtable.

use super::key::{Order, Tag};
use super::log::Log;
use crate::{Engine, Result};
use esker::internals::base::codec::{DecodeError, Decoded, Reader};
use std::ops::Range;
use std::path::Path;

/// Sequence number and count at the start of a batch.
const BATCH_HEAD_BYTES: usize = 12;
const BYTES_MAX: usize = u32::MAX as usize;

/// One operation: places in the bytes.
#[derive(Debug, Clone)]
struct Place {
    key: Range<usize>,
    value: Range<usize>,
    tag: Tag,
}

/// The operations of the logs.
#[derive(Debug, Default)]
pub struct Memory {
    bytes: Vec<u8>,
    places: Vec<Place>,
    last_sequence: u64,
}

impl Memory {
    /// Reads a log. Returns the bytes read.
    pub fn replay(&mut self, path: &Path) -> Result<u64> {
        let mut log = Log::open(Engine::LevelDb, path)?;
        loop {
            let Some(record) = log.next()? else { return Ok(log.offset()) };
            if let Err(error) = self.batch(record) {
                return Err(log.bad(&format!("a batch makes no sense ({error})")));
            }
        }
    }

    fn batch(&mut self, record: &[u8]) -> Decoded<()> {
        let mut reader = Reader::new(record);
        let (sequence, count) = (reader.u64()?, reader.u32()?);
        let base = self.bytes.len();
        self.bytes.extend_from_slice(record);
        let part = |reader: &mut Reader<'_>| -> Decoded<Range<usize>> {
            let len = reader.bytes(BYTES_MAX)?.len();
            let end = base + reader.position();
            Ok(end - len..end)
        };
        debug_assert_eq!(reader.position(), BATCH_HEAD_BYTES);
        for index in 0..u64::from(count) {
            let kind = reader.u8()?;
            let key = part(&mut reader)?;
            let value = match kind {
                Tag::VALUE => part(&mut reader)?,
                Tag::DELETION => 0..0,
                _ => return Err(DecodeError("it has an operation that is not known")),
            };
            let sequence = sequence.wrapping_add(index);
            if sequence >= 1 << 56 {
                return Err(DecodeError("its sequence number is too large"));
            }
            self.places.push(Place { key, value, tag: Tag::new(sequence, kind) });
            self.last_sequence = self.last_sequence.max(sequence);
        }
        if !reader.is_empty() {
            return Err(DecodeError("it has more operations than it says"));
        }
        Ok(())
    }

    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Puts keys in order, and of one key the newest first.
    pub fn sort(&mut self, order: &Order) {
        let bytes = &self.bytes;
        self.places.sort_by(|a, b| {
            let keys = order.compare(&bytes[a.key.clone()], &bytes[b.key.clone()]);
            keys.then_with(|| b.tag.cmp(&a.tag))
        });
    }

    pub fn cursor(self) -> Cursor {
        Cursor { memory: self, at: 0 }
    }
}

/// Steps over the operations.
pub struct Cursor {
    memory: Memory,
    at: usize,
}

impl Cursor {
    pub fn valid(&self) -> bool {
        self.at < self.memory.places.len()
    }

    pub fn key(&self) -> &[u8] {
        &self.memory.bytes[self.memory.places[self.at].key.clone()]
    }

    pub fn value(&self) -> &[u8] {
        &self.memory.bytes[self.memory.places[self.at].value.clone()]
    }

    pub fn tag(&self) -> Tag {
        self.memory.places[self.at].tag
    }

    pub fn step(&mut self) {
        self.at += 1;
    }
}
