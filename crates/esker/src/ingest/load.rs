//! The entries of one keyspace, in run files that nothing refers to yet.

use crate::base::{Bytewise, Kind, Seq};
use crate::catalog::KeyspaceState;
use crate::db::Core;
use crate::error::{Error, IoContext, Result};
use crate::iter::Bounds;
use crate::run::{RunWriter, Segment, SegmentMeta, Written, file_name};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

/// A file ends at about this size: space is given back by whole files where file systems have no holes,
/// and what is written is synced now and then.
const FILE_BYTES: u64 = 256 << 20;

/// The entries of one keyspace.
#[derive(Debug)]
pub(super) struct Load {
    /// The keyspace.
    pub keyspace: Arc<KeyspaceState>,
    /// The present file.
    writer: Option<RunWriter>,
    /// The segments that were ended.
    written: Vec<Written>,
    last: Option<Vec<u8>>,
}

impl Load {
    pub fn new(keyspace: Arc<KeyspaceState>) -> Self {
        Self { keyspace, writer: None, written: Vec::new(), last: None }
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

    pub fn add(&mut self, core: &Core, key: &[u8], kind: Kind, stored: &[u8]) -> Result<()> {
        if self.writer.as_ref().is_some_and(|writer| writer.bytes_written() >= FILE_BYTES) {
            self.finish()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                // Close waits for the store; after it a number may be given out again.
                let _store = core.store.lock();
                core.check_open()?;
                let (id, options) = (core.files.next_id(), core.writer_options(true));
                let created = RunWriter::create(&core.fs, core.files.directory(), id, options)?;
                self.writer.insert(created)
            }
        };
        writer.add(&Bytewise, key, 0, kind, stored)?;
        self.written.extend(writer.take_segments());
        let last = self.last.get_or_insert_with(Vec::new);
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    /// Ends the present file and makes its contents durable.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            self.written.extend(writer.finish()?);
            self.writer = None;
        }
        Ok(())
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

    /// Removes the files.
    pub fn abandon(mut self, core: &Core) {
        let open = self.writer.take();
        let mut files: BTreeSet<_> = self.metas().map(|meta| meta.file).collect();
        if let Some(open) = open {
            files.remove(&open.id());
            core.give_up_files([open]);
        }
        for id in files {
            let path = core.files.directory().join(file_name(id));
            if let Err(error) = core.fs.remove_file(&path).context("remove", &path) {
                core.monitor.files_left("files of an ingestion that was given up", &error);
            }
        }
    }
}
