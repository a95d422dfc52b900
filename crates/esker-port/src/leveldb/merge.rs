//! Merges LevelDB's sources into the entries that it would show.
//!
//! The sources are in a list sorted by their present keys. Mostly the first one stays first for
//! many entries, so that a step costs one comparison with the second.

use super::fault::bad;
use super::key::{Order, Tag};
use super::memory;
use super::table::Table;
use crate::sink::Sink;
use crate::{Error, Result};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Entries between two reports of how far reading has come.
const REPORT_ENTRIES: u64 = 4096;

/// Tables that do not overlap, one after the other; one is open at a time.
pub struct Chain {
    rest: std::vec::IntoIter<PathBuf>,
    table: Option<Table>,
    /// Bytes of the tables that are behind.
    done: u64,
}

impl Chain {
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { rest: paths.into_iter(), table: None, done: 0 }
    }

    /// Goes on to a table that has an entry.
    fn settle(&mut self) -> Result<()> {
        while self.table.as_ref().is_none_or(|table| !table.valid()) {
            self.done += self.table.take().map_or(0, |table| table.offset());
            let Some(path) = self.rest.next() else { return Ok(()) };
            self.table = Some(Table::open(&path)?);
        }
        Ok(())
    }
}

/// Where entries come from.
pub enum Source {
    Memory(memory::Cursor),
    Tables(Chain),
}

impl Source {
    fn start(&mut self) -> Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Tables(chain) => chain.settle(),
        }
    }

    fn valid(&self) -> bool {
        match self {
            Self::Memory(cursor) => cursor.valid(),
            Self::Tables(chain) => chain.table.is_some(),
        }
    }

    #[inline]
    fn step(&mut self) -> Result<()> {
        match self {
            Self::Memory(cursor) => cursor.step(),
            Self::Tables(chain) => {
                if let Some(table) = &mut chain.table {
                    table.step()?;
                    if !table.valid() {
                        chain.settle()?;
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn entry(&self) -> (&[u8], Tag, &[u8]) {
        match self {
            Self::Memory(cursor) => (cursor.key(), cursor.tag(), cursor.value()),
            Self::Tables(Chain { table: Some(table), .. }) => {
                let (key, tag) = table.key();
                (key, tag, table.value())
            }
            // Only asked where it is valid.
            Self::Tables(_) => (&[], Tag(0), &[]),
        }
    }

    fn offset(&self) -> u64 {
        match self {
            Self::Memory(_) => 0,
            Self::Tables(chain) => chain.done + chain.table.as_ref().map_or(0, Table::offset),
        }
    }
}

/// The merge.
pub struct Merge {
    /// Sorted by key, newest first among equals; at their ends they leave the list.
    sources: Vec<Source>,
    order: Order,
    last_sequence: u64,
    /// Bytes of the sources that left the list.
    done: u64,
}

impl Merge {
    pub fn new(sources: Vec<Source>, order: Order, last_sequence: u64) -> Result<Self> {
        let mut merge = Self { sources: Vec::new(), order, last_sequence, done: 0 };
        for mut source in sources {
            source.start()?;
            if source.valid() {
                merge.sources.insert(0, source);
                merge.sift();
            }
        }
        Ok(merge)
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (key_a, tag_a, _) = self.sources[a].entry();
        let (key_b, tag_b, _) = self.sources[b].entry();
        self.order.compare(key_a, key_b).then_with(|| tag_b.cmp(&tag_a))
    }

    /// Puts the first source where it belongs.
    #[inline]
    fn sift(&mut self) {
        let mut at = 0;
        while at + 1 < self.sources.len() && self.compare(at, at + 1).is_gt() {
            self.sources.swap(at, at + 1);
            at += 1;
        }
    }

    /// Hands over what LevelDB would show.
    pub fn run(mut self, path: &Path, sink: &mut Sink) -> Result<()> {
        let mut last: Option<Vec<u8>> = None;
        let mut steps = 0;
        while let Some(first) = self.sources.first_mut() {
            let (key, tag, value) = first.entry();
            // What is newer than the last sequence number was never acknowledged to anybody.
            if tag.sequence() <= self.last_sequence {
                let order = last.as_ref().map(|last| self.order.compare(last, key));
                match order {
                    Some(Ordering::Greater) => {
                        return Err(bad(path, 0, "keys are not in the order of the comparator"));
                    }
                    Some(Ordering::Equal) => {}
                    Some(Ordering::Less) | None => {
                        match tag.kind() {
                            Tag::VALUE => sink.entry(key, value)?,
                            Tag::DELETION => {}
                            _ => return Err(Self::unknown_kind(path)),
                        }
                        let last = last.get_or_insert_default();
                        last.clear();
                        last.extend_from_slice(key);
                    }
                }
            }
            first.step()?;
            if first.valid() {
                self.sift();
            } else {
                self.done += first.offset();
                self.sources.remove(0);
            }
            steps += 1;
            if steps % REPORT_ENTRIES == 0 {
                sink.read_bytes(self.done + self.sources.iter().map(Source::offset).sum::<u64>());
            }
        }
        Ok(())
    }

    fn unknown_kind(path: &Path) -> Error {
        bad(path, 0, "an entry is of a kind that LevelDB does not have")
    }
}
