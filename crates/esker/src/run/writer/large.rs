//! Separating large values from their keys while a run is written.
//!
//! A value segment precedes the data segment that refers to it, so while it is written, the blocks of the
//! data segment wait in memory, not compressed: at most about the size of a segment.
//!
//! 1. A data segment and the value segments that were begun for it end together. So a value segment belongs to
//!    one data segment at first; compactions may share it later.
//! 2. All versions of a key stay in one data segment: if blocks of it are in the file already, a value that
//!    comes for a further version of its last key is not separated.
//! 3. What is written as cold data is not separated, unless it was: keys keep their values apart. A value segment has
//!    no dictionary.

use super::RunWriter;
use super::appending::{Appending, Stored};
use super::separation::{MovedBytes, OpenValues, Separation, VALUE_SEGMENTS};
use crate::base::{KeyOrder, Kind, Seq};
use crate::block::Codec;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::run::fetch::ValueMove;
use crate::run::index::{IndexBuilder, Sections};
use crate::run::meta::SegmentMeta;
use crate::run::reference::{ValueRef, ValueUse, ValuesMeta};
use crate::run::warm::{OwnValues, WrittenValues};

/// About the bytes of a reference.
pub(super) const REFERENCE_BYTES: usize = 16;

impl RunWriter {
    /// Adds an entry with a large value, or with a reference to one.
    #[inline(never)]
    pub(super) fn add_large<O: KeyOrder>(
        &mut self,
        order: &O,
        key: &[u8],
        seq: Seq,
        kind: Kind,
        value: &[u8],
    ) -> Result<()> {
        if !kind.is_separated() {
            return self.add_value(order, key, (seq, kind), (value, None));
        }
        let reference = ValueRef::decode(kind, value).map_err(|error| Error::invalid(error.0))?;
        if let Some((pin, range, why)) = self.separation.known.moved(reference)? {
            let value = &pin.bytes()[range.0..range.1];
            return self.add_value(order, key, (seq, kind.joined()), (value, Some(why)));
        }
        let values = self.separation.known.get(reference).cloned();
        let values =
            values.ok_or_else(|| Error::invalid("a run refers to values that are not known"))?;
        let fresh = self.is_fresh(order, key, seq)?;
        self.make_place::<O>(key, value.len(), fresh)?;
        self.separation.refer(&values, reference)?;
        self.put::<O>(key, (seq, kind), (value, reference.len as usize), fresh);
        Ok(())
    }

    /// Adds an entry with a value that is separated if it can be, with the reason why it moves, if it does.
    fn add_value<O: KeyOrder>(
        &mut self,
        order: &O,
        key: &[u8],
        (seq, kind): (Seq, Kind),
        (value, why): (&[u8], Option<ValueMove>),
    ) -> Result<()> {
        let large = value.len() >= self.options.separate_from as usize;
        // Seeded: values that move while their keys turn cold end beside these.
        let moves = why.is_some() && !bug!("run_cold_keys_take_their_values_in");
        let separated = kind.separated().filter(|_| large && (moves || self.cold.is_none()));
        let fresh = self.is_fresh(order, key, seq)?;
        let has_begun = self.open.begun && self.open.blocks > 0 && !self.separation.holds_blocks;
        // Seeded: versions of a key lie in two segments.
        let split = bug!("run_versions_split_for_a_value");
        let Some(separated) = separated.filter(|_| fresh || !has_begun || split) else {
            return self.add_whole(order, key, (seq, kind), value);
        };
        if has_begun {
            self.cut()?;
        }
        self.separation.holds_blocks = true;
        self.make_place::<O>(key, REFERENCE_BYTES, fresh)?;
        // A segment that has begun since holds its blocks only if it expected values.
        self.separation.holds_blocks = true;
        let reference = self.write_value(value, why)?;
        self.put_reference::<O>(key, (seq, separated), (reference, kind, value), fresh)
    }

    /// Adds an entry with a reference to its value, of this kind and of which `stored` is at least the expiry.
    pub(super) fn put_reference<O: KeyOrder>(
        &mut self,
        key: &[u8],
        version: (Seq, Kind),
        (reference, kind, stored): (ValueRef, Kind, &[u8]),
        fresh: bool,
    ) -> Result<()> {
        let mut entry = std::mem::take(&mut self.separation.reference);
        entry.clear();
        reference.encode(kind, stored, &mut entry);
        self.put::<O>(key, version, (&entry, reference.len as usize), fresh);
        self.separation.reference = entry;
        self.write_if_full()
    }

