//! The manifest file: a log of edits.
//!
//! ```text
//! file   = header (64 bytes), record*
//! header = magic 8, version u32, 0 u32, manifest number u64, nonce u64, 0…, checksum u64
//! record = payload length u32, kind u32, checksum u64 (over kind and payload), payload, padding
//! ```
//! Records begin at multiples of 8 and their checksums are salted with the file's nonce and their
//! offset. Each record is synced before the next one is appended, so only the last one can be torn.
//! Damage with a whole record behind it is corruption (C4, R11).

use crate::base::codec::{Reader, checksum};
use crate::error::{Error, IoContext, Result};
use crate::fs::{File, Fs, OpenMode, PathKind, open_part};
use crate::manifest::record::{
    KIND_EDIT, KIND_SUCCESSOR, RECORD_HEADER_LEN, encode_record, record_at,
};
use crate::manifest::search::Search;
use crate::manifest::{
    Edit, FORMAT_VERSION, FORMAT_VERSION_MIN, Reach, Recovered, manifest_name, parse_manifest_name,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"ESKERMF\n";
pub(super) const HEADER_LEN: u64 = 64;
/// A manifest is rewritten when it exceeds this many times its first record, plus a floor.
const GROWTH_MAX: u64 = 4;
const GROWTH_FLOOR_BYTES: u64 = 256 << 10;
/// Space is allocated in steps of this many bytes.
const ALLOCATION_BYTES: u64 = 16 << 10;
/// Bytes of the record that names the successor.
const SUCCESSOR_RECORD_BYTES: u64 = RECORD_HEADER_LEN as u64 + 8;

/// Whether the file at `path` begins like a manifest of this engine, of any version.
pub fn begins_like_one(fs: &dyn Fs, path: &Path) -> Result<bool> {
    let file = fs.open(path, OpenMode::Read).context("open", path)?;
    let mut start = [0; MAGIC.len()];
    Ok(file.read_at(&mut start, 0).is_ok() && start == MAGIC)
}

/// A manifest that takes edits.
#[derive(Debug)]
pub struct Manifest {
    number: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    reach: Reach,
    first_record_bytes: u64,
    allocated: u64,
    /// Whether an append failed so that it is unknown whether its record is there.
    in_doubt: bool,
}

impl Manifest {
    /// Like [`Manifest::create`], with the next number after `old`; a regular file of that name is
    /// replaced, anything else is skipped.
    pub fn create_next(fs: &dyn Fs, directory: &Path, old: u64, state: &Edit) -> Result<Self> {
        let entries = fs.list(directory).context("list", directory)?;
        let others = entries.iter().filter(|entry| !entry.is_file());
        let taken: Vec<u64> = others.filter_map(|entry| parse_manifest_name(&entry.name)).collect();
        let Some(number) = (old..).skip(1).find(|number| !taken.contains(number)) else {
            let path = directory.join(manifest_name(old));
            return Err(Error::corruption(&path, 0, "manifest", "its number is the last one"));
        };
        Self::create(fs, directory, number, state)
    }

    /// Writes a new manifest whose first record is `state`, and syncs it and the directory.
    pub fn create(fs: &dyn Fs, directory: &Path, number: u64, state: &Edit) -> Result<Self> {
        let path = directory.join(manifest_name(number));
        let nonce = getrandom::u64().map_err(|error| {
            Error::io("draw random bytes for", &path, std::io::Error::other(error))
        })?;
        // A file of this name is left from an interrupted creation: no superblock and no
        // predecessor names it yet.
        if fs.kind(&path).context("look at", &path)? == Some(PathKind::File) {
            fs.remove_file(&path).context("remove", &path)?;
        }
        let file = fs.open(&path, OpenMode::CreateNew).context("create", &path)?;
        let mut manifest = Self {
            number,
            path,
            file,
            reach: Reach::of_header(nonce, HEADER_LEN),
            first_record_bytes: 0,
            allocated: 0,
            in_doubt: false,
        };
        if let Err(error) = manifest.begin(fs, directory, state) {
            // No superblock names the file, and on a full device its space is needed (C7).
            let _ = fs.remove_file(&manifest.path);
            return Err(error);
        }
        Ok(manifest)
    }

    /// Writes the header and the first record.
    fn begin(&mut self, fs: &dyn Fs, directory: &Path, state: &Edit) -> Result<()> {
        let mut header = [0; HEADER_LEN as usize];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&self.number.to_le_bytes());
        header[24..32].copy_from_slice(&self.reach.nonce.to_le_bytes());
        let sum = checksum(0, 0, &header[..56]);
        header[56..].copy_from_slice(&sum.to_le_bytes());
        self.file.write_at(&header, 0).context("write", &self.path)?;
        self.append(state)?;
        self.first_record_bytes = self.reach.len;
        // Seeded: a power cut takes the name of a manifest that a superblock leads to.
        bug!("manifest_name_not_synced", return Ok(()));
        fs.sync_dir(directory).context("sync", directory)
    }

    /// The manifest's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The manifest's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.reach.len
    }

    /// How far it reaches; all of this is synced.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Whether an append failed so that it is unknown whether its record is there.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Whether the manifest has grown so much that a new one should replace it.
    pub fn wants_rewrite(&self) -> bool {
        self.reach.len > GROWTH_FLOOR_BYTES + GROWTH_MAX * self.first_record_bytes
    }

    /// Allocates space for an edit and for the successor record behind it. If the space runs out
    /// here, the manifest is unchanged, so this is not a failure of the manifest (C7).
    pub fn reserve(&mut self, edit: &Edit) -> Result<()> {
        let mut payload = Vec::new();
        edit.encode(&mut payload);
        let needed = self.reach.len
            + (RECORD_HEADER_LEN + payload.len() + 8) as u64
            + SUCCESSOR_RECORD_BYTES;
        if needed > self.allocated {
            let target = needed + ALLOCATION_BYTES;
            self.file.allocate(target).context("allocate space for", &self.path)?;
            self.allocated = target;
        }
        Ok(())
    }

    /// Appends an edit and syncs it. After an error it is unknown whether the file has the edit
    /// (C2). If space ran out and the manifest is not [in doubt](Self::is_in_doubt), it is
    /// unchanged.
    pub fn append(&mut self, edit: &Edit) -> Result<()> {
        let mut payload = Vec::new();
        edit.encode(&mut payload);
        self.append_record(KIND_EDIT, &payload, &mut || false)
    }

    /// As [`Self::append`]. Calls `make_room` if the write finds no space although space was
    /// reserved; this happens on file systems that copy on write.
    pub fn append_making_room(
        &mut self,
        edit: &Edit,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let mut payload = Vec::new();
        edit.encode(&mut payload);
        self.append_record(KIND_EDIT, &payload, make_room)
    }

    /// Names the manifest that takes this one's place (R12). `make_room`: as above.
    pub fn append_successor(
        &mut self,
        number: u64,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        // Seeded: a retired manifest does not name its successor, so that a lost superblock leads
        // back to an old state.
        bug!("manifest_successor_not_written", return Ok(()));
        self.append_record(KIND_SUCCESSOR, &number.to_le_bytes(), make_room)
    }

    fn append_record(
        &mut self,
        kind: u32,
        payload: &[u8],
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let Reach { nonce, len, .. } = self.reach;
        let (sum, record) = encode_record(nonce, len, kind, payload);
        self.in_doubt = true;
        loop {
            match self.file.write_at(&record, len).context("write", &self.path) {
                // The same bytes again, at the same place.
                Err(Error::DiskFull { .. }) if make_room() => {}
                Err(error @ Error::DiskFull { .. }) => {
                    // At most a part of the record was written. Truncating it makes the next record
                    // follow the last whole one.
                    self.file.set_len(len).context("cut", &self.path)?;
                    self.allocated = 0;
                    self.in_doubt = false;
                    return Err(error);
                }
                written => break written?,
            }
        }
        // Seeded: what an edit drops is given back before the edit is durable.
        bug!("manifest_edit_not_synced", {
            self.reach = self.reach.with_record(sum, record.len() as u64);
            self.in_doubt = false;
            return Ok(());
        });
        self.file.sync_data().context("sync", &self.path)?;
        self.in_doubt = false;
        self.reach = self.reach.with_record(sum, record.len() as u64);
        Ok(())
    }

    /// The manifest that was just read, for a database that only reads.
    pub fn open_read_only(fs: &dyn Fs, directory: &Path, recovered: &Recovered) -> Result<Self> {
        let path = directory.join(manifest_name(recovered.number));
        let file = fs.open(&path, OpenMode::Read).context("open", &path)?;
        Ok(Self {
            number: recovered.number,
            path,
            file,
            reach: recovered.reach,
            first_record_bytes: 0,
            allocated: 0,
            in_doubt: false,
        })
    }
}

