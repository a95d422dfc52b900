//! The chain's bytes as one sequence, read with positioned reads in large chunks (R9).
//!
//! A caller requests a range of positions and gets contiguous bytes, even if the range spans
//! log files. The buffer holds one chunk, or one record if that is longer. The caller checks the
//! length of a record against the rest of the log before it requests the record, so existing bytes
//! bound the memory (C5).

use super::chain::{Chain, ChainFile};
use super::format::{ALIGNMENT, HEADER_BYTES};
use crate::base::Seq;
use crate::error::{IoContext, Result};

const CHUNK: u64 = 1 << 20;

/// A buffered reader over a chain.
pub(super) struct Stream<'a> {
    chain: &'a Chain,
    buffer: Vec<u8>,
    start: Seq,
    limit: Seq,
}

impl<'a> Stream<'a> {
    pub(super) fn new(chain: &'a Chain, position: Seq) -> Self {
        Self { chain, buffer: Vec::new(), start: position, limit: chain.limit(position) }
    }

    /// Where the chain ends.
    pub(super) fn limit(&self) -> Seq {
        self.limit
    }

    /// A position at or after `position` before which there is no record, because the file that holds
    /// it has nothing but zeros from there on; where nothing is known, `position`.
    pub(super) fn next_data(&self, position: Seq) -> Seq {
        let Some(log_file) = self.chain.at(position) else { return position };
        let start = log_file.header.start;
        let data = log_file.file.next_data(HEADER_BYTES + (position - start));
        let found = start + data.saturating_sub(HEADER_BYTES) / ALIGNMENT * ALIGNMENT;
        // The next file begins behind this one's end, whatever its length.
        found.clamp(position, log_file.end.max(position))
    }

    /// The bytes from `position` to `position + len`; None where the chain ends before that.
    pub(super) fn bytes(&mut self, position: Seq, len: u64) -> Result<Option<&[u8]>> {
        if self.limit.saturating_sub(position) < len {
            return Ok(None);
        }
        let buffered = self.start + self.buffer.len() as u64;
        if position < self.start || position + len > buffered {
            self.fill(position, len)?;
        }
        let at = (position - self.start) as usize;
        Ok(self.buffer.get(at..at + len as usize))
    }

    fn fill(&mut self, position: Seq, len: u64) -> Result<()> {
        let wanted = (self.limit - position).min(len.max(CHUNK)) as usize;
        if self.buffer.len() > wanted.max(CHUNK as usize) {
            self.buffer = Vec::new();
        }
        self.buffer.resize(wanted, 0);
        self.start = position;
        let mut filled = 0;
        while filled < wanted {
            let at = position + filled as u64;
            let Some(log_file) = self.chain.at(at) else {
                // No window holds these positions. They read as zeros, and zeros are not a record.
                self.buffer[filled..].fill(0);
                break;
            };
            let piece = (log_file.end - at).min((wanted - filled) as u64) as usize;
            read(log_file, at, &mut self.buffer[filled..filled + piece])?;
            filled += piece;
        }
        Ok(())
    }
}

/// Reads from one window; bytes past the end of the file read as zeros.
fn read(log_file: &ChainFile, position: Seq, out: &mut [u8]) -> Result<()> {
    let offset = HEADER_BYTES + (position - log_file.header.start);
    let present = log_file.file_len.saturating_sub(offset).min(out.len() as u64) as usize;
    if present > 0 {
        log_file.file.read_at(&mut out[..present], offset).context("read", &log_file.path)?;
    }
    out[present..].fill(0);
    Ok(())
}
