//! Everything that can still be read of a damaged log (R30).
//!
//! If the log is whole and no records follow its end, salvage returns exactly what recovery
//! returns. Otherwise it orders the log files as well as their headers allow and returns every
//! record with valid checksums, also those behind damage.

use super::chain::{self, Chain, ChainFile, Policy};
use super::format::{ALIGNMENT, HEADER_BYTES, Record, RecordKind};
use super::log_file::file_number;
use super::recover::{Place, look, next_candidate, payload_of, recover};
use super::stream::Stream;
use crate::base::Seq;
use crate::error::{Error, IoContext, Result};
use crate::fs::Fs;
use std::path::{Path, PathBuf};

/// A stretch of the log that cannot be read.
#[derive(Debug, Clone)]
pub struct LostStretch {
    /// Its first position.
    pub start: Seq,
    /// The position behind it.
    pub end: Seq,
    /// The operations in it, where a record's header is whole.
    pub operations: Option<u32>,
    /// The file in which it begins, and the offset there.
    pub place: Option<(PathBuf, u64)>,
}

/// What was read of a log.
#[derive(Debug, Default)]
pub struct LogSalvage {
    /// Log files that were read.
    pub log_files: u64,
    /// Batches that the sink got.
    pub batches: u64,
    /// Stretches that cannot be read, with whole records behind them or a record's header at their
    /// beginning.
    pub lost: Vec<LostStretch>,
    /// The reasons why recovery would refuse the log; empty: it would accept it.
    pub damage: Vec<Error>,
    /// The position behind the last whole record.
    pub end: Seq,
    /// Whether the log was closed in order.
    pub clean: bool,
}

/// Gives every batch from `log_start` on (from the oldest one, without it) to `sink`, in order.
/// Changes no byte. Only an error of `sink`, of the file system, or an unknown version ends it.
pub fn salvage(
    fs: &dyn Fs,
    dir: &Path,
    log_start: Option<Seq>,
    mut sink: impl FnMut(Seq, u32, &[u8]) -> Result<()>,
) -> Result<LogSalvage> {
    let mut salvage = LogSalvage::default();
    if let Some(start) = log_start {
        // A first look chooses the way, so that the sink gets no batch twice.
        match is_whole(fs, dir, start) {
            Ok(true) => {
                let recovered = recover(fs, dir, start, Policy::Refuse, sink)?;
                salvage.log_files = recovered.chain.log_files.len() as u64;
                salvage.batches = recovered.batches;
                (salvage.end, salvage.clean) = (recovered.end, recovered.clean);
                return Ok(salvage);
            }
            Ok(false) => {}
            Err(error @ Error::Corruption(_)) => salvage.damage.push(error),
            Err(error) => return Err(error),
        }
    }
    let chains = gather(fs, dir, log_start, &mut salvage.damage)?;
    let first = chains.first().and_then(|chain| chain.log_files.first());
    let Some(first) = first.map(|log_file| log_file.header.start) else { return Ok(salvage) };
    let mut start = log_start.unwrap_or(first).max(first);
    salvage.end = start;
    if let Some(wanted) = log_start.filter(|wanted| *wanted < start) {
        let lost = LostStretch { start: wanted, end: start, operations: None, place: None };
        salvage.lost.push(lost);
    }
    for chain in &chains {
        let begins = chain.log_files[0].header.start;
        if begins > start {
            let lost = LostStretch { start, end: begins, operations: None, place: None };
            salvage.lost.push(lost);
            start = begins;
        }
        salvage.log_files += chain.log_files.len() as u64;
        salvage.visit(chain, start, log_start.is_some(), &mut sink)?;
        start = chain.limit(start);
    }
    Ok(salvage)
}

/// Whether recovery reads the log, and leaves no whole batch behind its end. In a copied directory,
/// or after a reboot, recovery treats a hole as a torn end if no writer waited for the records
/// behind it. Salvage can still save those records.
///
/// # Errors
/// Why recovery would refuse.
pub fn is_whole(fs: &dyn Fs, dir: &Path, log_start: Seq) -> Result<bool> {
    let recovered = recover(fs, dir, log_start, Policy::Refuse, |_, _, _| Ok(()))?;
    let mut behind = false;
    if !recovered.clean {
        visit(&recovered.chain, recovered.end, |visited| {
            if let Visited::Record { record, .. } = visited {
                behind |= record.kind == RecordKind::Batch;
            }
            Ok(())
        })?;
    }
    Ok(!behind)
}

