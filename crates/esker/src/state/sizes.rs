//! About how many bytes a range of keys takes, in memtables and in files.
//!
//! Entries of memtables are counted one by one, because there are few memtables. Of a run segment the
//! index tells how many bytes lie before a key, so a range costs two searches in each segment that
//! it touches.

use super::State;
use super::counts::{Within, tables};
use super::memtables::DbOrder;
use crate::base::Cursor;
use crate::cache::BlockCache;
use crate::error::Result;
use crate::manifest::in_both;
use std::sync::Arc;

impl State {
    /// About how many bytes of files and of memtables hold the keys of a range.
    pub fn size_of<O: DbOrder>(
        &self,
        order: &O,
        within: Within<'_>,
        cache: &Arc<BlockCache>,
    ) -> Result<u64> {
        let range = within.range;
        if in_both(order, range, (None, None)).is_none() {
            return Ok(0);
        }
        let mut sum = size_in_memory(order, self, within)?;
        let Some(tree) = self.version.tree(within.keyspace) else { return Ok(sum) };
        for partition in tree.all() {
            // A segment may extend beyond its partition; the neighbours count the other parts.
            let own = (partition.lower.as_deref(), partition.upper.as_deref());
            let Some((low, high)) = in_both(order, own, range) else { continue };
            for segment in partition.runs().flat_map(|run| run.segments()) {
                let before = match low {
                    Some(low) => segment.bytes_before(order, low, cache)?,
                    None => 0,
                };
                let upto = match high {
                    Some(high) => segment.bytes_before(order, high, cache)?,
                    None => segment.meta().len,
                };
                // Values lie evenly among the keys, as far as is known here.
                let (len, weight) = (segment.meta().len.max(1), segment.meta().weight());
                let scaled = u128::from(upto.saturating_sub(before)) * u128::from(weight);
                sum += (scaled / u128::from(len)) as u64;
            }
        }
        Ok(sum)
    }
}

/// Bytes of keys and values in memtables. There are only a few memtables, of at most 256 MiB, so
/// their entries are simply counted.
fn size_in_memory<O: DbOrder>(order: &O, state: &State, within: Within<'_>) -> Result<u64> {
    let (low, high) = within.range;
    let mut sum = 0;
    for (id, table) in tables::<O>(state, within) {
        let mut cursor = table.cursor(id);
        cursor.seek_start(low)?;
        let inside = |key: &[u8]| high.is_none_or(|high| order.compare(key, high).is_lt());
        while cursor.valid() && inside(cursor.key()) {
            sum += (cursor.key().len() + cursor.value().len()) as u64;
            cursor.next()?;
        }
    }
    Ok(sum)
}
