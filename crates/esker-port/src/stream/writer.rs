//! Writing a stream.

use super::binary::{
    CODEC_NONE, CODEC_ZSTD, Head, KIND_END, KIND_ENTRIES, KIND_KEYSPACE, encode_header,
};
use super::frame::{Content, Entries, Frame, KeyspaceInfo, Totals, entry_head};
use super::packing::{Counted, ZSTD_LEVEL, encoder};
use super::{Form, Header, text};
use crate::{Error, Result, token};
use std::io::{self, BufRead, ErrorKind, Seek, Write};
use xxhash_rust::xxh3::Xxh3;

/// Where a stream stands between two frames: enough to go on with it.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub offset: u64,
    pub hasher: Xxh3,
    pub content: Content,
}

impl State {
    /// These are the next bytes of the stream.
    pub fn pass(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
    }
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

    /// Writes an entry of the last keyspace in a frame of its own. Its value of `len` bytes is read from its start,
    /// piece by piece, and twice if its form has to be known first.
    pub(crate) fn entry_from(
        &mut self,
        key: &[u8],
        (value, len): (&mut (impl BufRead + Seek), u64),
    ) -> Result<()> {
        let head = entry_head(key, len);
        self.state.content.piece(&head);
        self.state.content.entry(key.len() as u64 + len);
        match self.form {
            Form::Text => self.text_from(key, (value, len)),
            Form::Binary | Form::Compressed => self.binary_from(&head, (value, len)),
        }
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

    fn text_from(
        &mut self,
        key: &[u8],
        (value, len): (&mut (impl BufRead + Seek), u64),
    ) -> Result<()> {
        let mut shape = token::Shape::default();
        each_piece(value, len, |piece| {
            shape.see(piece);
            Ok(())
        })?;
        let mut line = format!("+ {} {}", token::encode(key), shape.prefix());
        self.put(line.as_bytes())?;
        each_piece(value, len, |piece| {
            self.state.content.piece(piece);
            line.clear();
            shape.encode_to(piece, &mut line);
            self.put(line.as_bytes())
        })?;
        self.put(b"\n")?;
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

    fn binary_from(
        &mut self,
        head: &[u8],
        (value, len): (&mut (impl BufRead + Seek), u64),
    ) -> Result<()> {
        let what = self.what.clone();
        let failed = |error| Error::io("compress", &what, error);
        let raw = head.len() as u64 + len;
        let mut packed = None;
        if self.form == Form::Compressed {
            let mut counted = encoder(Counted::default(), raw).map_err(failed)?;
            counted.write_all(head).map_err(failed)?;
            each_piece(value, len, |piece| counted.write_all(piece).map_err(failed))?;
            packed = Some(counted.finish().map_err(failed)?.0).filter(|packed| *packed < raw);
        }
        let (codec, stored) = packed.map_or((CODEC_NONE, raw), |packed| (CODEC_ZSTD, packed));
        let frame = Head { kind: KIND_ENTRIES, codec, raw: raw as u32, stored: stored as u32 };
        self.put(&frame.encode())?;
        let sum = self.state.hasher.digest() as u32;
        self.put(&sum.to_le_bytes())?;
        let end = self.state.offset + stored;
        let State { offset, hasher, content } = &mut self.state;
        let mut out = Out { out: &mut self.out, offset, hasher };
        let written = |error| Error::io("write", &what, error);
        if packed.is_some() {
            let mut packing = encoder(out, raw).map_err(failed)?;
            packing.write_all(head).map_err(written)?;
            each_piece(value, len, |piece| {
                content.piece(piece);
                packing.write_all(piece).map_err(written)
            })?;
            packing.finish().map_err(written)?;
        } else {
            out.write_all(head).map_err(written)?;
            each_piece(value, len, |piece| {
                content.piece(piece);
                out.write_all(piece).map_err(written)
            })?;
        }
        if self.state.offset != end {
            let error = io::Error::new(ErrorKind::InvalidData, "a value was read in two ways");
            return Err(failed(error));
        }
        self.checksum()
    }

    fn checksum(&mut self) -> Result<()> {
        let sum = self.state.hasher.digest();
        self.put(&sum.to_le_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| Error::io("write", &self.what, error))?;
        self.state.pass(bytes);
        Ok(())
    }
}

/// Where the bytes of a frame go.
struct Out<'w, W> {
    out: &'w mut W,
    offset: &'w mut u64,
    hasher: &'w mut Xxh3,
}

impl<W: Write> Write for Out<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        *self.offset += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Hands over the pieces of a value of `len` bytes, from its start on.
fn each_piece(
    value: &mut (impl BufRead + Seek),
    len: u64,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    value.rewind().map_err(Error::of_value)?;
    let mut left = len;
    while left > 0 {
        let piece = value.fill_buf().map_err(Error::of_value)?;
        if piece.is_empty() {
            return Err(Error::of_value(ErrorKind::UnexpectedEof.into()));
        }
        let bytes = left.min(piece.len() as u64) as usize;
        take(&piece[..bytes])?;
        value.consume(bytes);
        left -= bytes as u64;
    }
    Ok(())
}