/// Reads manifest `number`, checks it against `known`, and follows the names of successors.
pub fn read(
    fs: &dyn Fs,
    directory: &Path,
    mut number: u64,
    mut known: Option<Reach>,
) -> Result<Recovered> {
    loop {
        let (recovered, successor) = read_records(fs, directory, number)?;
        // Nothing is known about a successor: its first record was durable before a record named
        // it.
        known.take().map_or(Ok(()), |known| recovered.check_reach(directory, known))?;
        match successor {
            None => return Ok(recovered),
            // Numbers only grow, so a chain of names cannot be a loop.
            Some(next) if next > number => number = next,
            Some(_) => {
                let path = directory.join(manifest_name(number));
                return Err(Error::corruption(&path, 0, "manifest", "its successor is older"));
            }
        }
    }
}

/// Reads manifest `number` alone: its edits, and its successor's number if it names one.
pub fn read_records(
    fs: &dyn Fs,
    directory: &Path,
    number: u64,
) -> Result<(Recovered, Option<u64>)> {
    let path = directory.join(manifest_name(number));
    let file = open_part(fs, &path, "manifest")?;
    let len = file.len().context("measure", &path)?;
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0).context("read", &path)?;
    let (_, nonce) = check_header(&path, &bytes, number)?;
    let reach = Reach::of_header(nonce, HEADER_LEN);
    let mut recovered =
        Recovered { number, edits: Vec::new(), reach, steps: Vec::new(), torn: false };
    let mut successor = None;
    while let Some(record) = record_at(&bytes, recovered.reach.len as usize, nonce) {
        let damaged = |detail: &str| {
            Error::corruption(&path, recovered.reach.len, "manifest edit", detail.to_owned())
        };
        let payload = record.payload;
        match record.kind {
            KIND_EDIT => {
                recovered.edits.push(Edit::decode(payload).map_err(|error| damaged(error.0))?)
            }
            KIND_SUCCESSOR => {
                successor = Some(Reader::new(payload).u64().map_err(|error| damaged(error.0))?);
            }
            _ => return Err(damaged("a record is of a kind that is not known")),
        }
        let bytes = (RECORD_HEADER_LEN + payload.len()).next_multiple_of(8) as u64;
        recovered.reach = recovered.reach.with_record(record.sum, bytes);
        recovered.steps.push(recovered.reach);
    }
    check_tail(&path, &bytes, &mut recovered)?;
    Ok((recovered, successor))
}

