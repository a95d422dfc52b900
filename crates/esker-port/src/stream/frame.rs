//! What a frame holds. The bodies described here are the bytes of binary frames; checksums of
//! content are taken over them too.

use crate::{Error, Result};
use esker::internals::base::codec::{self, DecodeError};
use esker::internals::base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
use esker::{Keyspace, ValueReader};
use std::io::BufRead;
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3;

/// The tags of the properties of a keyspace.
const TAG_COMPARATOR: u64 = 1;
const TAG_OPERATOR: u64 = 2;
const TAG_TTL: u64 = 3;

/// One frame of a stream.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, Frame, Quiet, Reader};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("k", "v")?;
/// # let mut stream = Vec::new();
/// # esker_port::dump(&db, &mut stream, "memory", &DumpOptions::default(), &mut Quiet)?;
/// let mut reader = Reader::new(stream.as_slice(), "memory")?;
/// while let Some(frame) = reader.next_frame()? {
///     match frame {
///         Frame::Keyspace(info) => assert_eq!(info.name, "default"),
///         Frame::Entries(entries) => assert_eq!(entries.len(), 1),
///         Frame::End(totals) => assert_eq!(totals.entries, 1),
///     }
/// }
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// The entries that follow belong to this keyspace.
    Keyspace(KeyspaceInfo),
    /// Entries in the keyspace's order.
    Entries(Entries),
    /// The last frame.
    End(Totals),
}

/// What a dump keeps of a keyspace.
///
/// # Example
/// ```
/// use esker_port::KeyspaceInfo;
/// let mut info = KeyspaceInfo::named("sessions", None);
/// info.ttl = Some(std::time::Duration::from_secs(60));
/// assert_eq!(info.comparator, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyspaceInfo {
    /// Its name.
    pub name: String,
    /// The name of its comparator; `None`: byte order.
    pub comparator: Option<String>,
    /// The name of its merge operator.
    pub merge_operator: Option<String>,
    /// How long writes to it live that do not say it themselves; whole milliseconds.
    pub ttl: Option<Duration>,
}

impl KeyspaceInfo {
    /// What a dump keeps of this keyspace.
    ///
    /// # Example
    /// ```
    /// # use esker_port::KeyspaceInfo;
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// assert_eq!(KeyspaceInfo::of(&db.keyspace("users")?), KeyspaceInfo::named("users", None));
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn of(keyspace: &Keyspace) -> Self {
        Self {
            name: keyspace.name().to_owned(),
            comparator: keyspace.comparator_name().map(str::to_owned),
            merge_operator: keyspace.merge_operator(),
            ttl: keyspace.ttl(),
        }
    }

    /// A keyspace of this name in this order, or in byte order.
    ///
    /// # Example
    /// ```
    /// let info = esker_port::KeyspaceInfo::named("news", Some("reverse"));
    /// assert_eq!(info.comparator.as_deref(), Some("reverse"));
    /// ```
    pub fn named(name: impl Into<String>, comparator: Option<&str>) -> Self {
        let comparator = comparator.map(str::to_owned);
        Self { name: name.into(), comparator, ..Self::default() }
    }

    pub(crate) fn ttl_millis(&self) -> Option<u64> {
        self.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        codec::put_bytes(out, self.name.as_bytes());
        if let Some(comparator) = &self.comparator {
            codec::put_varint(out, TAG_COMPARATOR);
            codec::put_bytes(out, comparator.as_bytes());
        }
        if let Some(operator) = &self.merge_operator {
            codec::put_varint(out, TAG_OPERATOR);
            codec::put_bytes(out, operator.as_bytes());
        }
        if let Some(ttl) = self.ttl_millis() {
            codec::put_varint(out, TAG_TTL);
            codec::put_bytes(out, &ttl.to_le_bytes());
        }
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = codec::Reader::new(body);
        let mut info = Self::named(name(&mut reader)?, None);
        while !reader.is_empty() {
            match reader.varint()? {
                TAG_COMPARATOR if info.comparator.is_none() => {
                    info.comparator = Some(name(&mut reader)?);
                }
                TAG_OPERATOR if info.merge_operator.is_none() => {
                    info.merge_operator = Some(name(&mut reader)?);
                }
                TAG_TTL if info.ttl.is_none() => {
                    let mut millis = codec::Reader::new(reader.bytes(8)?);
                    info.ttl = Some(Duration::from_millis(millis.u64()?));
                }
                _ => return Err(DecodeError("a keyspace has a property that is not known")),
            }
        }
        Ok(info)
    }
}

