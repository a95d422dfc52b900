//! The payload of a log record: the operations of one batch.
//!
//! A batch is encoded once, by the caller's thread, straight into the bytes that the log will
//! hold; applying it to the memtable and replaying it after a crash decode the same bytes
//! (`docs/file-formats.md`, "Operations").

use crate::base::codec::{DecodeError, Decoded, Reader, put_bytes, put_varint};
use crate::base::limits::{BOUND_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
use crate::base::{KeyspaceId, Kind, Millis};

/// One operation, borrowing from the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op<'a> {
    /// The key is absent from here on.
    Delete {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// The key.
        key: &'a [u8],
    },
    /// The key has this value from here on.
    Put {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// A write that is neither a plain put nor a delete: an operand, or something that expires.
    Special {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// What it is: `Merge`, `ExpiringPut` or `ExpiringMerge`.
        kind: Kind,
        /// The key.
        key: &'a [u8],
        /// The value in its stored form: behind the time at which it expires, if it does.
        stored: &'a [u8],
    },
    /// Keys from `start` to before `end` are absent from here on.
    DeleteRange {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// First key; `None`: no lower bound.
        start: Option<&'a [u8]>,
        /// First key behind the range; `None`: no upper bound.
        end: Option<&'a [u8]>,
    },
    /// A keyspace is made.
    CreateKeyspace {
        /// Its number.
        keyspace: KeyspaceId,
        /// Its name.
        name: &'a str,
        /// The name of its comparator; empty: bytewise.
        comparator: &'a str,
    },
    /// The keyspace that is made next belongs to a branch.
    InBranch {
        /// Its number.
        keyspace: KeyspaceId,
        /// The branch's number.
        branch: KeyspaceId,
    },
    /// A keyspace ends.
    DropKeyspace {
        /// Its number.
        keyspace: KeyspaceId,
    },
    /// A keyspace gets other traits, in place of those that it has.
    SetTraits {
        /// Its number.
        keyspace: KeyspaceId,
        /// The name of its merge operator; empty: none.
        operator: &'a str,
        /// The name of its compaction filter; empty: none.
        filter: &'a str,
        /// How long later writes live; 0: for ever.
        ttl: Millis,
    },
}

const DELETE: u8 = 0;
const PUT: u8 = 1;
const DELETE_RANGE: u8 = 2;
const CREATE_KEYSPACE: u8 = 3;
const DROP_KEYSPACE: u8 = 4;
const SET_TRAITS: u8 = 5;
const IN_BRANCH: u8 = 6;
// The kinds of special writes stand behind these: their number in an entry, and this.
const SPECIAL: u8 = 16;

const HAS_START: u8 = 1;
const HAS_END: u8 = 2;

impl Op<'_> {
    /// The keyspace that it concerns.
    #[inline]
    pub fn keyspace(&self) -> KeyspaceId {
        match *self {
            Self::Delete { keyspace, .. }
            | Self::Put { keyspace, .. }
            | Self::DeleteRange { keyspace, .. }
            | Self::CreateKeyspace { keyspace, .. }
            | Self::Special { keyspace, .. }
            | Self::SetTraits { keyspace, .. }
            | Self::InBranch { keyspace, .. }
            | Self::DropKeyspace { keyspace } => keyspace,
        }
    }

    /// Appends the encoded operation.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Delete { keyspace, key } => {
                out.push(DELETE);
                put_varint(out, u64::from(keyspace));
                put_bytes(out, key);
            }
            Self::Put { keyspace, key, value } => {
                out.push(PUT);
                put_varint(out, u64::from(keyspace));
                put_bytes(out, key);
                put_bytes(out, value);
            }
            Self::DeleteRange { keyspace, start, end } => {
                out.push(DELETE_RANGE);
                put_varint(out, u64::from(keyspace));
                let start_flag = if start.is_some() { HAS_START } else { 0 };
                out.push(start_flag | if end.is_some() { HAS_END } else { 0 });
                for bound in [start, end].into_iter().flatten() {
                    put_bytes(out, bound);
                }
            }
            Self::CreateKeyspace { keyspace, name, comparator } => {
                out.push(CREATE_KEYSPACE);
                put_varint(out, u64::from(keyspace));
                put_bytes(out, name.as_bytes());
                put_bytes(out, comparator.as_bytes());
            }
            Self::InBranch { keyspace, branch } => {
                out.push(IN_BRANCH);
                put_varint(out, u64::from(keyspace));
                put_varint(out, u64::from(branch));
            }
            Self::DropKeyspace { keyspace } => {
                out.push(DROP_KEYSPACE);
                put_varint(out, u64::from(keyspace));
            }
            Self::Special { keyspace, kind, key, stored } => {
                out.push(SPECIAL + kind as u8);
                put_varint(out, u64::from(keyspace));
                put_bytes(out, key);
                put_bytes(out, stored);
            }
            Self::SetTraits { keyspace, operator, filter, ttl } => {
                out.push(SET_TRAITS);
                put_varint(out, u64::from(keyspace));
                put_bytes(out, operator.as_bytes());
                put_bytes(out, filter.as_bytes());
                put_varint(out, ttl);
            }
        }
    }
}

