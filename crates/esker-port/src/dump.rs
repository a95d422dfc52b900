//! Making dumps.
//!
//! A dump shows one snapshot: other threads may go on writing. The calling thread reads the
//! database, a second one writes the stream. An interrupted dump to a file can continue after its
//! last whole frame, if the database still shows what the file holds: then the whole stream shows the
//! later snapshot. Positions do not say so: they move when nothing is written, entries expire without
//! one, and after a kill that lost writes they are given out again. So the database is read up to the
//! last key of the file, and the checksum of the content decides.

use crate::loader::MARK_KEYSPACE;
use crate::stream::Part as Read;
use crate::stream::{Content, Entries, Form, Frame, Header, KeyspaceInfo};
use crate::stream::{Reader, State, Totals, Writer};
use crate::walk::{digest, fill, reader_of};
use crate::{Error, Progress, Result, Step, Summary};
use esker::{Db, Iter, Keyspace, Snapshot, ValueReader};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// How many frames wait between reading and writing.
pub(crate) const QUEUE: usize = 4;

/// What passes from the thread that reads to the one that writes.
enum Part {
    Frame(Frame),
    /// An entry whose value is written while it is read.
    Entry(Vec<u8>, ValueReader),
}

/// How to dump, and what.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, Form, Quiet};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # for key in ["apple", "banana", "cherry"] { db.insert(key, "")?; }
/// let mut options = DumpOptions::default();
/// options.form = Form::Text;
/// options.from = Some(b"b".to_vec()); // Without the apple.
/// let mut stream = Vec::new();
/// let dumped = esker_port::dump(&db, &mut stream, "memory", &options, &mut Quiet)?;
/// assert_eq!(dumped.entries, 2);
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DumpOptions {
    /// The form of the stream.
    pub form: Form,
    /// Only these keyspaces; `None`: all.
    pub keyspaces: Option<Vec<String>>,
    /// Only keys from this one on.
    pub from: Option<Vec<u8>>,
    /// Only keys before this one.
    pub to: Option<Vec<u8>>,
}

impl DumpOptions {
    /// A hash of everything that decides which bytes the stream has.
    fn selection(&self) -> u64 {
        let form = match self.form {
            Form::Binary => 0,
            Form::Compressed => 1,
            Form::Text => 2,
        };
        let mut bytes = vec![form];
        for name in self.keyspaces.iter().flatten() {
            esker::internals::base::codec::put_bytes(&mut bytes, name.as_bytes());
        }
        for bound in [&self.from, &self.to] {
            bytes.push(u8::from(bound.is_some()));
            esker::internals::base::codec::put_bytes(
                &mut bytes,
                bound.as_deref().unwrap_or_default(),
            );
        }
        xxh3_64(&bytes)
    }

    fn range(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let from = self.from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        (from, self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
    }
}

/// Writes a dump to a stream, which is complete once this returns.
///
/// # Errors
/// [`Error::Io`] for the stream, [`Error::NoKeyspace`], [`Error::Unfinished`] if a load into the
/// database was not finished, [`Error::Engine`] for the database:
/// [`esker::Error::ComparatorMissing`] if the comparator of a keyspace was not given when it was
/// opened.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use esker_port::{DumpOptions, LoadOptions, Quiet};
/// let db = esker::Db::open(dir.path().join("a"))?;
/// db.insert("k", "v")?;
/// let mut stream = Vec::new();
/// let dumped = esker_port::dump(&db, &mut stream, "memory", &DumpOptions::default(), &mut Quiet)?;
/// let copy = esker::Db::open(dir.path().join("b"))?;
/// let options = LoadOptions::default();
/// let loaded = esker_port::load(&copy, stream.as_slice(), "memory", &options, &mut Quiet)?;
/// assert_eq!(dumped.content, loaded.content);
/// assert_eq!(copy.get("k")?.as_deref(), Some(&b"v"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn dump(
    db: &Db,
    out: impl Write + Send,
    what: &str,
    options: &DumpOptions,
    progress: &mut dyn Progress,
) -> Result<Summary> {
    let job = Job::new(db, options)?;
    let writer = Writer::new(BufWriter::new(out), what, options.form, &job.header()?)?;
    job.run(writer, None, progress)
}

