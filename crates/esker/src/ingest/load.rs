//! The entries of one keyspace, in segments that nothing refers to yet.

use crate::base::Seq;
use crate::catalog::KeyspaceState;
use crate::db::Core;
use crate::error::{Error, Result};
use crate::iter::Bounds;
use crate::run::{Segment, SegmentMeta, Written};
use std::ops::Bound;
use std::sync::Arc;

/// The entries of one keyspace.
#[derive(Debug)]
pub(super) struct Load {
    /// The keyspace.
    pub keyspace: Arc<KeyspaceState>,
    /// The segments that were ended.
    pub written: Vec<Written>,
    /// The last key.
    last: Option<Vec<u8>>,
}

impl Load {
    pub fn new(keyspace: Arc<KeyspaceState>) -> Self {
        Self { keyspace, written: Vec::new(), last: None }
    }

    /// Refuses a key that is not greater than the last one.
    pub fn check_order(&self, key: &[u8]) -> Result<()> {
        // Seeded: keys out of order end in a run that finds some of them.
        bug!("ingest_order_not_checked", return Ok(()));
        match &self.last {
            Some(last) if last.as_slice() >= key => {
                Err(Error::OutOfOrder { keyspace: self.keyspace.name.clone(), key: key.to_vec() })
            }
            _ => Ok(()),
        }
    }

    /// Notes the key of an entry that was written.
    pub fn note(&mut self, key: &[u8]) {
        let last = self.last.get_or_insert_with(Vec::new);
        last.clear();
        last.extend_from_slice(key);
    }

    /// The segments, in key order.
    pub fn metas(&self) -> impl ExactSizeIterator<Item = &SegmentMeta> {
        self.written.iter().map(|written| &written.meta)
    }

    /// The segments as those of a position.
    pub fn segments_at(&self, core: &Core, seq: Seq) -> Vec<Arc<Segment>> {
        let segment =
            |written: &Written| written.ingested_at(core.files.output_file(written.meta.file), seq);
        self.written.iter().map(segment).collect()
    }

    /// The first and the last key.
    pub fn bounds(&self) -> Bounds {
        let first = self.written.first().map(|first| first.meta.min_key.clone());
        Bounds {
            low: first.map_or(Bound::Unbounded, Bound::Included),
            high: self.last.clone().map_or(Bound::Unbounded, Bound::Included),
        }
    }
}
