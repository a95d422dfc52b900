//! Reading a stream, of either form.

use super::binary::{
    CODEC_NONE, CODEC_ZSTD, HEAD_BYTES, HEADER_BYTES, Head, KIND_END, KIND_ENTRIES, KIND_KEYSPACE,
    MAGIC, decode_header,
};
use super::frame::{Entries, Frame, KeyspaceInfo, Totals};
use super::writer::State;
use super::{BODY_BYTES_MAX, Header, VERSION, text};
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
}

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
        if self.ended {
            return Ok(None);
        }
        let at = self.state.offset;
        let frame = if self.text { self.text_frame(at)? } else { self.binary_frame(at)? };
        match &frame {
            Frame::Keyspace(info) => {
                self.in_keyspace = true;
                self.state.content.keyspace(info);
            }
            Frame::Entries(_) if !self.in_keyspace => {
                return Err(self.damaged(at, "entries stand before the first keyspace"));
            }
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
        Ok(Some(frame))
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

    fn binary_frame(&mut self, at: u64) -> Result<Frame> {
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
        frame.map_err(|error| wrong(self, &error))
    }

    /// Reads `len` bytes. Memory grows with what is there, not with what a length says.
    fn body(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(len.min(super::FRAME_BYTES * 2));
        let read = self.input.by_ref().take(len as u64).read_to_end(&mut body);
        read.map_err(|error| Error::io("read", &self.what, error))?;
        self.state.hasher.update(&body);
        self.state.offset += body.len() as u64;
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
        self.state.hasher.update(bytes);
        self.state.offset += bytes.len() as u64;
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
        self.state.hasher.update(&line);
        self.state.offset += line.len() as u64;
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