impl LogSalvage {
    /// Gives the batches of log files that follow each other. `anchored`: a record should begin at
    /// `start`.
    fn visit(
        &mut self,
        chain: &Chain,
        start: Seq,
        anchored: bool,
        sink: &mut impl FnMut(Seq, u32, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let last_chain = chain.limit(start);
        visit(chain, start, |visited| {
            match visited {
                Visited::Record { record, payload } => {
                    self.end = record.end();
                    self.clean = record.kind == RecordKind::End;
                    if record.kind == RecordKind::Batch {
                        self.batches += 1;
                        sink(record.position, record.operations, payload)?;
                    }
                }
                Visited::Bad(record) => {
                    let end = record.end().min(last_chain);
                    self.lose(chain, record.position, end, Some(record.operations));
                }
                Visited::Gap { start, end, last } => {
                    // Without a known log start, the bytes before the first record found are the
                    // end of a record whose beginning was released.
                    if !last && (anchored || self.batches > 0) {
                        self.lose(chain, start, end, None);
                    }
                }
            }
            Ok(())
        })
    }
}

impl LogSalvage {
    fn lose(&mut self, chain: &Chain, start: Seq, end: Seq, operations: Option<u32>) {
        let place = chain.at(start).map(|log_file| {
            (log_file.path.clone(), HEADER_BYTES + (start - log_file.header.start))
        });
        self.lost.push(LostStretch { start, end, operations, place });
    }
}

/// The log files in the order of their use, as far as their headers tell, in groups without holes.
fn gather(
    fs: &dyn Fs,
    dir: &Path,
    log_start: Option<Seq>,
    damage: &mut Vec<Error>,
) -> Result<Vec<Chain>> {
    let mut found: Vec<ChainFile> = Vec::new();
    for entry in fs.list(dir).context("list", dir)? {
        if entry.is_dir() || file_number(&entry.name).is_none() {
            continue;
        }
        match chain::read_header(fs, &dir.join(&entry.name)) {
            Ok(Some(log_file)) => found.push(log_file),
            Ok(None) => {}
            Err(error @ Error::UnknownFormat { .. }) => return Err(error),
            Err(error) => damage.push(error),
        }
    }
    found.sort_by_key(|log_file| log_file.header.serial);
    let mut order = Vec::new();
    let mut next = found.len().checked_sub(1);
    while let Some(at) = next {
        order.push(at);
        let header = &found[at].header;
        if log_start.is_some_and(|start| header.start <= start) {
            break;
        }
        let fits = |other: &ChainFile| other.header.start <= header.start;
        let named = |other: &ChainFile| other.header.nonce == header.predecessor && fits(other);
        // The predecessor by name or, if its header is damaged, the next older use.
        next = found[..at].iter().rposition(named).or_else(|| found[..at].iter().rposition(fits));
    }
    order.reverse();
    // Log files that do not follow each other make separate chains, so that the hole between them,
    // whose size is only a number in a file, costs nothing (C5).
    let mut chains: Vec<Chain> = Vec::new();
    for at in order {
        let log_file = found[at].clone();
        let start = log_file.header.start;
        match chains.last_mut().filter(|chain| chain.limit(0) >= start) {
            Some(chain) => {
                if let Some(before) = chain.log_files.last_mut() {
                    before.end = before.end.min(start);
                }
                chain.log_files.push(log_file);
            }
            None => chains.push(Chain { log_files: vec![log_file], ..Chain::default() }),
        }
    }
    Ok(chains)
}

/// What a walk through a log finds.
#[derive(Debug)]
pub enum Visited<'a> {
    /// A whole record and its payload.
    Record {
        /// The record.
        record: Record,
        /// The payload, without a large operation count before it.
        payload: &'a [u8],
    },
    /// A record whose header is whole, and whose payload is not there or does not match.
    Bad(Record),
    /// A stretch without records: unused space, a torn end, or damage.
    Gap {
        /// Its first position.
        start: Seq,
        /// The position behind it.
        end: Seq,
        /// Whether nothing follows.
        last: bool,
    },
}

/// Shows the records of one log file by itself. `Ok(None)`: the file was never used.
pub fn visit_file(
    fs: &dyn Fs,
    path: &Path,
    visitor: impl FnMut(Visited<'_>) -> Result<()>,
) -> Result<()> {
    let Some(log_file) = chain::read_header(fs, path)? else { return Ok(()) };
    let start = log_file.header.start;
    visit(&Chain { log_files: vec![log_file], ..Chain::default() }, start, visitor)
}

fn visit(
    chain: &Chain,
    start: Seq,
    mut visitor: impl FnMut(Visited<'_>) -> Result<()>,
) -> Result<()> {
    let mut stream = Stream::new(chain, start);
    let mut position = start;
    let mut gap: Option<Seq> = None;
    loop {
        let place = look(chain, &mut stream, position)?;
        if let (Some(start), false) = (gap, matches!(place, Place::Nothing)) {
            let last = matches!(place, Place::End);
            visitor(Visited::Gap { start, end: position, last })?;
            gap = None;
        }
        position = match place {
            Place::End => return Ok(()),
            Place::Nothing => {
                gap.get_or_insert(position);
                {
                    let limit = stream.limit();
                    next_candidate(&mut stream, position, limit)?
                }
            }
            Place::Record(mut record) => {
                let payload = match record.kind {
                    // The bytes of a void mean nothing.
                    RecordKind::Void => Some(&[][..]),
                    _ => record.unescape(payload_of(&mut stream, &record)?),
                };
                match payload {
                    Some(payload) => visitor(Visited::Record { record, payload })?,
                    None => visitor(Visited::Bad(record))?,
                }
                record.end()
            }
            Place::BadPayload(record) => {
                visitor(Visited::Bad(record))?;
                record.end()
            }
            // Its length says nothing about where the next one stands.
            Place::Overlong(record) => {
                visitor(Visited::Bad(record))?;
                position + ALIGNMENT
            }
        };
    }
}