    /// Appends a value, or a piece of one, to the value segment, which begins with the first one; `why`: it moves.
    pub(super) fn write_value(&mut self, value: &[u8], why: Option<ValueMove>) -> Result<ValueRef> {
        let strong = why.is_some_and(ValueMove::is_strong);
        if self.separation.open.is_none() {
            self.begin_values(strong);
        }
        let codec = if strong { Codec::Zstd } else { self.options.values_codec };
        let offset = self.position();
        let Self { separation, id, buffer, encoder: of_keys, raw, .. } = self;
        let Separation { open, block, encoder, warm, .. } = separation;
        // Seeded: values are compressed with a dictionary that no reader of them has.
        let encoder = if bug!("run_values_take_the_dictionary") { of_keys } else { encoder };
        let Some(open) = open else { return Err(Error::invalid("no value segment is open")) };
        block.reset(false);
        block.add(&[], 0, 0, Kind::Put, value);
        let (file, warm) = (*id, warm.as_mut());
        let to = Appending { file, offset, codec, buffer, encoder, warm };
        let Stored { len, codec, checksum } = to.block(block, raw);
        open.index.add(&[], len, codec, checksum, false);
        let reference = ValueRef {
            file: *id,
            offset: open.offset,
            block: open.entries,
            len: value.len() as u32,
            piece: 0,
        };
        open.entries += 1;
        open.raw_bytes += value.len() as u64;
        separation.referred += value.len() as u64;
        open.stored += u64::from(len);
        // Seeded: values that are written for their temperature are not counted.
        if !bug!("run_moved_values_not_counted") {
            separation.moved.add(why, u64::from(len));
        }
        Ok(reference)
    }

    /// Begins a value segment. Nothing of the data segment was written, so that can begin behind.
    fn begin_values(&mut self, cold: bool) {
        let bytes = u64::from(self.options.segment_bytes) * VALUE_SEGMENTS;
        self.align_segment(bytes);
        let (index, offset) = (IndexBuilder::default(), self.position());
        // Nobody is going to read what is cold.
        if let Some(warm) = self.separation.warm.as_mut().filter(|_| !cold) {
            warm.begin(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        let open = OpenValues { offset, index, cold, entries: 0, raw_bytes: 0, stored: 0 };
        self.separation.open = Some(open);
    }

    /// Ends the value segment, if one is open.
    pub(super) fn close_values(&mut self) -> Result<Option<OwnValues>> {
        let Some(open) = self.separation.open.take() else { return Ok(None) };
        let (stored, mut index) = (open.index.stored(), Vec::new());
        open.index.finish(&mut index);
        let mut meta = SegmentMeta::of_values(ValuesMeta {
            file: self.id,
            offset: open.offset,
            len: 0,
            tail_len: 0,
            entries: u64::from(open.entries),
            raw_bytes: open.raw_bytes,
            checksum: 0,
        });
        let filter = Filter::default();
        let sections = Sections { dictionary: None, filter: &filter, index: &index };
        let start = self.append_tail(&mut meta, &sections)?;
        let warm = self.separation.warm.as_mut();
        let index = warm.and_then(|warm| warm.end(&meta, &self.buffer[start..]));
        self.write_if_full()?;
        Ok(Some(OwnValues { meta, index, stored, cold: open.cold }))
    }

    /// Notes that the data segment refers to all of a value segment that was written for it, with so many
    /// entries.
    pub(super) fn use_own(&mut self, values: OwnValues, entries: u64) {
        let meta = values.meta.as_values();
        let used = ValueUse { values: meta, entries, bytes: meta.raw_bytes };
        self.separation.uses.insert(used.place(), used);
        self.separation.own.push(values);
    }

    /// Ends what is written as cold data, if anything is. Returns the bytes that were written since the file had
    /// `before`, and which of them are values that moved.
    pub fn end_cold(&mut self, before: u64) -> Result<(u64, MovedBytes)> {
        self.set_cold(None)?;
        let moved = std::mem::take(&mut self.separation.moved);
        Ok((self.bytes_written().saturating_sub(before), moved))
    }

    /// Ends the value segment, if one is open, to all of which the data segment refers.
    pub(super) fn end_open_values(&mut self) -> Result<()> {
        if let Some(values) = self.close_values()? {
            let entries = values.meta.entries;
            self.use_own(values, entries);
        }
        Ok(())
    }

    /// Ends the value segment, and appends the blocks that waited for it.
    pub(super) fn end_values(&mut self) -> Result<WrittenValues> {
        self.separation.expects_values = self.separation.open.is_some();
        self.end_open_values()?;
        let own = std::mem::take(&mut self.separation.own);
        let others = std::mem::take(&mut self.separation.others);
        let values = WrittenValues { own, others };
        if std::mem::take(&mut self.separation.holds_blocks) {
            self.align_segment(u64::from(self.options.segment_bytes));
            // Seeded: a segment is said to begin where the values before it do.
            if !bug!("run_segment_begins_at_its_values") {
                self.open.offset = self.position();
            }
            self.store_held()?;
        }
        Ok(values)
    }

    /// Appends the blocks that waited.
    fn store_held(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.separation.held);
        let mut begin = 0;
        for block in std::mem::take(&mut self.separation.blocks) {
            self.store_raw(&held[begin..block.end], &block.fence, block.continued);
            begin = block.end;
            self.write_if_full()?;
        }
        if held.capacity() <= self.options.segment_bytes as usize * 2 {
            self.separation.held = held;
            self.separation.held.clear();
        }
        Ok(())
    }
}