fn name(reader: &mut codec::Reader<'_>) -> Result<String, DecodeError> {
    let bytes = reader.bytes(NAME_BYTES_MAX)?;
    if bytes.is_empty() {
        return Err(DecodeError("a name is empty"));
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError("a name is not UTF-8"))
}

/// Entries one behind the other: lengths of key and value as varints, key, value.
///
/// # Example
/// ```
/// let mut entries = esker_port::Entries::default();
/// assert!(entries.is_empty());
/// entries.push(b"apple", b"red");
/// assert_eq!((entries.len(), entries.bytes()), (1, 8));
/// assert!(!entries.is_full());
/// assert_eq!(entries.body(), b"\x05\x03applered");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entries {
    body: Vec<u8>,
    count: u64,
    lengths: u64,
}

impl Entries {
    /// None, with room for a frame.
    ///
    /// # Example
    /// ```
    /// assert!(esker_port::Entries::with_frame_capacity().is_empty());
    /// ```
    pub fn with_frame_capacity() -> Self {
        Self { body: Vec::with_capacity(super::FRAME_BYTES + 4096), ..Self::default() }
    }

    /// Adds an entry.
    ///
    /// # Example
    /// ```
    /// let mut entries = esker_port::Entries::default();
    /// for number in 0..10_u8 {
    ///     entries.push(&[number], b"value");
    /// }
    /// assert_eq!(entries.len(), 10);
    /// ```
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        codec::put_varint(&mut self.body, key.len() as u64);
        codec::put_varint(&mut self.body, value.len() as u64);
        self.body.extend_from_slice(key);
        self.body.extend_from_slice(value);
        self.count += 1;
        self.lengths += (key.len() + value.len()) as u64;
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether they fill a frame.
    pub fn is_full(&self) -> bool {
        self.body.len() >= super::FRAME_BYTES
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> u64 {
        self.lengths
    }

    /// Their bytes as a frame holds them.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Forgets all and keeps the memory.
    ///
    /// # Example
    /// ```
    /// # let mut entries = esker_port::Entries::default();
    /// entries.push(b"key", b"value");
    /// entries.clear();
    /// assert!(entries.is_empty());
    /// ```
    pub fn clear(&mut self) {
        self.body.clear();
        (self.count, self.lengths) = (0, 0);
    }

    /// Keys and values, in order.
    ///
    /// # Example
    /// ```
    /// # let mut entries = esker_port::Entries::default();
    /// entries.push(b"a", b"1");
    /// entries.push(b"b", b"2");
    /// let keys: Vec<&[u8]> = entries.iter().map(|(key, _value)| key).collect();
    /// assert_eq!(keys, [b"a", b"b"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut reader = codec::Reader::new(&self.body);
        // What stands here was pushed or checked, so the end of the bytes is all that ends it.
        std::iter::from_fn(move || entry(&mut reader).ok())
    }

    pub(crate) fn decode(body: Vec<u8>) -> Result<Self, DecodeError> {
        let mut reader = codec::Reader::new(&body);
        let (mut count, mut lengths) = (0, 0);
        while !reader.is_empty() {
            let (key, value) = entry(&mut reader)?;
            count += 1;
            lengths += (key.len() + value.len()) as u64;
        }
        if count == 0 {
            return Err(DecodeError("a frame of entries is empty"));
        }
        Ok(Self { body, count, lengths })
    }
}

