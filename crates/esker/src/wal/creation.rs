//! What an interrupted creation of a log left behind.
//!
//! A new log begins in an empty directory. If a crash cut an earlier creation off, log files
//! may be there already; they are taken over only if none of them holds a record.

use super::chain::{self, Chain, ChainFile, Policy, read_header};
use super::recover::{Place, look, recover};
use super::stream::Stream;
use crate::base::Seq;
use crate::error::{Error, Result};
use crate::fs::Fs;
use std::path::Path;

impl Chain {
    /// The log files in a directory that must not hold a log yet. An interrupted creation may
    /// have left some, without records; anything else is refused and stays as it is.
    pub fn before_creation(fs: &dyn Fs, dir: &Path, first: Seq) -> Result<Self> {
        let chain = chain::load(fs, dir, first, Policy::KeepPrefix)?;
        // Several creations may have been interrupted, one after the other.
        let left_over = chain.stale.iter().map(|path| read_header(fs, path));
        let left_over: Result<Vec<_>> = left_over.filter_map(Result::transpose).collect();
        for log_file in chain.log_files.iter().cloned().chain(left_over?) {
            if log_file.header.start != first || holds_record(log_file, first)? {
                return Err(Error::exists(dir, "a log"));
            }
        }
        if chain.log_files.is_empty() {
            return Ok(Self { damage: None, ..chain });
        }
        let recovered = recover(fs, dir, first, Policy::Refuse, |_, _, _| Ok(()))?;
        if recovered.end != first {
            return Err(Error::exists(dir, "a log"));
        }
        Ok(recovered.chain)
    }
}

/// Whether a log file begins with a record.
fn holds_record(log_file: ChainFile, start: Seq) -> Result<bool> {
    let alone = Chain { log_files: vec![log_file], ..Chain::default() };
    let mut stream = Stream::new(&alone, start);
    Ok(!matches!(look(&alone, &mut stream, start)?, Place::Nothing | Place::End))
}
