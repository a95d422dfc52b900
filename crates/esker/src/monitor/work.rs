//! Measures background work for its events.
//!
//! Flushes and compactions are long and rare, so each measures its time and the processor time of
//! its thread. A compaction reports its end when the measurement is dropped, so it also does after
//! a panic.

use super::Monitor;
use crate::admission::take_paused;
use crate::compaction::queue::PartitionKey;
use crate::error::{Error, Result};
use crate::events::EventKind;
use crate::fs::thread_time;
use crate::manifest::{Partition, Version};
use crate::sync::Aside;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time, and processor time of the thread, since a moment.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    since: Instant,
    processor: Option<Duration>,
}

impl Watched {
    /// Begins now, in this thread.
    pub fn begin() -> Self {
        Self { since: Instant::now(), processor: thread_time() }
    }

    /// The time since then.
    pub fn took(&self) -> Duration {
        self.since.elapsed()
    }

    /// The processor time of this thread since then.
    pub fn processor(&self) -> Option<Duration> {
        Some(thread_time()?.saturating_sub(self.processor?))
    }
}

/// A compaction that is under way.
#[derive(Debug)]
pub struct Compacting<'m> {
    monitor: &'m Monitor,
    watched: Watched,
    cause: &'static str,
    keyspace: String,
    tier: u64,
    partitions: u64,
    input_bytes: u64,
    input_segments: u64,
    /// Bytes that were written.
    pub bytes: Cell<u64>,
    /// Run segments that were written.
    pub segments: Cell<u64>,
    /// Run segments that were adopted without rewriting them.
    pub adopted: Cell<u64>,
    /// Processor time of another thread that worked for it.
    elsewhere: Cell<Duration>,
    /// How long it paused for others.
    paused: Cell<Duration>,
    outcome: Cell<&'static str>,
}

impl<'m> Compacting<'m> {
    /// Reports the beginning. `cause`: why it runs; `keyspace`: that of the first partition.
    pub fn begin(
        monitor: &'m Monitor,
        cause: &'static str,
        keyspace: String,
        version: &Version,
        keys: &[PartitionKey],
    ) -> Self {
        let inputs = || {
            keys.iter().filter_map(|key| {
                let mut partitions = version.tree(key.keyspace)?.row(key.tier)?.partitions().iter();
                partitions.find(|partition| partition.lower == key.lower)
            })
        };
        let bytes = |partition: &Partition| partition.base.bytes() + partition.delta_bytes();
        let segments = |partition: &Partition| {
            partition.runs().map(|run| run.segments().len()).sum::<usize>() as u64
        };
        let input_bytes = inputs().map(|partition| bytes(partition)).sum();
        let input_segments = inputs().map(|partition| segments(partition)).sum();
        let partitions = keys.len() as u64;
        let tier = keys.first().map_or(0, |key| key.tier as u64);
        monitor.emit(EventKind::CompactionBegin {
            cause,
            keyspace: keyspace.clone(),
            tier,
            partitions,
            bytes: input_bytes,
            segments: input_segments,
        });
        Self {
            monitor,
            watched: Watched::begin(),
            cause,
            keyspace,
            tier,
            partitions,
            input_bytes,
            input_segments,
            bytes: Cell::default(),
            segments: Cell::default(),
            adopted: Cell::default(),
            elsewhere: Cell::default(),
            paused: Cell::default(),
            outcome: Cell::new("user-code-panicked"),
        }
    }

    /// Runs the merge of the compaction, perhaps on another thread, whose processor time then counts too.
    pub fn merge<C: Send + Sync + 'static, R: Send + 'static>(
        &self,
        merger: &Aside<C>,
        context: &C,
        merge: impl FnOnce(&C) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let here = std::thread::current().id();
        let (made, used, paused) = merger.run(context, move |context| {
            let watched = Watched::begin();
            take_paused();
            let made = merge(context)?;
            let elsewhere = std::thread::current().id() != here;
            Ok((made, watched.processor().filter(|_| elsewhere), take_paused()))
        })?;
        self.elsewhere.set(self.elsewhere.get() + used.unwrap_or_default());
        self.paused.set(self.paused.get() + paused);
        Ok(made)
    }

    /// How long it has taken until now, without the pauses that it made for others.
    pub fn took(&self) -> Duration {
        self.watched.took().saturating_sub(self.paused.get())
    }

    /// Ends the compaction; `error`: why it failed.
    pub fn end(self, error: Option<&Error>) {
        self.outcome.set(error.map_or("done", |error| error.kind().as_str()));
    }
}

impl Drop for Compacting<'_> {
    fn drop(&mut self) {
        self.monitor.emit(EventKind::CompactionEnd {
            cause: self.cause,
            keyspace: std::mem::take(&mut self.keyspace),
            tier: self.tier,
            partitions: self.partitions,
            input_bytes: self.input_bytes,
            input_segments: self.input_segments,
            output_bytes: self.bytes.get(),
            output_segments: self.segments.get(),
            adopted: self.adopted.get(),
            duration: self.watched.took(),
            processor: self.watched.processor().map(|own| own + self.elsewhere.get()),
            outcome: self.outcome.get(),
        });
    }
}