/// How an entry begins in a body: everything before its value.
pub(crate) fn entry_head(key: &[u8], value: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(key.len() + 16);
    codec::put_varint(&mut head, key.len() as u64);
    codec::put_varint(&mut head, value);
    head.extend_from_slice(key);
    head
}

/// The lengths with which the first entry of a body begins, if it is all of a body of `body` bytes: the bytes of
/// the lengths, of the key and of the value.
pub(crate) fn single_entry(start: &[u8], body: u64) -> Option<(usize, usize, u64)> {
    let mut reader = codec::Reader::new(start);
    let key = reader.varint_max(KEY_BYTES_MAX as u64).ok()? as usize;
    let value = reader.varint_max(VALUE_BYTES_MAX).ok()?;
    let lengths = reader.position();
    (lengths as u64 + key as u64 + value == body).then_some((lengths, key, value))
}

#[inline]
fn entry<'a>(reader: &mut codec::Reader<'a>) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    let key = reader.varint_max(KEY_BYTES_MAX as u64)? as usize;
    let value = reader.varint_max(VALUE_BYTES_MAX)? as usize;
    Ok((reader.take(key)?, reader.take(value)?))
}

/// What a stream holds in all.
///
/// # Example
/// ```
/// # use esker_port::{Form, Header, KeyspaceInfo, Writer};
/// let mut writer = Writer::new(Vec::new(), "memory", Form::Binary, &Header::default())?;
/// writer.keyspace(&KeyspaceInfo::named("default", None))?;
/// let totals = writer.end()?;
/// assert_eq!((totals.keyspaces, totals.entries, totals.bytes), (1, 0, 0));
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Keyspaces.
    pub keyspaces: u64,
    /// Entries.
    pub entries: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// The checksum of the content.
    pub content: u64,
}

impl Totals {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.keyspaces, self.entries, self.bytes] {
            codec::put_varint(out, number);
        }
        out.extend_from_slice(&self.content.to_le_bytes());
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = codec::Reader::new(body);
        let (keyspaces, entries) = (reader.varint()?, reader.varint()?);
        let totals = Self { keyspaces, entries, bytes: reader.varint()?, content: reader.u64()? };
        if !reader.is_empty() {
            return Err(DecodeError("bytes follow the totals"));
        }
        Ok(totals)
    }
}

/// The checksum of content while it is gathered. It does not depend on where frames end.
#[derive(Clone, Default)]
pub(crate) struct Content {
    hasher: Xxh3,
    totals: Totals,
}

impl Content {
    pub fn keyspace(&mut self, info: &KeyspaceInfo) {
        let mut body = vec![0xff; 4];
        info.encode(&mut body);
        self.hasher.update(&body);
        self.totals.keyspaces += 1;
    }

    pub fn entries(&mut self, entries: &Entries) {
        self.hasher.update(&entries.body);
        self.totals.entries += entries.count;
        self.totals.bytes += entries.lengths;
    }

    /// The next bytes of the body of an entry that comes in pieces.
    pub fn piece(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// An entry whose value is read piece by piece.
    pub fn entry_from(&mut self, key: &[u8], value: &mut ValueReader) -> Result<()> {
        let len = value.len();
        self.piece(&entry_head(key, len));
        loop {
            let piece = value.fill_buf().map_err(Error::of_value)?;
            if piece.is_empty() {
                break;
            }
            let bytes = piece.len();
            self.hasher.update(piece);
            value.consume(bytes);
        }
        self.entry(key.len() as u64 + len);
        Ok(())
    }

    /// Counts the entry whose pieces came: bytes of its key and value.
    pub fn entry(&mut self, lengths: u64) {
        self.totals.entries += 1;
        self.totals.bytes += lengths;
    }

    pub fn totals(&self) -> Totals {
        Totals { content: self.hasher.digest(), ..self.totals }
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.totals.fmt(f)
    }
}
