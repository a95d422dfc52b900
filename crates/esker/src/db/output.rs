//! The file that a flush or compaction writes, from its first entry to its place in the tree.
//!
//! Each flush or compaction has one file, which is created for the first entry. If the work fails,
//! the file is removed, unless the manifest may refer to it.

use crate::compaction::CompactionCounts;
use crate::compaction::queue::PartitionKey;
use crate::compaction::slicing::Output;
use crate::db::core::Core;
use crate::error::Result;
use crate::monitor::Compacting;
use crate::run::{KnownValues, RunWriter, Segment, WriterOptions, finish_files};
use crate::sync::Aside;
use std::sync::Arc;

impl Core {
    /// The writer of a new run file, whose buffers are counted; `settled`: what it writes is expected to
    /// stay for long.
    pub(crate) fn begin_file(&self, settled: bool) -> Result<RunWriter> {
        let (id, options) = (self.files.next_id(), WriterOptions::new(&self.settings, settled));
        let mut created = RunWriter::create(&self.fs, self.files.directory(), id, options)?;
        created.count_in(self.cache.buffers());
        Ok(created)
    }

    /// The writer of this flush or compaction, created when it is first needed. `warms`: what it
    /// writes goes into the cache.
    pub(super) fn writer<'w>(
        &self,
        writer: &'w mut Option<RunWriter>,
        (settled, warms): (bool, bool),
    ) -> Result<&'w mut RunWriter> {
        if let Some(writer) = writer {
            return Ok(writer);
        }
        let mut created = self.begin_file(settled)?;
        // What it costs to keep blocks would slow such writers further.
        if warms && !self.pacer.slows_a_writer() {
            created.keep_in(&self.cache);
        }
        Ok(writer.insert(created))
    }

    /// Runs a compaction or a push of these partitions or spans, and reports its begin and its end.
    pub(super) fn tell_work(
        &self,
        keys: &[PartitionKey],
        work: impl FnOnce(&Compacting<'_>) -> Result<()>,
    ) -> Result<()> {
        let cause = self.work.cause(keys);
        let first = keys.first().and_then(|key| self.catalog.lock().by_id(key.keyspace).cloned());
        let keyspace = first.map(|keyspace| keyspace.name.clone()).unwrap_or_default();
        let version = self.state_now().version.clone();
        let told = Compacting::begin(&self.monitor, cause, keyspace, &version, keys);
        drop(version);
        let done = work(&told);
        told.end(done.as_ref().err());
        done
    }

    /// Makes the files of a flush or compaction durable and installs their segments. If that fails,
    /// the files are removed, unless the manifest may refer to them. That cannot be excluded once an
    /// edit was begun, and an edit that was begun and failed has set the latch. Some segments may
    /// have been `made` for trees that were removed meanwhile, with their keyspaces or branches.
    /// Nothing will ever refer to these: their space is freed, with the whole file if nothing else
    /// is in it (R22).
    pub(super) fn conclude(
        &self,
        writers: impl IntoIterator<Item = RunWriter>,
        made: Vec<Arc<Segment>>,
        install: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut writers: Vec<_> = writers.into_iter().collect();
        // The objects are taken before the install, so that the tree refers to the same objects.
        let files: Vec<_> = writers.iter().map(|it| self.files.output_file(it.id())).collect();
        finish_files(&mut writers, &self.fs, self.files.directory())
            .and_then(|()| install())
            .inspect_err(|_| {
                if self.latch.get().is_none() {
                    self.give_up_files(writers.drain(..));
                }
            })?;
        // Seeded: output for a tree that was removed meanwhile stays until the next open.
        bug!("db_unused_output_stays", return Ok(()));
        files.iter().for_each(|file| self.release_unused(file, &made));
        let made = made.iter().flat_map(|segment| segment.with_its_values());
        self.reserve.cover_unit(made.map(|segment| segment.meta().len).max().unwrap_or(0));
        Ok(())
    }
}

/// Where a worker merges: on a thread of low priority, so that callers get the processor when they need it
/// and compactions what they leave. What holds a lock for which others wait, syncs or installs stays on the
/// worker, whose priority is normal (S23). A worker that is alone merges itself.
pub(super) type Merger = Aside<Core>;

/// The file that slices are written to.
pub(super) struct SlicesFile<'c> {
    pub core: &'c Core,
    pub writer: &'c mut Option<RunWriter>,
    /// Whether a flush goes first between steps.
    pub yields: bool,
    /// Whether what is written goes into the cache.
    pub warms: bool,
    /// The value segments to which what is written may refer.
    pub values: Option<KnownValues>,
}

impl Output for SlicesFile<'_> {
    fn begin(&mut self, settled: bool) -> Result<()> {
        // What a push writes always lies over other runs.
        let options = WriterOptions::new(&self.core.settings, settled).over_others_if(self.yields);
        self.writer()?.set_options(options)
    }

    fn writer(&mut self) -> Result<&mut RunWriter> {
        let writer = self.core.writer(self.writer, (false, self.warms))?;
        writer.know(&mut self.values);
        Ok(writer)
    }

    fn segments(&mut self) -> Vec<Arc<Segment>> {
        self.writer.as_mut().map(|writer| self.core.files.take_segments(writer)).unwrap_or_default()
    }

    fn pause(&mut self) -> Result<()> {
        if self.yields { self.core.between_steps() } else { Ok(()) }
    }

    fn note(&mut self, counts: &CompactionCounts) {
        self.core.counters.background.note_compaction(counts);
    }
}

impl Core {
    /// Removes the files of a failed flush or compaction: on a full disk their space is needed (C7).
    /// A file that stays is removed by the next open.
    pub(crate) fn give_up_files(&self, writers: impl IntoIterator<Item = RunWriter>) {
        for error in writers.into_iter().filter_map(|writer| writer.abandon().err()) {
            self.monitor.files_left("files of failed flushes and compactions", &error);
        }
    }
}
