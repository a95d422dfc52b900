//! Tests of the pipeline and of recovery together, each on the plain and on the mapped log (R10).

mod concurrent;
mod crash;
mod damage;
mod life;
mod rest;
mod spare;

use super::{Class, LogBytes, LogConfig, Pipeline};
use crate::base::Seq;
use crate::error::{Error, Result};
use crate::options::LogKind;
use crate::sync::Latch;
use crate::wal::memfs::MemFs;
use crate::wal::{Policy, Recovered, recover};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const KINDS: [LogKind; 2] = [LogKind::Plain, LogKind::Mapped];
/// Where test logs begin.
pub(super) const FIRST: Seq = 8;

pub(super) fn dir() -> PathBuf {
    PathBuf::from("/db/wal")
}

pub(super) fn config(fs: &Arc<MemFs>, kind: LogKind, file_bytes_wanted: u64) -> LogConfig {
    let mut config = LogConfig::new(Arc::clone(fs) as _, dir());
    config.kind = kind;
    config.file_bytes_max = file_bytes_wanted;
    config
}

pub(super) fn create(fs: &Arc<MemFs>, kind: LogKind, file_bytes_wanted: u64) -> Pipeline {
    Pipeline::create(config(fs, kind, file_bytes_wanted), FIRST, Arc::new(Latch::new())).unwrap()
}

/// Writes a batch with one operation.
pub(super) fn put(log: &Pipeline, payload: &[u8], class: Class) -> Result<Seq> {
    log.write(payload, 1, class, |_| Ok(()), |(), _| Ok(()))
}

/// A replayed batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) start: Seq,
    pub(super) operations: u32,
    pub(super) payload: Vec<u8>,
}

pub(super) fn replay_from(
    fs: &MemFs,
    from: Seq,
    policy: Policy,
) -> Result<(Vec<Batch>, Recovered)> {
    let mut batches = Vec::new();
    let recovered = recover(fs, &dir(), from, policy, |start, operations, payload| {
        batches.push(Batch { start, operations, payload: payload.to_vec() });
        Ok(())
    })?;
    assert_eq!(recovered.batches, batches.len() as u64);
    Ok((batches, recovered))
}

pub(super) fn replay(fs: &MemFs) -> Result<(Vec<Batch>, Recovered)> {
    replay_from(fs, FIRST, Policy::Refuse)
}

pub(super) fn payloads(batches: &[Batch]) -> Vec<Vec<u8>> {
    batches.iter().map(|batch| batch.payload.clone()).collect()
}

pub(super) fn resume(
    fs: &Arc<MemFs>,
    kind: LogKind,
    file_bytes_wanted: u64,
    recovered: Recovered,
) -> Pipeline {
    let config = config(fs, kind, file_bytes_wanted);
    Pipeline::resume(config, recovered, Arc::new(Latch::new())).unwrap()
}

pub(super) fn file_paths(fs: &MemFs) -> Vec<PathBuf> {
    fs.paths().into_iter().filter(|path| path.parent() == Some(Path::new("/db/wal"))).collect()
}

pub(super) fn is_corruption(error: &Error) -> bool {
    matches!(error, Error::Corruption(_))
}