/// Writes a dump to a file, which gets its name when it is complete and durable. Until then its
/// name ends with `.part`; with `resume`, an interrupted dump is continued.
///
/// # Errors
/// As [`dump`]; [`Error::FileExists`]; [`Error::CannotResume`] if the database no longer shows what
/// the unfinished file holds, or something else was selected.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, Quiet};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(dir.path().join("db"))?;
/// # db.insert("k", "v")?;
/// # let file = dir.path().join("monday.dump");
/// let dumped = esker_port::dump_to_file(&db, &file, &DumpOptions::default(), false, &mut Quiet)?;
/// assert_eq!(dumped.entries, 1);
/// assert!(file.exists());
/// # Ok::<(), esker_port::Error>(())
/// ```
pub fn dump_to_file(
    db: &Db,
    path: &Path,
    options: &DumpOptions,
    resume: bool,
    progress: &mut dyn Progress,
) -> Result<Summary> {
    if path.symlink_metadata().is_ok() {
        let remedy = "name another, or remove it";
        return Err(Error::FileExists { path: path.to_owned(), remedy });
    }
    let part = part_of(path);
    let what = part.display().to_string();
    let failed = |operation| {
        let what = what.clone();
        move |error| Error::io(operation, what, error)
    };
    let job = Job::new(db, options)?;
    let exists = part.symlink_metadata().is_ok_and(|meta| meta.len() > 0);
    if exists && !resume {
        let remedy = "say --resume to go on with this unfinished dump, or remove it";
        return Err(Error::FileExists { path: part, remedy });
    }
    let mut how = OpenOptions::new();
    how.read(true).write(true).create(true).truncate(false);
    let mut file = how.open(&part).map_err(failed("open"))?;
    let summary = match exists.then(|| Resume::read(&file, &part, &job)).transpose()?.flatten() {
        Some(at) => {
            file.set_len(at.state.offset).map_err(failed("cut"))?;
            file.seek(SeekFrom::End(0)).map_err(failed("write"))?;
            let out = BufWriter::new(&mut file);
            let writer = Writer::resume(out, &what, options.form, at.state.clone());
            job.run(writer, Some(at), progress)?
        }
        None => {
            // What was there may have been read.
            file.rewind().and_then(|()| file.set_len(0)).map_err(failed("cut"))?;
            let out = BufWriter::new(&mut file);
            let writer = Writer::new(out, &what, options.form, &job.header()?)?;
            job.run(writer, None, progress)?
        }
    };
    file.sync_all().map_err(failed("sync"))?;
    std::fs::rename(&part, path).map_err(failed("rename"))?;
    sync_parent(path)?;
    Ok(summary)
}

/// The name of an unfinished dump.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Makes the new name durable.
fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    #[cfg(unix)]
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| Error::io("sync", parent.display().to_string(), error))?;
    #[cfg(not(unix))]
    let _ = parent;
    Ok(())
}

/// Where an unfinished dump stopped.
struct Resume {
    state: State,
    done: Totals,
    keyspace: String,
    last_key: Option<Vec<u8>>,
}

