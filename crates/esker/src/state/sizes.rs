//! About how many bytes a range of keys takes, in memtables and in files.
//!
//! Entries of memtables are counted one by one, because there are few memtables. Of a run segment the
//! index tells how many bytes lie before a key, so a range costs two searches in each segment that
//! it touches.

use super::State;
use super::counts::{Within, walk_memory};
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
        let mut sum = 0;
        walk_memory(order, self, within, |entry| {
            sum += (entry.key().len() + entry.value().len()) as u64;
        })?;
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
