//! Writing a stream.

use super::binary::{
    CODEC_NONE, CODEC_ZSTD, Head, KIND_END, KIND_ENTRIES, KIND_KEYSPACE, encode_header,
};
use super::frame::{Content, Entries, Frame, KeyspaceInfo, Totals};
use super::{Form, Header, text};
use crate::{Error, Result};
use std::io::Write;
use xxhash_rust::xxh3::Xxh3;

/// The level of compression: fast, and near to what higher levels reach on small entries.
const ZSTD_LEVEL: i32 = 3;

/// Where a stream stands between two frames: enough to go on with it.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub offset: u64,
    pub hasher: Xxh3,
    pub content: Content,
}

/// Writes a stream, frame by frame.
///
/// # Example
/// ```
/// use esker_port::{Entries, Form, Frame, Header, KeyspaceInfo, Reader, Writer};
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes, "memory", Form::Binary, &Header::default())?;
/// writer.keyspace(&KeyspaceInfo::named("default", None))?;
/// let mut entries = Entries::default();
/// entries.push(b"k", b"v");
/// writer.entries(entries)?;
/// let totals = writer.end()?;
/// assert_eq!((totals.entries, totals.bytes), (1, 2));
/// let mut reader = Reader::new(bytes.as_slice(), "memory")?;
/// assert!(matches!(reader.next_frame()?, Some(Frame::Keyspace(_))));
/// # Ok::<(), esker_port::Error>(())
/// ```
pub struct Writer<W> {
    out: W,
    what: String,
    form: Form,
    state: State,
}

impl<W: Write> Writer<W> {
    /// Begins a stream. `what` names it in errors.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Example
    /// ```
    /// # use esker_port::{Form, Header, Writer};
    /// let mut bytes = Vec::new();
    /// let writer = Writer::new(&mut bytes, "memory", Form::Binary, &Header::default())?;
    /// assert!(writer.offset() > 0); // The header is written.
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn new(out: W, what: &str, form: Form, header: &Header) -> Result<Self> {
        let mut writer = Self::resume(out, what, form, State::default());
        if form == Form::Text {
            writer.put(text::header(header).as_bytes())?;
            writer.check_line()?;
        } else {
            writer.put(&encode_header(header))?;
            writer.checksum()?;
        }
        Ok(writer)
    }

    /// Goes on where a stream stood.
    pub(crate) fn resume(out: W, what: &str, form: Form, state: State) -> Self {
        Self { out, what: what.to_owned(), form, state }
    }

    /// Begins a keyspace.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Example
    /// ```
    /// # use esker_port::{Form, Header, KeyspaceInfo, Writer};
    /// # let mut writer = Writer::new(Vec::new(), "memory", Form::Binary, &Header::default())?;
    /// for name in ["default", "users"] {
    ///     writer.keyspace(&KeyspaceInfo::named(name, None))?;
    /// }
    /// assert_eq!(writer.end()?.keyspaces, 2);
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn keyspace(&mut self, info: &KeyspaceInfo) -> Result<()> {
        self.state.content.keyspace(info);
        let mut body = Vec::new();
        info.encode(&mut body);
        self.frame(KIND_KEYSPACE, &body, || Frame::Keyspace(info.clone()))
    }

    /// Writes entries of the last keyspace, which must be in its order and behind those before.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Example
    /// ```
    /// # use esker_port::{Entries, Form, Header, KeyspaceInfo, Writer};
    /// # let mut writer = Writer::new(Vec::new(), "memory", Form::Binary, &Header::default())?;
    /// # writer.keyspace(&KeyspaceInfo::named("default", None))?;
    /// let mut entries = Entries::default();
    /// entries.push(b"apple", b"red");
    /// entries.push(b"pear", b"green");
    /// writer.entries(entries)?;
    /// assert_eq!(writer.end()?.entries, 2);
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn entries(&mut self, entries: Entries) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        self.state.content.entries(&entries);
        if self.form == Form::Text {
            return self.text(&Frame::Entries(entries));
        }
        self.binary(KIND_ENTRIES, entries.body())
    }

    /// Ends the stream and hands it to the system. Returns what it holds.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Example
    /// ```
    /// # use esker_port::{Form, Header, Reader, Writer};
    /// # let mut bytes = Vec::new();
    /// let writer = Writer::new(&mut bytes, "memory", Form::Binary, &Header::default())?;
    /// drop(writer); // Without its end a stream is not whole.
    /// let mut reader = Reader::new(bytes.as_slice(), "memory")?;
    /// assert!(matches!(reader.next_frame(), Err(esker_port::Error::CutOff { .. })));
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn end(mut self) -> Result<Totals> {
        let totals = self.state.content.totals();
        let mut body = Vec::new();
        totals.encode(&mut body);
        self.frame(KIND_END, &body, || Frame::End(totals))?;
        self.out.flush().map_err(|error| Error::io("write", &self.what, error))?;
        Ok(totals)
    }

    /// How many bytes the stream has.
    ///
    /// # Example
    /// ```
    /// # use esker_port::{Form, Header, Writer};
    /// let mut bytes = Vec::new();
    /// let writer = Writer::new(&mut bytes, "memory", Form::Text, &Header::default())?;
    /// let offset = writer.offset();
    /// # drop(writer);
    /// assert_eq!(offset, bytes.len() as u64);
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn offset(&self) -> u64 {
        self.state.offset
    }

    fn frame(&mut self, kind: u8, body: &[u8], as_frame: impl FnOnce() -> Frame) -> Result<()> {
        if self.form == Form::Text { self.text(&as_frame()) } else { self.binary(kind, body) }
    }

    fn text(&mut self, frame: &Frame) -> Result<()> {
        let mut lines = String::new();
        text::frame(frame, &mut lines);
        self.put(lines.as_bytes())?;
        self.check_line()
    }

    fn check_line(&mut self) -> Result<()> {
        let line = format!("check {:016x}\n", self.state.hasher.digest());
        self.put(line.as_bytes())
    }

    fn binary(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        let packed = match self.form {
            Form::Compressed => zstd::bulk::compress(body, ZSTD_LEVEL)
                .map_err(|error| Error::io("compress", &self.what, error))?,
            _ => Vec::new(),
        };
        let (codec, stored) = if packed.is_empty() || packed.len() >= body.len() {
            (CODEC_NONE, body)
        } else {
            (CODEC_ZSTD, packed.as_slice())
        };
        let head = Head { kind, codec, raw: body.len() as u32, stored: stored.len() as u32 };
        self.put(&head.encode())?;
        let sum = self.state.hasher.digest() as u32;
        self.put(&sum.to_le_bytes())?;
        self.put(stored)?;
        self.checksum()
    }

    fn checksum(&mut self) -> Result<()> {
        let sum = self.state.hasher.digest();
        self.put(&sum.to_le_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| Error::io("write", &self.what, error))?;
        self.state.hasher.update(bytes);
        self.state.offset += bytes.len() as u64;
        Ok(())
    }
}
