//! Finding the log among the files of its directory.
//!
//! The log file with the highest serial number is the last of the log. Each log file names the nonce
//! of its predecessor and starts at the position where the predecessor ends. The walk goes back
//! until a log file covers the manifest's log start; the log files on the way are the chain. The
//! others are leftovers: released log files that wait to be recycled, or windows that an earlier
//! recovery gave up.
//!
//! A file with a damaged header might belong anywhere in the chain, so it is corruption (C4). A
//! file whose header is blank, or holds a part of one copy among zeros, never held a record: a power
//! cut interrupted its preparation (R4).

use super::format::{HEADER_BYTES, HeaderPage, LogFileHeader, VERSION};
use super::log_file::file_number;
use crate::base::{Seq, first_free};
use crate::error::{Error, IoContext, Result};
use crate::fs::{Advice, File, Fs, open_part};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do about damage (R30).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Refuse to go on.
    #[default]
    Refuse,
    /// Keep the log before the damage and give up the rest.
    KeepPrefix,
}

/// A log file of the log as recovery sees it.
#[derive(Debug, Clone)]
pub struct ChainFile {
    /// The file.
    pub path: PathBuf,
    /// Its header.
    pub header: LogFileHeader,
    /// The end of its valid bytes: where the successor starts, or the end of its window.
    pub end: Seq,
    /// Whether the page cache of the file was never lost since the log file was prepared (R6).
    pub same_life: bool,
    /// Length of the file; if it is shorter than the window, the rest is missing.
    pub file_len: u64,
    pub(super) file: Arc<dyn File>,
}

impl ChainFile {
    /// The position up to which its bytes exist in the file; at most its end.
    pub(super) fn present_end(&self) -> Seq {
        let present = self.file_len.saturating_sub(HEADER_BYTES).min(self.header.capacity);
        (self.header.start + present).min(self.end)
    }
}

/// The log files that make up the log, in order, and what else is in the directory.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// The log's log files, by position.
    pub log_files: Vec<ChainFile>,
    /// Log files that are not part of the log.
    pub stale: Vec<PathBuf>,
    /// A serial number higher than any seen in this directory.
    pub next_serial: u64,
    /// A file number higher than any in use.
    pub next_number: u64,
    /// The life of the database in which the log continues; the caller sets it, since no file names
    /// it.
    pub life: u64,
    /// The damage that was found, where the policy is to continue despite it.
    pub damage: Option<Error>,
}

impl Chain {
    /// The end of the last log file; `otherwise` if there are no log files.
    pub fn limit(&self, otherwise: Seq) -> Seq {
        self.log_files.last().map_or(otherwise, |log_file| log_file.end)
    }

    /// Whether all bytes of `start..end` exist in the files; only then a length from disk is
    /// trusted (C5).
    pub(super) fn holds(&self, start: Seq, end: Seq) -> bool {
        let from = self.log_files.partition_point(|log_file| log_file.end <= start);
        let reached = self.log_files[from..].iter().take_while(|it| it.header.start < end);
        reached.into_iter().all(|log_file| end.min(log_file.end) <= log_file.present_end())
            && end <= self.limit(start)
    }

    /// The log file whose window holds `position`.
    pub(super) fn at(&self, position: Seq) -> Option<&ChainFile> {
        let next = self.log_files.partition_point(|log_file| log_file.header.start <= position);
        // An empty window has the same start as its successor; the successor comes later and wins.
        self.log_files[..next].last().filter(|log_file| position < log_file.end)
    }
}

