//! Reading the log back, and finding where it ends (R6).
//!
//! Recovery reads records from the manifest's log start on. The first position without a whole
//! record is either the end of the log or damage. The records *behind* it decide which: every
//! record states how far the log was published and synced when its writer reserved space. If the
//! log file's page cache was never lost (same incarnation: only the process died), a record that was
//! written after this position was published proves damage, because a published record was whole.
//! After a reboot, or in a copied directory, only a record that was written after this position was
//! *synced* proves damage. Otherwise it is a torn end: no writer was told that these records are
//! durable.
//!
//! Damage inside the very last record looks like a torn end; C4 states this exception.

use super::chain::{self, Chain, ChainFile, Policy};
use super::format::{ALIGNMENT, HEADER_BYTES, RECORD_HEADER_LEN, Record, RecordKind, payload_sum};
use super::stream::Stream;
use crate::base::Seq;
use crate::error::{Error, Result};
use crate::fs::{Advice, Fs};
use std::path::Path;

/// At most this many bytes of an end mark are kept.
const MARK_BYTES_MAX: usize = 64;

/// What recovery found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// The end of the log: new records go here, in a new log file.
    pub end: Seq,
    /// Whether the log was closed in order.
    pub clean: bool,
    /// How many batches were replayed.
    pub batches: u64,
    /// Bytes of log that were replayed.
    pub bytes: u64,
    /// The payload of the end mark ([`RecordKind::End`]), if the log was closed in order.
    pub mark: Vec<u8>,
    /// The damage behind the end, where the policy was to keep the prefix.
    pub damage: Option<Error>,
    /// The log files, for the log to continue from.
    pub chain: Chain,
}

/// The content of the log at one position.
pub(super) enum Place {
    /// A whole record.
    Record(Record),
    /// A whole header, but the payload does not match; the record's length is known.
    BadPayload(Record),
    /// A whole header that says the record is longer than the log: a log file is missing.
    Overlong(Record),
    /// No header.
    Nothing,
    /// The chain ends here.
    End,
}

/// Replays the log in `dir` from `log_start`, which must be where a record starts. `sink` gets
/// the position, the number of operations and the payload of each batch, in order. Changes no
/// byte of the directory.
pub fn recover(
    fs: &dyn Fs,
    dir: &Path,
    log_start: Seq,
    policy: Policy,
    mut sink: impl FnMut(Seq, u32, &[u8]) -> Result<()>,
) -> Result<Recovered> {
    let chain = chain::load(fs, dir, log_start, policy)?;
    let mut stream = Stream::new(&chain, log_start);
    let mut position = log_start;
    let mut batches = 0;
    let mut clean = false;
    let mut mark = Vec::new();
    let hole = loop {
        match look(&chain, &mut stream, position)? {
            Place::Record(mut record) => {
                clean = record.kind == RecordKind::End;
                mark.clear();
                if clean {
                    let payload = payload_of(&mut stream, &record)?;
                    mark.extend_from_slice(&payload[..payload.len().min(MARK_BYTES_MAX)]);
                }
                if record.kind == RecordKind::Batch {
                    let payload = payload_of(&mut stream, &record)?;
                    let Some(payload) = record.unescape(payload) else {
                        let detail = "the number of operations makes no sense";
                        return Err(damage_at(&chain, dir, position, detail));
                    };
                    sink(position, record.operations, payload)?;
                    batches += 1;
                }
                position = record.end();
                // Nothing follows an end mark, except a log file that continues there.
                // Seeded: what was written after a clean close and another open is not replayed.
                if clean && bug!("wal_end_mark_ends_everything") {
                    break None;
                }
                if clean && chain.at(position).is_none_or(|next| next.header.start != position) {
                    break None;
                }
            }
            Place::End => break None,
            place => break Some(place),
        }
    };
    let mut damage = chain.damage.clone();
    if let Some(place) = hole {
        let found = evidence(&chain, dir, &mut stream, position, &place)?;
        damage = damage.or(found);
    }
    match damage {
        Some(error) if policy == Policy::Refuse => return Err(error),
        _ => {}
    }
    let bytes = position - log_start;
    Ok(Recovered { end: position, clean, batches, bytes, mark, damage, chain })
}

