//! The stream of a dump: a header and frames, in a text form and a binary form.
//!
//! 1. Both forms are ways to write the same frames, so that all that follows a [`Reader`] knows
//!    one thing only: keyspaces, groups of entries, the end.
//! 2. Every checksum in a stream covers all bytes before it. What was changed, lost, doubled or
//!    moved is noticed at the next checksum, and no frame is handed out before its own fits.
//!    A larger value comes in pieces: its end is handed out when the checksum fits, and not before.
//! 3. A stream is whole only with its end frame, whose totals agree with what was read, and
//!    nothing behind it.
//!
//! `docs/dump-format.md` describes the bytes.

mod binary;
mod frame;
mod packing;
mod reader;
mod text;
mod writer;

pub use frame::{Entries, Frame, KeyspaceInfo, Totals};
pub use reader::Reader;
pub use writer::Writer;

pub(crate) use frame::{Content, entry_head};
pub(crate) use reader::Part;
pub(crate) use writer::State;

#[cfg(test)]
mod tests;

/// The version of both forms.
pub(crate) const VERSION: u32 = 1;
/// Most bytes in the body of a frame: one entry of the largest size, and its lengths.
pub(crate) const BODY_BYTES_MAX: usize = (1 << 30) + (1 << 17);
/// Frames are closed when they reach this size.
pub(crate) const FRAME_BYTES: usize = 256 << 10;
/// A larger value has a frame of its own, and is written and read in pieces of [`FRAME_BYTES`].
pub(crate) const WHOLE_BYTES_MAX: usize = 1 << 20;

/// How a stream is written.
///
/// # Example
/// ```
/// use esker_port::{Form, Header, Writer};
/// let mut text = Vec::new();
/// Writer::new(&mut text, "memory", Form::Text, &Header::default())?.end()?;
/// assert!(text.is_ascii());
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Binary frames.
    #[default]
    Binary,
    /// Binary frames, each compressed with Zstandard where that makes it smaller.
    Compressed,
    /// Lines of text.
    Text,
}

/// How a stream begins.
///
/// # Example
/// ```
/// # use esker_port::{DumpOptions, Quiet, Reader};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # let mut stream = Vec::new();
/// # esker_port::dump(&db, &mut stream, "memory", &DumpOptions::default(), &mut Quiet)?;
/// let reader = Reader::new(stream.as_slice(), "memory")?;
/// assert_eq!(reader.header().database, db.id());
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Drawn at random for each dump; a load that goes on knows it by this.
    pub dump: [u8; 16],
    /// The database it was made of: [`esker::Db::id`].
    pub database: [u8; 16],
    /// The log position of the snapshot with which the dump began: [`esker::Snapshot::position`].
    pub position: u64,
    /// A hash of what was selected and in which form, so that a dump goes on as it began.
    pub selection: u64,
}
