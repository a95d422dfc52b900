//! Reading a stream, of either form.

use super::binary::{
    CODEC_NONE, CODEC_ZSTD, HEAD_BYTES, HEADER_BYTES, Head, KIND_END, KIND_ENTRIES, KIND_KEYSPACE,
    MAGIC, decode_header,
};
use super::frame::{Entries, Frame, KeyspaceInfo, Totals, single_entry};
use super::packing::{Body, Failure};
use super::writer::State;
use super::{BODY_BYTES_MAX, FRAME_BYTES, Header, VERSION, WHOLE_BYTES_MAX, text};
use crate::{Error, Result};
use std::io::{BufRead, BufReader, ErrorKind, Read};

/// Reads a stream, frame by frame, and believes nothing before its checksum.
///
/// # Example
/// ```
/// use esker_port::{Form, Frame, Header, Reader, Writer};
/// let mut bytes = Vec::new();
/// Writer::new(&mut bytes, "memory", Form::Compressed, &Header::default())?.end()?;
/// let mut reader = Reader::new(bytes.as_slice(), "memory")?;
/// assert_eq!(reader.header(), &Header::default());
/// assert!(matches!(reader.next_frame()?, Some(Frame::End(_))));
/// assert_eq!(reader.next_frame()?, None);
/// assert_eq!(reader.offset(), bytes.len() as u64);
/// # Ok::<(), esker_port::Error>(())
/// ```
pub struct Reader<R> {
    input: BufReader<R>,
    what: String,
    text: bool,
    header: Header,
    state: State,
    /// Behind the last whole frame.
    whole: State,
    in_keyspace: bool,
    ended: bool,
    /// The value that is read in pieces.
    open: Option<Open>,
}

/// What comes next in a stream.
pub(crate) enum Part {
    /// A whole frame.
    Frame(Frame),
    /// An entry that is all of its frame, and whose value of `len` bytes follows in pieces.
    Entry { key: Vec<u8>, len: u64 },
}

/// A frame whose body is being read.
struct Open {
    at: u64,
    body: Body,
    /// Bytes that were read before the others.
    held: Vec<u8>,
    /// Bytes of key and value.
    lengths: u64,
}

/// Bytes in which the lengths of an entry have room.
const LENGTHS_BYTES: usize = 16;

impl<R: Read> Reader<R> {
    /// Reads the header. `what` names the stream in errors.
    ///
    /// # Errors
    /// [`Error::NotADump`], [`Error::UnknownVersion`], [`Error::Damaged`], [`Error::CutOff`],
    /// [`Error::Io`].
    ///
    /// # Example
    /// ```
    /// use esker_port::{Error, Reader};
    /// let opened = Reader::new(&b"a letter"[..], "letter.txt");
    /// assert!(matches!(opened, Err(Error::NotADump { what }) if what == "letter.txt"));
    /// ```
    pub fn new(input: R, what: &str) -> Result<Self> {
        let mut reader = Self {
            input: BufReader::with_capacity(1 << 20, input),
            what: what.to_owned(),
            text: false,
            header: Header::default(),
            state: State::default(),
            whole: State::default(),
            in_keyspace: false,
            ended: false,
            open: None,
        };
        let mut start = [0; MAGIC.len()];
        reader.fill(&mut start).map_err(|error| match error {
            Error::CutOff { what, .. } => Error::NotADump { what },
            other => other,
        })?;
        reader.text = text::MAGIC.starts_with(&start);
        if reader.text {
            reader.text_header()?;
        } else if start == *MAGIC {
            reader.binary_header()?;
        } else {
            return Err(Error::NotADump { what: what.to_owned() });
        }
        reader.whole = reader.state.clone();
        Ok(reader)
    }