/// Reads all headers in `dir` and follows the chain back to `log_start`.
pub(super) fn load(fs: &dyn Fs, dir: &Path, log_start: Seq, policy: Policy) -> Result<Chain> {
    let mut chain = Chain { next_serial: 1, next_number: 1, ..Chain::default() };
    let (mut found, mut taken) = (Vec::new(), Vec::new());
    for entry in fs.list(dir).context("list", dir)? {
        let Some(number) = file_number(&entry.name) else { continue };
        taken.push(number);
        // A directory never takes the place of a log file. A link or a pipe may, so the open below
        // refuses those.
        if entry.is_dir() {
            continue;
        }
        let path = dir.join(&entry.name);
        match read_header(fs, &path) {
            Ok(Some(log_file)) => found.push(log_file),
            Ok(None) => chain.stale.push(path),
            Err(error @ Error::Corruption(_)) if policy == Policy::KeepPrefix => {
                chain.stale.push(path);
                chain.damage.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    chain.next_number = first_free(1, taken);
    found.sort_by_key(|log_file| log_file.header.serial);
    if let Some(newest) = found.last() {
        chain.next_serial = newest.header.serial.saturating_add(1);
    }
    let picked = pick(dir, &found, log_start, policy, &mut chain.damage)?;
    for (index, log_file) in found.into_iter().enumerate() {
        if picked.contains(&index) {
            chain.log_files.push(log_file);
        } else {
            chain.stale.push(log_file.path);
        }
    }
    for index in 1..chain.log_files.len() {
        chain.log_files[index - 1].end = chain.log_files[index].header.start;
    }
    Ok(chain)
}

/// The indexes of the chain's log files in `found`, in the order of their serial numbers.
fn pick(
    dir: &Path,
    found: &[ChainFile],
    log_start: Seq,
    policy: Policy,
    damage: &mut Option<Error>,
) -> Result<Vec<usize>> {
    for newest in (0..found.len()).rev() {
        match walk(found, newest, log_start) {
            Ok(mut indexes) => {
                indexes.reverse();
                return Ok(indexes);
            }
            Err(error) if policy == Policy::KeepPrefix => {
                damage.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    let missing = Error::corruption(
        dir,
        0,
        "log",
        format!("no log file holds position {log_start}, where the manifest says it begins"),
    );
    if policy == Policy::Refuse {
        return Err(missing);
    }
    damage.get_or_insert(missing);
    Ok(Vec::new())
}

/// Walks from the log file at index `last` back to the one that covers `log_start` (R11).
fn walk(found: &[ChainFile], last: usize, log_start: Seq) -> Result<Vec<usize>> {
    let mut indexes = vec![last];
    let mut at = last;
    // Seeded: only the newest log file is replayed.
    bug!("wal_chain_is_one_segment", return Ok(indexes));
    while found[at].header.start > log_start {
        let log_file = &found[at];
        let name = log_file.header.predecessor;
        let before = found[..at].iter().rposition(|other| name != 0 && other.header.nonce == name);
        // Seeded: the log file before is found by its age, not by its name, so that one that an
        // earlier recovery gave up takes part.
        let before = if bug!("wal_predecessor_by_age") { at.checked_sub(1) } else { before };
        let Some(before) = before else {
            return Err(Error::corruption(
                &log_file.path,
                0,
                "log file header",
                format!(
                    "the log starts at {} here, later than {log_start}, where the manifest says; \
                     the log file before is missing",
                    log_file.header.start
                ),
            ));
        };
        let header = &found[before].header;
        if log_file.header.start < header.start || log_file.header.start > header.limit() {
            let detail = "the log file does not continue the one that it names as predecessor";
            return Err(Error::corruption(&log_file.path, 0, "log file header", detail));
        }
        indexes.push(before);
        at = before;
    }
    // The newest log file must cover the start, or the log must end exactly there.
    // Seeded: a log that ends before the manifest says it begins is accepted.
    bug!("wal_lost_log_is_accepted", return Ok(indexes));
    if found[last].header.limit() < log_start {
        let detail = format!("the log ends before position {log_start}, where it is to begin");
        return Err(Error::corruption(&found[last].path, 0, "log file header", detail));
    }
    Ok(indexes)
}

/// The log file at `path`; None if the file never held one.
pub(super) fn read_header(fs: &dyn Fs, path: &Path) -> Result<Option<ChainFile>> {
    let file = open_part(fs, path, "log file header")?;
    let file_len = file.len().context("stat", path)?;
    let mut page = vec![0; file_len.min(HEADER_BYTES) as usize];
    file.read_at(&mut page, 0).context("read", path)?;
    let damaged = |detail| Err(Error::corruption(path, 0, "log file header", detail));
    match LogFileHeader::decode_page(&page) {
        HeaderPage::Valid(header) => Ok(Some(ChainFile {
            path: path.to_owned(),
            header,
            end: header.limit(),
            same_life: header.incarnation.same_life(&file.incarnation()),
            file_len,
            file,
        })),
        HeaderPage::Unknown(found) => {
            Err(Error::UnknownFormat { path: path.to_owned(), found, supported: VERSION })
        }
        // Seeded: a log file whose header page is gone is passed over with all its records.
        HeaderPage::Blank if bug!("wal_blank_header_is_no_segment") => Ok(None),
        HeaderPage::Blank if is_blank(&*file, path, file_len)? => Ok(None),
        HeaderPage::Blank => damaged("the header is blank, but records follow it"),
        HeaderPage::Damaged => damaged("no copy of the header has a valid checksum"),
    }
}

/// Whether the file has only zeros behind its header page.
fn is_blank(file: &dyn File, path: &Path, file_len: u64) -> Result<bool> {
    file.advise(Advice::Sequential);
    let mut chunk = vec![0; 256 << 10];
    let mut offset = HEADER_BYTES;
    while offset < file_len {
        let len = (file_len - offset).min(chunk.len() as u64) as usize;
        file.read_at(&mut chunk[..len], offset).context("read", path)?;
        if chunk[..len].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        offset += len as u64;
    }
    Ok(true)
}