/// The operations of a payload, in order.
#[derive(Debug, Clone)]
pub struct Ops<'a> {
    reader: Reader<'a>,
}

impl<'a> Ops<'a> {
    /// Starts at the first operation.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { reader: Reader::new(payload) }
    }

    #[inline(never)]
    fn decode(&mut self) -> Decoded<Op<'a>> {
        let reader = &mut self.reader;
        let kind = reader.u8()?;
        let keyspace = reader.varint_max(u64::from(u32::MAX))? as KeyspaceId;
        Ok(match kind {
            DELETE => Op::Delete { keyspace, key: reader.bytes(KEY_BYTES_MAX)? },
            PUT => {
                let key = reader.bytes(KEY_BYTES_MAX)?;
                Op::Put { keyspace, key, value: reader.bytes(VALUE_BYTES_MAX as usize)? }
            }
            DELETE_RANGE => {
                let flags = reader.u8()?;
                if flags > HAS_START | HAS_END {
                    return Err(DecodeError("a range delete has unknown flags"));
                }
                let mut bound = |flag: u8| -> Decoded<Option<&'a [u8]>> {
                    (flags & flag != 0).then(|| reader.bytes(BOUND_BYTES_MAX)).transpose()
                };
                Op::DeleteRange { keyspace, start: bound(HAS_START)?, end: bound(HAS_END)? }
            }
            CREATE_KEYSPACE => {
                let name = decode_name(reader)?;
                Op::CreateKeyspace { keyspace, name, comparator: decode_name(reader)? }
            }
            DROP_KEYSPACE => Op::DropKeyspace { keyspace },
            SET_TRAITS => {
                let operator = decode_name(reader)?;
                let filter = decode_name(reader)?;
                Op::SetTraits { keyspace, operator, filter, ttl: reader.varint()? }
            }
            18..=20 => {
                let kind = Kind::from_u8(kind - SPECIAL)
                    .ok_or(DecodeError("an operation is of a kind that is not known"))?;
                let key = reader.bytes(KEY_BYTES_MAX)?;
                let stored = reader.bytes(VALUE_BYTES_MAX as usize)?;
                if stored.len() < kind.value_bytes_min() {
                    return Err(DecodeError("an operation that expires does not say when"));
                }
                Op::Special { keyspace, kind, key, stored }
            }
            IN_BRANCH => {
                let branch = reader.varint_max(u64::from(u32::MAX))? as KeyspaceId;
                Op::InBranch { keyspace, branch }
            }
            _ => return Err(DecodeError("an operation is of a kind that is not known")),
        })
    }
}

fn decode_name<'a>(reader: &mut Reader<'a>) -> Decoded<&'a str> {
    std::str::from_utf8(reader.bytes(NAME_BYTES_MAX)?)
        .map_err(|_| DecodeError("a name is not UTF-8"))
}

impl<'a> Iterator for Ops<'a> {
    type Item = Decoded<Op<'a>>;

    /// Most batches have one operation: the caller sees their end without a call.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        (!self.reader.is_empty()).then(|| self.decode())
    }
}

#[cfg(test)]
mod tests;