/// The end of a log, and the log file in which it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// The position behind the last byte; 0: unknown.
    pub position: Seq,
    /// The nonce of the log file that holds the byte before it; 0: not known.
    pub nonce: u64,
}

impl Recovered {
    /// Compares the log that was read from `log_start` on with the end up to which it was known to
    /// be durable. The log files that end before `log_start` may have been released.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the log ends earlier, or if another log file holds that end.
    pub fn check_reach(&self, dir: &Path, log_start: Seq, known: Reach) -> Result<()> {
        // Seeded: an older log, or one that lost its synced end, passes for what there is.
        bug!("wal_reach_not_checked", return Ok(()));
        let Reach { position, nonce } = known;
        if position > log_start && self.end < position {
            let detail = format!(
                "the log ends at position {}, but it was durable up to {position}: its end is \
                 damaged, or these are older files of it",
                self.end
            );
            return Err(damage_at(&self.chain, dir, self.end, detail));
        }
        // Also where nothing is read from before `log_start`: the log of another database may cover it.
        // Seeded: another database's log passes for that of one that was closed.
        let held = position > log_start || !bug!("wal_holder_checked_only_where_it_is_read");
        let Some(last) = position.checked_sub(1).filter(|_| held && nonce != 0) else {
            return Ok(());
        };
        let is_another = |log_file: &ChainFile| log_file.header.nonce != nonce;
        // A log file before the first of the chain was released.
        let released = self.chain.log_files.first().is_some_and(|it| it.header.start > last);
        if !released && self.chain.at(last).is_none_or(is_another) {
            let detail =
                format!("position {position} lies in another log file than it was durable in");
            return Err(damage_at(&self.chain, dir, last, detail));
        }
        Ok(())
    }

    /// The latest life in which a log file of the log was prepared.
    pub fn latest_life(&self) -> Option<u64> {
        self.chain.log_files.iter().map(|log_file| log_file.header.life).max()
    }
}

/// Reads and checks the record at `position`, if there is one.
pub(super) fn look(chain: &Chain, stream: &mut Stream<'_>, position: Seq) -> Result<Place> {
    if position >= stream.limit() {
        return Ok(Place::End);
    }
    let Some(record) = header_at(chain, stream, position)? else { return Ok(Place::Nothing) };
    if record.end() > stream.limit() {
        return Ok(Place::Overlong(record));
    }
    if !chain.holds(position, record.end()) {
        return Ok(Place::BadPayload(record));
    }
    if record.kind == RecordKind::Void {
        return Ok(Place::Record(record));
    }
    let nonce = chain.at(position).map_or(0, |log_file| log_file.header.nonce);
    let payload = payload_of(stream, &record)?;
    // Seeded: a record whose payload is damaged is replayed.
    bug!("wal_payload_not_checked", return Ok(Place::Record(record)));
    if payload_sum(nonce, position, &[], payload) != record.payload_sum {
        return Ok(Place::BadPayload(record));
    }
    Ok(Place::Record(record))
}

fn header_at(chain: &Chain, stream: &mut Stream<'_>, position: Seq) -> Result<Option<Record>> {
    let Some(log_file) = chain.at(position) else { return Ok(None) };
    let Some(bytes) = stream.bytes(position, RECORD_HEADER_LEN as u64)? else { return Ok(None) };
    let Some(bytes) = bytes.first_chunk::<RECORD_HEADER_LEN>() else { return Ok(None) };
    Ok(Record::decode(log_file.header.nonce, position, bytes))
}

pub(super) fn payload_of<'b>(stream: &'b mut Stream<'_>, record: &Record) -> Result<&'b [u8]> {
    // Header and payload are requested together, so that both stay in the buffer.
    let len = RECORD_HEADER_LEN as u64 + u64::from(record.payload_len);
    let bytes = stream.bytes(record.position, len)?.unwrap_or_default();
    Ok(bytes.get(RECORD_HEADER_LEN..).unwrap_or_default())
}

