//! What a LevelDB manifest says: the comparator, the live tables, and which logs are newer.

use super::fault::{damaged, failed};
use super::key::TAG_BYTES;
use super::log::Log;
use crate::{Engine, Result};
use esker::internals::base::codec::{DecodeError, Decoded, Reader};
use std::collections::BTreeMap;
use std::path::Path;

/// LevelDB has levels 0 to 6.
const LEVELS: usize = 7;
/// `CURRENT` holds one name.
const CURRENT_BYTES_MAX: u64 = 4096;
/// The longest name of a comparator, and the longest key, that this reader takes from a manifest.
const BYTES_MAX: usize = 1 << 30;

const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const COMPACT_POINTER: u64 = 5;
const DELETED_FILE: u64 = 6;
const NEW_FILE: u64 = 7;
const PREVIOUS_LOG: u64 = 9;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    pub number: u64,
    pub size: u64,
    /// Its first key, with LevelDB's part behind the user's.
    pub smallest: Vec<u8>,
}

/// The newest state that a manifest describes.
#[derive(Debug, Default)]
pub struct Version {
    pub comparator: String,
    pub log_number: u64,
    pub previous_log: Option<u64>,
    pub last_sequence: u64,
    /// Which of the three numbers that no manifest goes without were there.
    numbers: [bool; 3],
    /// The tables of each level, by number. Those of level 0 overlap.
    pub levels: Vec<Vec<TableFile>>,
}

/// While edits are applied: level and number give size and smallest key.
type Files = BTreeMap<(usize, u64), (u64, Vec<u8>)>;

/// The manifest that `CURRENT` names.
fn open(engine: Engine, directory: &Path) -> Result<Log> {
    let current = directory.join("CURRENT");
    let name =
        crate::foreign::read_text(&current, CURRENT_BYTES_MAX).map_err(failed("read", &current))?;
    let digits = name.strip_suffix('\n').and_then(|name| name.strip_prefix("MANIFEST-"));
    // A name from a file never leads outside of the directory.
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let digits = digits.filter(|digits| !digits.is_empty());
    let digits = digits.ok_or_else(|| damaged(engine, &current, 0, "it names no manifest"))?;
    Log::open(engine, &directory.join(format!("MANIFEST-{digits}")))
}

/// Proves that a manifest can be read to its end. RocksDB takes a damaged length for the end, in
/// the middle too, and would show an older state, or none, without a word.
#[cfg(feature = "import-rocksdb")]
pub(crate) fn prove(engine: Engine, directory: &Path) -> Result<()> {
    let mut log = open(engine, directory)?;
    while log.next()?.is_some() {}
    // What the cut edit said is not known, so whether it was ever promised is not either.
    if log.is_torn() {
        return Err(log.bad("the last edit is damaged, or was never written whole"));
    }
    Ok(())
}

impl Version {
    /// Reads the manifest that `CURRENT` names.
    pub fn read(directory: &Path) -> Result<Self> {
        let mut log = open(Engine::LevelDb, directory)?;
        let mut version = Self::default();
        let mut files = Files::new();
        while let Some(record) = log.next()? {
            let applied = version.apply(record, &mut files);
            applied.map_err(|error| log.bad(&format!("an edit makes no sense ({error})")))?;
        }
        // A manifest begins with an edit that lacks these numbers: the one behind it is lost.
        if version.numbers != [true; 3] || version.comparator.is_empty() {
            return Err(log.bad("the manifest does not say all that it must"));
        }
        version.levels = vec![Vec::new(); LEVELS];
        // LevelDB gives a log up only when the edit that needs it no more is durable. A state that
        // is the newest because its successor was torn still has its log; else it was damaged.
        let own_log = directory.join(format!("{:06}.log", version.log_number));
        if log.is_torn() && version.log_number != 0 && !own_log.exists() {
            return Err(log.bad("the last edit is damaged"));
        }
        for ((level, number), (size, smallest)) in files {
            version.levels[level].push(TableFile { number, size, smallest });
        }
        Ok(version)
    }

    fn apply(&mut self, record: &[u8], files: &mut Files) -> Decoded<()> {
        let mut reader = Reader::new(record);
        let level = |reader: &mut Reader<'_>| {
            reader.varint_max(LEVELS as u64 - 1).map(|level| level as usize)
        };
        // Deletions count before additions, wherever they stand in the edit.
        let (mut deleted, mut added) = (Vec::new(), Vec::new());
        while !reader.is_empty() {
            match reader.varint()? {
                COMPARATOR => {
                    let name = reader.bytes(BYTES_MAX)?;
                    let name = std::str::from_utf8(name);
                    let name = name.map_err(|_| DecodeError("a name is not UTF-8"))?;
                    self.comparator = name.to_owned();
                }
                LOG_NUMBER => {
                    self.log_number = reader.varint()?;
                    self.numbers[0] = true;
                }
                PREVIOUS_LOG => {
                    self.previous_log = Some(reader.varint()?).filter(|number| *number != 0);
                }
                NEXT_FILE => {
                    reader.varint()?;
                    self.numbers[1] = true;
                }
                LAST_SEQUENCE => {
                    self.last_sequence = reader.varint()?;
                    self.numbers[2] = true;
                }
                COMPACT_POINTER => {
                    level(&mut reader)?;
                    reader.bytes(BYTES_MAX)?;
                }
                DELETED_FILE => deleted.push((level(&mut reader)?, reader.varint()?)),
                NEW_FILE => {
                    let place = (level(&mut reader)?, reader.varint()?);
                    let size = reader.varint()?;
                    let smallest = reader.bytes(BYTES_MAX)?.to_vec();
                    if smallest.len() < TAG_BYTES {
                        return Err(DecodeError("a key is too short"));
                    }
                    reader.bytes(BYTES_MAX)?;
                    added.push((place, (size, smallest)));
                }
                _ => return Err(DecodeError("it has a field that LevelDB does not have")),
            }
        }
        for place in deleted {
            files.remove(&place);
        }
        files.extend(added);
        Ok(())
    }
}
