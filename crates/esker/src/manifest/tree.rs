//! The tree of a keyspace: the row of its partitions, and the tiers above it.
//!
//! ```text
//! Tree -> Row (partitions; tier 1; .. top tier) -> Partition -> base Run + delta Runs -> Segments
//! ```
//! 1. Row 0 is the row of partitions. Rows 1 to [`TIERS_MAX`] are tiers, and their partitions are
//!    spans, which have an empty base.
//! 2. The rows nest: every bound of a row is also a bound of the row below it.
//! 3. Along the path of a key (the spans that hold it, from the top tier down, then the deltas and
//!    the base of its partition) everything is newer than everything behind it.

use crate::base::KeyOrder;
use crate::manifest::{Partition, Row, TIERS_MAX};
use crate::run::Run;
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

/// The rows of one keyspace.
#[derive(Debug)]
pub struct Tree {
    /// That of partitions, then tier 1 and so on; never empty.
    rows: Vec<Row>,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(vec![Arc::default()])
    }
}

impl Tree {
    /// An empty tree, which all keyspaces share to which nothing was flushed.
    pub fn none() -> Arc<Self> {
        static NONE: OnceLock<Arc<Tree>> = OnceLock::new();
        NONE.get_or_init(Arc::default).clone()
    }

    /// The tree of these partitions, without tiers.
    pub fn new(partitions: Vec<Arc<Partition>>) -> Self {
        Self { rows: vec![Row::new(partitions)] }
    }

    /// The tree of these rows, that of partitions first. Without any it is an empty tree.
    pub fn of_rows(rows: Vec<Row>) -> Self {
        if rows.is_empty() { Self::default() } else { Self { rows } }
    }

    /// This tree with another row of partitions.
    #[must_use]
    pub fn with_partitions(&self, partitions: Vec<Arc<Partition>>) -> Self {
        let first = std::iter::once(Row::new(partitions));
        Self { rows: first.chain(self.tiers().iter().cloned()).collect() }
    }

    /// All rows: that of partitions, then tier 1 and so on.
    #[inline]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The tiers, tier 1 first.
    #[inline]
    pub fn tiers(&self) -> &[Row] {
        &self.rows[1..]
    }

    /// A row: 0 is that of partitions.
    pub fn row(&self, tier: usize) -> Option<&Row> {
        self.rows.get(tier)
    }

    /// The partitions, ascending.
    #[inline]
    pub fn partitions(&self) -> &[Arc<Partition>] {
        self.rows[0].partitions()
    }

    /// The index of the partition that holds `key`.
    #[inline]
    pub fn find<O: KeyOrder>(&self, order: &O, key: &[u8]) -> usize {
        self.rows[0].find(order, key)
    }

    /// The index of the partition that begins exactly at `lower`.
    pub fn position<O: KeyOrder>(&self, order: &O, lower: Option<&[u8]>) -> Option<usize> {
        self.rows[0].position(order, lower)
    }

    /// All partitions and spans, by row.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.rows.iter().flat_map(|row| row.partitions())
    }

    /// The runs that may hold a key, from new to old, each with its row and the index of its
    /// partition there.
    pub fn path<O: KeyOrder>(
        &self,
        order: &O,
        key: &[u8],
    ) -> impl Iterator<Item = (usize, usize, &Arc<Run>)> {
        self.rows.iter().enumerate().rev().flat_map(move |(tier, row)| {
            let at = row.find(order, key);
            row.partitions()[at].runs_in(tier).map(move |run| (tier, at, run))
        })
    }
}

/// Checks that the rows, partitions and runs of a tree are in order (a manifest with valid
/// checksums may still be crafted, C5).
pub fn check_tree<O: KeyOrder>(order: &O, tree: &Tree) -> Result<(), &'static str> {
    if tree.tiers().len() > TIERS_MAX {
        return Err("a tree has more tiers than the limit");
    }
    for row in tree.rows() {
        check_row(order, row)?;
    }
    // Seeded: a crafted manifest may have a span over a part of a partition.
    bug!("manifest_nesting_not_checked", return Ok(()));
    for (below, tier) in tree.rows().iter().zip(tree.tiers()) {
        for span in tier.partitions() {
            if below.position(order, span.lower.as_deref()).is_none() {
                return Err("a span begins within a partition of the row below");
            }
            if !span.base.is_empty() {
                return Err("a span has a base");
            }
        }
    }
    Ok(())
}

fn check_row<O: KeyOrder>(order: &O, row: &Row) -> Result<(), &'static str> {
    for pair in row.partitions().windows(2) {
        let (Some(upper), Some(lower)) = (&pair[0].upper, &pair[1].lower) else {
            return Err("a partition inside a tree has no bound");
        };
        let below = pair[0].lower.as_deref().is_none_or(|low| order.compare(low, upper).is_lt());
        if upper != lower || !below {
            return Err("partitions are not in order");
        }
    }
    for run in row.partitions().iter().flat_map(|p| p.runs()) {
        let metas = run.segments().iter().map(|segment| segment.meta());
        for meta in metas.clone() {
            if order.compare(&meta.min_key, &meta.max_key).is_gt() {
                return Err("a segment ends before it begins");
            }
        }
        for (one, next) in metas.clone().zip(metas.skip(1)) {
            if order.compare(&one.max_key, &next.min_key) != Ordering::Less {
                return Err("segments of a run overlap");
            }
        }
    }
    Ok(())
}
