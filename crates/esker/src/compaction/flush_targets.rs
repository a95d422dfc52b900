//! Which partitions a flush or a push writes to.
//!
//! Both cut their output at the bounds of a row: a flush at those of the top row, or of the
//! partitions, and a push at those of the row below its span. They look up the partitions (or spans)
//! for the entries of their source, so their work grows with what they touch, and only with the
//! logarithm of everything else. A range delete that completely covers many adjacent partitions
//! gives one *stretch*: all these partitions refer to one slice.

use crate::base::rangedel::{Cutter, compare_ends};
use crate::base::{Cursor, KeyOrder, SEQ_MAX};
use crate::error::Result;
use crate::manifest::{Partition, Row};
use std::ops::Range;

/// Neighbouring partitions that get one slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushTarget {
    /// Their indexes. If there are several, the same range deletes cover all of them completely.
    pub partitions: Range<usize>,
    /// Whether the source has entries there; then it is one partition.
    pub has_entries: bool,
}

/// The stretches of the partitions `within` that the entries of a source and its range tombstones
/// touch, ascending. `removed` is at the beginning of the list. Entries and tombstones of other
/// partitions are passed over.
pub fn flush_targets<O: KeyOrder>(
    order: &O,
    row: &Row,
    within: Range<usize>,
    cursor: &mut impl Cursor,
    mut removed: Cutter<'_>,
) -> Result<Vec<FlushTarget>> {
    let partitions = row.partitions();
    let mut found = Vec::new();
    let mut next = within.start;
    cursor.seek_to_first()?;
    while let Some(partition) = partitions[..within.end].get(next) {
        let lower = partition.lower.as_deref();
        if let Some(lower) = lower
            && cursor.valid()
            && order.compare(cursor.key(), lower).is_lt()
        {
            cursor.seek(lower, SEQ_MAX)?;
        }
        // A comparator that contradicts itself must not lead backward.
        let entry = cursor.valid().then(|| row.find(order, cursor.key()).max(next));
        let removal = removed.next_start(order, lower);
        let removal = removal.map(|start| start.map_or(0, |key| row.find(order, key)).max(next));
        let Some(first) = [entry, removal].into_iter().flatten().min() else { break };
        if first >= within.end {
            break;
        }
        let has_entries = entry == Some(first);
        let mut end = first + 1;
        if !has_entries {
            let behind = fragment_end(order, row, &partitions[first], &removed);
            end = behind.min(entry.unwrap_or(usize::MAX)).min(within.end).max(end);
        }
        found.push(FlushTarget { partitions: first..end, has_entries });
        next = end;
    }
    Ok(found)
}

/// The index after the last partition that the fragment around the lower bound of `first` covers
/// completely.
fn fragment_end<O: KeyOrder>(
    order: &O,
    row: &Row,
    first: &Partition,
    removed: &Cutter<'_>,
) -> usize {
    let (_, end) = removed.fragment(order, first.lower.as_deref());
    if compare_ends(order, end, first.upper.as_deref()).is_lt() {
        return 0;
    }
    end.map_or(row.partitions().len(), |end| row.find(order, end))
}

#[cfg(test)]
mod tests;