/// Decides by the records behind `hole` whether it is damage; None: it is a torn end.
fn evidence(
    chain: &Chain,
    dir: &Path,
    stream: &mut Stream<'_>,
    hole: Seq,
    place: &Place,
) -> Result<Option<Error>> {
    if matches!(place, Place::Overlong(_)) {
        // Space is prepared durably before it is reserved (R4): a valid header proves the space.
        let detail = "the record is longer than the log: a later log file is missing";
        return Ok(Some(damage_at(chain, dir, hole, detail)));
    }
    if let Some(error) = cut_short(chain, hole, place) {
        return Ok(Some(error));
    }
    // Seeded: damage in the middle of the log silently drops all that follows.
    bug!("wal_hole_is_always_torn", return Ok(None));
    let after = chain.log_files.iter().filter(|log_file| log_file.end > hole);
    let same_life = after.clone().all(|log_file| log_file.same_life);
    // What is read ahead counts as data: then the search would read all space behind the log's end, which
    // was allocated and never written.
    after.for_each(|log_file| log_file.file.advise(Advice::Random));
    // Seeded: after a power cut, a hole of which nothing was promised refuses the database.
    let same_life = same_life || bug!("wal_every_cut_is_a_kill");
    let mut position = match place {
        Place::BadPayload(record) => record.end(),
        _ => hole + ALIGNMENT,
    };
    let limit = chain.log_files.last().map_or(hole, ChainFile::present_end);
    while position < limit {
        let Some(later) = header_at(chain, stream, position)? else {
            position = next_candidate(stream, position, limit)?;
            continue;
        };
        let (told, word) =
            if same_life { (later.published, "published") } else { (later.synced, "synced") };
        // Seeded: a torn last record is taken for damage, and open refuses.
        let told = if bug!("wal_torn_tail_is_damage") { told + ALIGNMENT } else { told };
        if told > hole {
            let detail = format!(
                "the record here is not whole, but the one at position {position} was written \
                 after the log was {word} up to {told}"
            );
            return Ok(Some(damage_at(chain, dir, hole, detail)));
        }
        position = later.end().max(position + ALIGNMENT);
    }
    Ok(None)
}

/// A log file's full length is durable before its first record is written (R4, R9). So a file that
/// is shorter, but was written to, was truncated: its records are lost, and so is the evidence in
/// them.
fn cut_short(chain: &Chain, hole: Seq, place: &Place) -> Option<Error> {
    // Seeded: a log file that was cut short loses what it held without a word.
    bug!("wal_cut_file_is_a_torn_tail", return None);
    let reach = match place {
        Place::BadPayload(record) => record.end(),
        _ => hole,
    };
    let written = |log_file: &&ChainFile| log_file.end > hole && log_file.header.start < reach;
    let cut = |log_file: &&ChainFile| log_file.file_len < HEADER_BYTES + log_file.header.capacity;
    let log_file = chain.log_files.iter().filter(written).find(cut)?;
    let detail = "the file is shorter than it was when records were written to it";
    Some(Error::corruption(&log_file.path, log_file.file_len, "log file", detail))
}

/// The next position after `position` that may hold a header. Unwritten space is zeros, and the
/// search skips zero words, and space of which the system says that it is zeros. It would miss a header whose two checksums are both zero, which is at
/// most one record in four thousand million.
pub(super) fn next_candidate(stream: &mut Stream<'_>, position: Seq, limit: Seq) -> Result<Seq> {
    const WINDOW: u64 = 64 << 10;
    let mut from = position + ALIGNMENT;
    while from < limit {
        let len = WINDOW.min(limit - from);
        let Some(bytes) = stream.bytes(from, len)? else { break };
        let found = bytes.chunks_exact(ALIGNMENT as usize).position(|word| word != [0; 8]);
        if let Some(index) = found {
            return Ok(from + index as u64 * ALIGNMENT);
        }
        // Space that was allocated ahead was never written, and reading it costs more than all the rest.
        from = stream.next_data(from + len);
    }
    Ok(limit)
}

/// An error that names the file and offset of `position`.
fn damage_at(chain: &Chain, dir: &Path, position: Seq, detail: impl Into<String>) -> Error {
    match chain.at(position) {
        Some(log_file) => {
            let offset = HEADER_BYTES + (position - log_file.header.start);
            Error::corruption(&log_file.path, offset, "log record", detail)
        }
        None => Error::corruption(dir, position, "log record", detail),
    }
}