/// Decides between a torn end and corruption behind the last whole record (R11).
fn check_tail(path: &Path, bytes: &[u8], recovered: &mut Recovered) -> Result<()> {
    if recovered.edits.is_empty() {
        let detail = "its first record, which holds the whole state, is damaged";
        return Err(Error::corruption(path, HEADER_LEN, "manifest edit", detail));
    }
    let end = recovered.reach.len as usize;
    // The padding of the last record may be cut off.
    recovered.torn = bytes.get(end..).unwrap_or_default().iter().any(|byte| *byte != 0);
    // Seeded: damage in the middle of a manifest drops all later edits.
    bug!("manifest_damage_is_a_torn_tail", return Ok(()));
    if !recovered.torn {
        return Ok(());
    }
    let mut search = Search::new(bytes, recovered.reach.nonce);
    let detail = match search.find(end + 8) {
        Some(offset) => format!("a whole record follows at offset {offset}"),
        None if search.is_spent() => "what follows is no torn record".to_owned(),
        None => return Ok(()),
    };
    Err(Error::corruption(path, recovered.reach.len, "manifest edit", detail))
}

/// The version and the nonce of a manifest.
pub(super) fn check_header(path: &Path, bytes: &[u8], number: u64) -> Result<(u32, u64)> {
    let damaged = |detail: &str| Error::corruption(path, 0, "manifest header", detail);
    if bytes.len() < HEADER_LEN as usize || bytes[..8] != MAGIC {
        return Err(damaged("it does not begin like a manifest"));
    }
    let mut reader = Reader::new(&bytes[8..HEADER_LEN as usize]);
    let mut parse = || -> crate::base::codec::Decoded<_> {
        let version = reader.u32()?;
        reader.u32()?;
        let stored = reader.u64()?;
        let nonce = reader.u64()?;
        reader.take(24)?;
        Ok((version, stored, nonce, reader.u64()?))
    };
    let (version, stored, nonce, sum) = parse().map_err(|error| damaged(error.0))?;
    if sum != checksum(0, 0, &bytes[..56]) {
        return Err(damaged("its checksum does not match"));
    }
    if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version) {
        let supported = FORMAT_VERSION;
        return Err(Error::UnknownFormat { path: path.to_owned(), found: version, supported });
    }
    if stored != number {
        return Err(damaged("it is another manifest under this name"));
    }
    Ok((version, nonce))
}
