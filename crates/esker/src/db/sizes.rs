//! How many bytes of files a range of keys takes, and which segments there are.

use crate::base::{Bytewise, Cursor, KeyOrder};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::db::core::Core;
use crate::error::Result;
use crate::manifest::Row;
use crate::state::State;
use crate::state::memtables::DbOrder;
use crate::stats::report::SegmentShape;
use crate::stats::shapes::segments_of;

impl Core {
    /// About how many bytes of files and of memtables hold the keys from `low` up to `high`.
    pub fn approximate_size(
        &self,
        keyspace: &KeyspaceState,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<u64> {
        self.check_open()?;
        if keyspace.dropped_at().is_some() {
            return Err(keyspace.dropped_error());
        }
        let sum = match &keyspace.order {
            Order::Bytewise => self.size_ordered(&Bytewise, keyspace, low, high),
            Order::Custom(order) => {
                let sum = self.size_ordered(order, keyspace, low, high);
                self.trust(order).and(sum)
            }
            Order::Missing(name) => Err(missing_order(&keyspace.name, name)),
        };
        sum.map_err(|error| error.in_keyspace(&keyspace.name, None))
    }

    fn size_ordered<O: DbOrder>(
        &self,
        order: &O,
        keyspace: &KeyspaceState,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<u64> {
        if let (Some(low), Some(high)) = (low, high)
            && order.compare(low, high).is_ge()
        {
            return Ok(0);
        }
        let state = self.state_now();
        let mut sum = size_in_memory(order, &state, keyspace, low, high)?;
        let Some(tree) = state.version.tree(keyspace.id) else { return Ok(sum) };
        for partition in tree.all() {
            // A segment may extend beyond its partition; the neighbours count the other parts.
            let low = later(order, low, partition.lower.as_deref());
            let high = earlier(order, high, partition.upper.as_deref());
            if let (Some(low), Some(high)) = (low, high)
                && order.compare(low, high).is_ge()
            {
                continue;
            }
            for segment in partition.runs().flat_map(|run| run.segments()) {
                let before = match low {
                    Some(low) => segment.bytes_before(order, low, &self.cache)?,
                    None => 0,
                };
                let upto = match high {
                    Some(high) => segment.bytes_before(order, high, &self.cache)?,
                    None => segment.meta().len,
                };
                sum += upto.saturating_sub(before);
            }
        }
        Ok(sum)
    }

    /// The segments of a keyspace: those of the tiers from the top one down, then those of the
    /// partitions; in each tier span after span, then partition after partition, and in each of
    /// these from new to old.
    pub fn segments(&self, keyspace: &KeyspaceState) -> Result<Vec<SegmentShape>> {
        self.check_open()?;
        let state = self.state_now();
        let Some(tree) = state.version.tree(keyspace.id) else { return Ok(Vec::new()) };
        let rows = tree.rows().iter().enumerate().rev();
        let of_row = |(tier, row): (usize, &Row)| {
            row.partitions().iter().flat_map(|part| segments_of(tier, part)).collect::<Vec<_>>()
        };
        Ok(rows.flat_map(of_row).collect())
    }
}

/// Bytes of keys and values in memtables. There are only a few memtables, of at most 64 MiB, so
/// their entries are simply counted.
fn size_in_memory<O: DbOrder>(
    order: &O,
    state: &State,
    keyspace: &KeyspaceState,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
) -> Result<u64> {
    let mut sum = 0;
    for table in state.memtable_sets.iter().filter_map(|set| O::table(set, keyspace.id)) {
        let mut cursor = table.cursor(keyspace.id);
        cursor.seek_start(low)?;
        let inside = |key: &[u8]| high.is_none_or(|high| order.compare(key, high).is_lt());
        while cursor.valid() && inside(cursor.key()) {
            sum += (cursor.key().len() + cursor.value().len()) as u64;
            cursor.next()?;
        }
    }
    Ok(sum)
}

/// The greater of two lower bounds.
fn later<'a, O: KeyOrder>(order: &O, a: Option<&'a [u8]>, b: Option<&'a [u8]>) -> Option<&'a [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if order.compare(a, b).is_ge() { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// The lesser of two upper bounds.
fn earlier<'a, O: KeyOrder>(
    order: &O,
    a: Option<&'a [u8]>,
    b: Option<&'a [u8]>,
) -> Option<&'a [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if order.compare(a, b).is_le() { a } else { b }),
        (a, b) => a.or(b),
    }
}