impl Resume {
    /// Reads an unfinished dump up to its last valid frame. `None`: nothing of it is usable, not
    /// even its header.
    fn read(file: &File, part: &Path, job: &Job<'_>) -> Result<Option<Self>> {
        let what = part.display().to_string();
        let mut reader = match Reader::new(file, &what) {
            Ok(reader) => reader,
            Err(Error::CutOff { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mine = Header { dump: reader.header().dump, ..job.header()? };
        let detail = match *reader.header() {
            header if header.database != mine.database => "it is of another database",
            header if header.selection != mine.selection => {
                "it selects other things or its form is another"
            }
            _ => "",
        };
        if !detail.is_empty() {
            return Err(Error::CannotResume { what: part.to_owned(), detail });
        }
        let (mut keyspace, mut last_key) = (None, None);
        let ended = loop {
            match next_of(&mut reader) {
                Ok(Some(Read::Frame(Frame::Keyspace(info)))) => {
                    (keyspace, last_key) = (Some(info.name), None);
                }
                Ok(Some(Read::Frame(Frame::Entries(entries)))) => {
                    last_key = entries.iter().last().map(|(key, _)| key.to_vec());
                }
                Ok(Some(Read::Entry { key, .. })) => last_key = Some(key),
                Ok(Some(Read::Frame(Frame::End(_))) | None) => break true,
                // What stands behind the last whole frame was on its way when it was cut off.
                Err(Error::CutOff { .. } | Error::Damaged { .. }) => break false,
                Err(error) => return Err(error),
            }
        };
        let Some(keyspace) = keyspace else { return Ok(None) };
        let (state, done) = (reader.whole().clone(), reader.totals());
        let at = Self { state, done, keyspace, last_key };
        if !job.shows(&at)? {
            let detail = "the database has changed since";
            return Err(Error::CannotResume { what: part.to_owned(), detail });
        }
        // One that was finished and not renamed is written again.
        Ok((!ended).then_some(at))
    }
}

/// The next part of an unfinished dump, which is whole: of a value that comes in pieces, all of them came.
fn next_of(reader: &mut Reader<&File>) -> Result<Option<Read>> {
    let (part, mut piece) = (reader.next_part()?, Vec::new());
    if let Some(Read::Entry { .. }) = &part {
        reader.piece(&mut piece)?;
        while !piece.is_empty() {
            reader.piece(&mut piece)?;
        }
    }
    Ok(part)
}

/// A dump that is under way.
struct Job<'a> {
    db: &'a Db,
    options: &'a DumpOptions,
    snapshot: Snapshot,
    keyspaces: Vec<Keyspace>,
    /// About how many entries there are, where that is known.
    expected: Option<u64>,
    started: Instant,
}

impl<'a> Job<'a> {
    fn new(db: &'a Db, options: &'a DumpOptions) -> Result<Self> {
        let snapshot = db.snapshot()?;
        let all = db.keyspaces()?;
        let names = match &options.keyspaces {
            None if all.iter().any(|name| name == MARK_KEYSPACE) => {
                return Err(Error::Unfinished { path: db.path().to_owned() });
            }
            None => all,
            Some(names) => {
                if let Some(name) = names.iter().find(|name| !all.contains(name)) {
                    return Err(Error::NoKeyspace { keyspace: name.clone() });
                }
                let mut names = names.clone();
                names.sort();
                names.dedup();
                names
            }
        };
        let keyspaces =
            names.iter().map(|name| db.keyspace(name)).collect::<esker::Result<Vec<_>>>()?;
        let whole = options.from.is_none() && options.to.is_none();
        let expected = whole.then(|| estimate(db, &names));
        Ok(Self { db, options, snapshot, keyspaces, expected, started: Instant::now() })
    }

    fn header(&self) -> Result<Header> {
        let mut dump = [0; 16];
        getrandom::fill(&mut dump)
            .map_err(|error| Error::io("draw", "random bytes", std::io::Error::other(error)))?;
        Ok(Header {
            dump,
            database: self.db.id(),
            position: self.snapshot.position(),
            selection: self.options.selection(),
        })
    }

    /// Whether the snapshot shows what an unfinished dump holds, and nothing between.
    fn shows(&self, at: &Resume) -> Result<bool> {
        let mut content = Content::default();
        for keyspace in self.keyspaces.iter().take_while(|one| one.name() <= at.keyspace.as_str()) {
            content.keyspace(&KeyspaceInfo::of(keyspace));
            let (from, mut to) = self.options.range();
            if keyspace.name() == at.keyspace {
                let Some(last) = &at.last_key else { break };
                to = Bound::Included(last);
            }
            let iter = self.snapshot.range::<&[u8]>(keyspace, (from, to))?;
            digest(&mut content, &self.snapshot, keyspace, iter)?;
        }
        Ok(content.totals() == at.done)
    }

    fn run<W: Write + Send>(
        self,
        mut writer: Writer<W>,
        resume: Option<Resume>,
        progress: &mut dyn Progress,
    ) -> Result<Summary> {
        let (sender, parts) = sync_channel::<Part>(QUEUE);
        let resumed = resume.as_ref().map(|at| at.done.entries).unwrap_or_default();
        let (totals, stream_bytes) = std::thread::scope(|scope| {
            let writing = scope.spawn(move || {
                for part in parts {
                    match part {
                        Part::Frame(Frame::Keyspace(info)) => writer.keyspace(&info)?,
                        Part::Frame(Frame::Entries(entries)) => writer.entries(entries)?,
                        Part::Entry(key, mut value) => {
                            let len = value.len();
                            writer.entry_from(&key, (&mut value, len))?;
                        }
                        Part::Frame(Frame::End(_)) => {
                            let before = writer.offset();
                            return writer.end().map(|totals| (totals, before));
                        }
                    }
                }
                // Reading failed, and that is what is reported.
                Ok(Default::default())
            });
            let read = self.read(resume, &sender, progress);
            drop(sender);
            let written = match writing.join() {
                Ok(written) => written,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            // If writing ended, reading only found that nobody listens.
            let written = written?;
            read.map(|()| written)
        })?;
        Ok(Summary::of(&totals, resumed, stream_bytes, self.started))
    }

    fn read(
        &self,
        resume: Option<Resume>,
        out: &SyncSender<Part>,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let mut done = resume.as_ref().map(|at| at.done).unwrap_or_default();
        let mut resume = resume;
        for keyspace in &self.keyspaces {
            let iter = self.snapshot.range::<&[u8]>(keyspace, self.options.range())?;
            let mut iter = iter.leaving_pieces();
            match &resume {
                Some(at) if keyspace.name() < at.keyspace.as_str() => continue,
                Some(at) if keyspace.name() == at.keyspace => {
                    skip_to(&mut iter, at.last_key.as_deref(), self.db)?;
                    resume = None;
                }
                _ => {
                    let info = KeyspaceInfo::of(keyspace);
                    if out.send(Part::Frame(Frame::Keyspace(info))).is_err() {
                        return Ok(());
                    }
                }
            }
            let mut more = true;
            while more {
                let mut entries = Entries::with_frame_capacity();
                let large = fill(&mut entries, &mut iter)?;
                more = large.is_some() || entries.is_full();
                (done.entries, done.bytes) =
                    (done.entries + entries.len(), done.bytes + entries.bytes());
                if !entries.is_empty() && out.send(Part::Frame(Frame::Entries(entries))).is_err() {
                    return Ok(());
                }
                if let Some(key) = large {
                    let value = reader_of(&self.snapshot, keyspace, &key)?;
                    done.entries += 1;
                    done.bytes += key.len() as u64 + value.len();
                    if out.send(Part::Entry(key, value)).is_err() {
                        return Ok(());
                    }
                }
                progress.step(self.step(done));
            }
        }
        // The writer knows the totals.
        let _ = out.send(Part::Frame(Frame::End(Totals::default())));
        Ok(())
    }

    fn step(&self, done: Totals) -> Step {
        // What is in memory was not counted, so the end is only known when it is there.
        let fraction = self.expected.filter(|expected| *expected > 0);
        let fraction = fraction.map(|expected| (done.entries as f64 / expected as f64).min(0.99));
        Step { entries: done.entries, bytes: done.bytes, fraction }
    }
}

/// Places an iterator after the last key that a dump holds.
fn skip_to(iter: &mut Iter, last: Option<&[u8]>, db: &Db) -> Result<()> {
    let Some(last) = last else { return Ok(()) };
    iter.seek(last)?;
    if iter.next_entry()?.is_some_and(|(key, _)| key == last) {
        return Ok(());
    }
    let detail = "the last key in it is not in the database";
    Err(Error::CannotResume { what: db.path().to_owned(), detail })
}

/// About how many entries the runs of some keyspaces hold, versions and removals included.
fn estimate(db: &Db, names: &[String]) -> u64 {
    let stats = db.stats();
    let wanted = stats.trees.iter().filter(|tree| names.contains(&tree.keyspace));
    let entries = |tree: &esker::TreeShape| {
        tree.base.entries + tree.deltas.iter().map(|level| level.entries).sum::<u64>()
    };
    wanted.map(entries).sum()
}
