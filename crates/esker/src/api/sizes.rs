//! How many bytes of files a range of keys takes, and which segments there are.

use super::order_statistics::Question;
use crate::cache::BlockCache;
use crate::catalog::KeyspaceState;
use crate::db::Core;
use crate::error::Result;
use crate::state::State;
use crate::state::counts::Within;
use crate::state::memtables::DbOrder;
use crate::stats::report::SegmentShape;
use crate::stats::shapes::segments_of_tree;
use std::sync::Arc;

/// About how many bytes a range takes.
struct Size<'c>(&'c Arc<BlockCache>);

impl Question for Size<'_> {
    type Answer = u64;

    fn ask<O: DbOrder>(self, order: &O, state: &State, within: Within<'_>) -> Result<u64> {
        state.size_of(order, within, self.0)
    }
}

impl Core {
    /// Fails if the database is closed or the keyspace dropped.
    pub(super) fn check_there(&self, keyspace: &KeyspaceState) -> Result<()> {
        self.check_open()?;
        keyspace.check_there()
    }

    /// About how many bytes of files and of memtables hold the keys from `low` up to `high`.
    pub(super) fn approximate_size(
        &self,
        keyspace: &KeyspaceState,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<u64> {
        self.check_there(keyspace)?;
        self.ask(&self.state_now(), keyspace, (low, high), Size(&self.cache))
    }

    /// The segments of a keyspace: those of the tiers from the top one down, then those of the
    /// partitions; in each tier span after span, then partition after partition, and in each of
    /// these from new to old.
    pub(super) fn segments(&self, keyspace: &KeyspaceState) -> Result<Vec<SegmentShape>> {
        self.check_open()?;
        let state = self.state_now();
        let tree = state.version.tree(keyspace.id).map(Arc::as_ref);
        Ok(tree.into_iter().flat_map(segments_of_tree).collect())
    }
}