    /// How the stream began.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.state.offset
    }

    /// Where the last whole frame ended.
    pub(crate) fn whole(&self) -> &State {
        &self.whole
    }

    /// What was read so far.
    pub(crate) fn totals(&self) -> Totals {
        self.whole.content.totals()
    }

    /// The next frame; `None` behind the end frame, if nothing follows it.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::CutOff`], [`Error::Io`]; do not read on after one.
    ///
    /// # Example
    /// ```
    /// # use esker_port::{Form, Header, KeyspaceInfo, Reader, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes, "memory", Form::Binary, &Header::default())?;
    /// # writer.keyspace(&KeyspaceInfo::named("default", None))?;
    /// # writer.end()?;
    /// let last = bytes.len() - 1;
    /// bytes[last] ^= 1; // A part of the last checksum.
    /// let mut reader = Reader::new(bytes.as_slice(), "memory")?;
    /// assert!(reader.next_frame().is_ok());
    /// assert!(reader.next_frame().is_err());
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn next_frame(&mut self) -> Result<Option<Frame>> {
        let (key, len) = match self.next_part()? {
            None => return Ok(None),
            Some(Part::Frame(frame)) => return Ok(Some(frame)),
            Some(Part::Entry { key, len }) => (key, len),
        };
        let (mut value, mut piece) = (Vec::new(), Vec::new());
        loop {
            self.piece(&mut piece)?;
            if piece.is_empty() {
                break;
            }
            value.extend_from_slice(&piece);
        }
        debug_assert_eq!(value.len() as u64, len);
        let mut entries = Entries::default();
        entries.push(&key, &value);
        Ok(Some(Frame::Entries(entries)))
    }

    /// The next frame, or the beginning of one whose value comes in pieces: then [`Self::piece`] has to be called
    /// until it returns nothing.
    pub(crate) fn next_part(&mut self) -> Result<Option<Part>> {
        if self.ended {
            return Ok(None);
        }
        let at = self.state.offset;
        let part = match self.text {
            true => Part::Frame(self.text_frame(at)?),
            false => self.binary_part(at)?,
        };
        match &part {
            Part::Frame(frame) => self.check_frame(at, frame)?,
            Part::Entry { .. } if !self.in_keyspace => return Err(self.outside(at)),
            Part::Entry { .. } => {}
        }
        Ok(Some(part))
    }

    /// Replaces `out` by the next bytes of the value, which are not proved yet. At the end of the value there are
    /// none, and all of it is proved: the checksum of its frame fits.
    pub(crate) fn piece(&mut self, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let Some(mut open) = self.open.take() else { return Ok(()) };
        out.append(&mut open.held);
        let more = FRAME_BYTES.saturating_sub(out.len());
        let before = out.len();
        self.unpack(&mut open, (out, more))?;
        self.state.content.piece(&out[before..]);
        if !out.is_empty() {
            self.open = Some(open);
            return Ok(());
        }
        self.end_body(&mut open)?;
        self.checksum(open.at)?;
        self.state.content.entry(open.lengths);
        self.whole = self.state.clone();
        Ok(())
    }

    fn outside(&self, at: u64) -> Error {
        self.damaged(at, "entries stand before the first keyspace")
    }

    /// Checks a frame against those before it.
    fn check_frame(&mut self, at: u64, frame: &Frame) -> Result<()> {
        match frame {
            Frame::Keyspace(info) => {
                self.in_keyspace = true;
                self.state.content.keyspace(info);
            }
            Frame::Entries(_) if !self.in_keyspace => return Err(self.outside(at)),
            Frame::Entries(entries) => self.state.content.entries(entries),
            Frame::End(totals) => {
                if *totals != self.state.content.totals() {
                    return Err(self.damaged(at, "the totals are not those of what was read"));
                }
                let rest = self.input.fill_buf();
                let rest = rest.map_err(|error| Error::io("read", &self.what, error))?;
                if !rest.is_empty() {
                    return Err(self.damaged(self.state.offset, "bytes follow the end"));
                }
                self.ended = true;
            }
        }
        self.whole = self.state.clone();
        Ok(())
    }

    fn binary_header(&mut self) -> Result<()> {
        let mut version = [0; 4];
        self.fill(&mut version)?;
        self.check_version(u32::from_le_bytes(version))?;
        let mut fields = [0; HEADER_BYTES - 8 - 12];
        self.fill(&mut fields)?;
        self.checksum(0)?;
        self.header =
            decode_header(&fields).map_err(|error| self.damaged(0, &error.to_string()))?;
        Ok(())
    }

    fn check_version(&self, found: u32) -> Result<()> {
        if found == VERSION {
            return Ok(());
        }
        Err(Error::UnknownVersion { what: self.what.clone(), found })
    }

    fn binary_part(&mut self, at: u64) -> Result<Part> {
        let mut head = [0; HEAD_BYTES];
        self.fill(&mut head)?;
        let expected = self.state.hasher.digest() as u32;
        let mut sum = [0; 4];
        self.fill(&mut sum)?;
        if u32::from_le_bytes(sum) != expected {
            return Err(self.damaged(at, "the head of a frame does not match its checksum"));
        }
        let wrong = |reader: &Self, what: &dyn ToString| reader.damaged(at, &what.to_string());
        let head = Head::decode(&head).map_err(|error| wrong(self, &error))?;
        let compressed = head.codec == CODEC_ZSTD;
        let known = compressed || head.codec == CODEC_NONE && head.stored == head.raw;
        if head.kind == KIND_ENTRIES && head.raw as usize > WHOLE_BYTES_MAX && known {
            let body = Body::new(head.stored, head.raw, compressed);
            let body = body.map_err(|error| Error::io("decompress", &self.what, error))?;
            return self.large(Open { at, body, held: Vec::new(), lengths: 0 });
        }
        let stored = self.body(head.stored as usize)?;
        self.checksum(at)?;
        let body = match head.codec {
            CODEC_NONE if head.stored == head.raw => stored,
            CODEC_ZSTD => zstd::bulk::decompress(&stored, head.raw as usize)
                .ok()
                .filter(|body| body.len() == head.raw as usize)
                .ok_or_else(|| wrong(self, &"a frame cannot be decompressed"))?,
            _ => return Err(wrong(self, &"a frame is packed in a way that is not known")),
        };
        let frame = match head.kind {
            KIND_KEYSPACE => KeyspaceInfo::decode(&body).map(Frame::Keyspace),
            KIND_ENTRIES => Entries::decode(body).map(Frame::Entries),
            KIND_END => Totals::decode(&body).map(Frame::End),
            _ => return Err(wrong(self, &"a frame is of a kind that is not known")),
        };
        frame.map(Part::Frame).map_err(|error| wrong(self, &error))
    }

    /// Begins to read a large frame of entries. One with several entries is read as a whole: such frames are of
    /// earlier writers.
    fn large(&mut self, mut open: Open) -> Result<Part> {
        let (all, mut start) = (open.body.left(), Vec::new());
        self.unpack(&mut open, (&mut start, LENGTHS_BYTES))?;
        if let Some((lengths, key, len)) = single_entry(&start, all) {
            let missing = (lengths + key).saturating_sub(start.len());
            self.unpack(&mut open, (&mut start, missing))?;
            self.state.content.piece(&start);
            open.held = start.split_off(lengths + key);
            open.lengths = key as u64 + len;
            self.open = Some(open);
            return Ok(Part::Entry { key: start.split_off(lengths), len });
        }
        self.unpack(&mut open, (&mut start, all as usize))?;
        self.end_body(&mut open)?;
        self.checksum(open.at)?;
        let entries = Entries::decode(start);
        let entries = entries.map_err(|error| self.damaged(open.at, &error.to_string()))?;
        Ok(Part::Frame(Frame::Entries(entries)))
    }

    /// Appends at most so many of the next bytes of a body to `out`.
    fn unpack(&mut self, open: &mut Open, out: (&mut Vec<u8>, usize)) -> Result<()> {
        let state = &mut self.state;
        let read = open.body.read(&mut self.input, &mut |bytes| state.pass(bytes), out);
        read.map_err(|failure| self.failed(open.at, failure))
    }

    fn end_body(&mut self, open: &mut Open) -> Result<()> {
        let state = &mut self.state;
        let ended = open.body.end(&mut self.input, &mut |bytes| state.pass(bytes));
        ended.map_err(|failure| self.failed(open.at, failure))
    }

    fn failed(&self, at: u64, failure: Failure) -> Error {
        match failure {
            Failure::CutOff => self.cut_off(),
            Failure::Damaged => self.damaged(at, "a frame cannot be decompressed"),
            Failure::Io(error) => Error::io("read", &self.what, error),
        }
    }

    /// Reads `len` bytes. Memory grows with what is there, not with what a length says.
    fn body(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(len.min(super::FRAME_BYTES * 2));
        let read = self.input.by_ref().take(len as u64).read_to_end(&mut body);
        read.map_err(|error| Error::io("read", &self.what, error))?;
        self.state.pass(&body);
        if body.len() < len {
            return Err(self.cut_off());
        }
        Ok(body)
    }

    fn checksum(&mut self, at: u64) -> Result<()> {
        let expected = self.state.hasher.digest();
        let mut sum = [0; 8];
        self.fill(&mut sum)?;
        if u64::from_le_bytes(sum) != expected {
            return Err(self.damaged(at, "a checksum does not match"));
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.cut_off(),
            _ => Error::io("read", &self.what, error),
        })?;
        self.state.pass(bytes);
        Ok(())
    }

    fn text_header(&mut self) -> Result<()> {
        let first = self.line()?;
        let rest = &text::MAGIC[MAGIC.len()..];
        let version = first.strip_prefix(rest).and_then(|digits| std::str::from_utf8(digits).ok());
        let version = version.and_then(|digits| digits.parse().ok());
        let version = version.ok_or_else(|| Error::NotADump { what: self.what.clone() })?;
        self.check_version(version)?;
        let mut header = Header::default();
        for index in 0..text::HEADER_LINES {
            let line = self.line()?;
            text::header_line(index, &line, &mut header)
                .map_err(|what| self.damaged(self.state.offset, what))?;
        }
        self.header = header;
        let expected = self.state.hasher.digest();
        let line = self.line()?;
        if self.is_check(&line, expected, 0)? {
            return Ok(());
        }
        Err(self.damaged(0, "the header has no checksum"))
    }

    fn text_frame(&mut self, at: u64) -> Result<Frame> {
        let mut frame = None;
        loop {
            let expected = self.state.hasher.digest();
            let line = self.line()?;
            if self.is_check(&line, expected, at)? {
                return frame.ok_or_else(|| self.damaged(at, "a checksum stands alone"));
            }
            text::line(&line, &mut frame).map_err(|what| self.damaged(at, what))?;
        }
    }

    /// Whether the line is a checksum, which must then be the expected one.
    fn is_check(&self, line: &[u8], expected: u64, at: u64) -> Result<bool> {
        match line.strip_prefix(b"check ") {
            None => Ok(false),
            Some(sum) if sum == format!("{expected:016x}").as_bytes() => Ok(true),
            Some(_) => Err(self.damaged(at, "a checksum does not match")),
        }
    }

    /// The next line without its end.
    fn line(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        let mut limited = self.input.by_ref().take(text::LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut line);
        read.map_err(|error| Error::io("read", &self.what, error))?;
        self.state.pass(&line);
        if line.pop() == Some(b'\n') {
            return Ok(line);
        }
        if line.len() as u64 + 1 >= text::LINE_BYTES_MAX {
            return Err(self.damaged(self.state.offset, "a line is longer than any can be"));
        }
        Err(self.cut_off())
    }

    fn cut_off(&self) -> Error {
        Error::CutOff { what: self.what.clone(), offset: self.state.offset }
    }

    fn damaged(&self, offset: u64, detail: &str) -> Error {
        Error::Damaged { what: self.what.clone(), offset, detail: detail.to_owned() }
    }
}

const _: () = assert!(BODY_BYTES_MAX < u32::MAX as usize);
