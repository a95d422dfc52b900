//! Branches and named snapshots, as the manifest knows them.
//!
//! A branch is a set of keyspaces that began as copies of its parent's keyspaces at one position of
//! the log, its *point*. The branch shares the trees as they were at that point, and the entries
//! that were in memory then. Those entries are in memtables, or after a crash in the log, before
//! the point and under the number of the original keyspace (R24).

use crate::base::codec::{DecodeError, Decoded, Reader, put_bytes, put_varint};
use crate::base::{KeyspaceId, SEQ_MAX, Seq};
use crate::manifest::fields::read_name;

/// What a branch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BranchKind {
    /// It is written to.
    Branch = 0,
    /// It never changes: a named snapshot.
    Snapshot = 1,
}

/// A branch or named snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchRecord {
    /// Its number: that of its keyspace `default`, so it is never used twice (R16).
    pub id: KeyspaceId,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: BranchKind,
    /// When it was made: milliseconds since 1970, by the system's clock.
    pub made_at: u64,
    /// The position of the log at which it was made: it shares the entries before with its parent.
    pub point: Seq,
    /// Keyspaces that this edit copies: the number of the copy and that of the original. The copy
    /// has the original's name, order and tree as they are at this edit.
    pub copies: Vec<(KeyspaceId, KeyspaceId)>,
}

/// The branch of a keyspace, and the numbers under which its entries are in memtables and log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Home {
    /// The branch; 0: the database itself.
    pub branch: KeyspaceId,
    /// Entries from this position on have the keyspace's own number.
    pub born: Seq,
    /// Entries before `born` have these numbers, those of its originals, the nearest first, each
    /// with the position from which on it applies.
    pub older: Vec<(Seq, KeyspaceId)>,
}

impl Home {
    /// The number that entries of keyspace `own` have in memtables and log files that begin at
    /// `start`.
    #[inline]
    pub fn id_at(&self, own: KeyspaceId, start: Seq) -> KeyspaceId {
        if start >= self.born {
            return own;
        }
        self.older.iter().find(|(born, _)| *born <= start).map_or(own, |(_, id)| *id)
    }

    /// The home of a copy that is made at `point` of keyspace `id`, which has this home.
    #[must_use]
    pub fn of_copy(&self, id: KeyspaceId, branch: KeyspaceId, point: Seq) -> Self {
        let older = std::iter::once((self.born, id)).chain(self.older.iter().copied()).collect();
        Self { branch, born: point, older }
    }

    /// The part of it that is still needed if the log begins at `log_start`.
    #[must_use]
    pub fn from(&self, log_start: Seq) -> Self {
        if self.born <= log_start {
            return Self { branch: self.branch, ..Self::default() };
        }
        self.clone()
    }

    /// Moves positions behind `end` to `end`, after the log was cut there (R30).
    pub fn cut(&mut self, end: Seq) {
        self.born = self.born.min(end);
        self.older.iter_mut().for_each(|(born, _)| *born = (*born).min(end));
    }
}

fn id(reader: &mut Reader<'_>) -> Decoded<KeyspaceId> {
    Ok(reader.varint_max(u64::from(u32::MAX))? as KeyspaceId)
}

/// A count of elements of at least two bytes each, checked against the remaining bytes.
fn count(reader: &mut Reader<'_>) -> Decoded<usize> {
    Ok(reader.varint_max(reader.remaining() as u64 / 2)? as usize)
}

impl BranchRecord {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.id));
        put_bytes(out, self.name.as_bytes());
        out.push(self.kind as u8);
        put_varint(out, self.made_at);
        put_varint(out, self.point);
        put_varint(out, self.copies.len() as u64);
        for (copy, original) in &self.copies {
            put_varint(out, u64::from(*copy));
            put_varint(out, u64::from(*original));
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let number = id(reader)?;
        let name = read_name(reader)?;
        let kind = match reader.u8()? {
            0 => BranchKind::Branch,
            1 => BranchKind::Snapshot,
            _ => return Err(DecodeError("a branch is of a kind that is not known")),
        };
        let made_at = reader.varint()?;
        let point = reader.varint_max(SEQ_MAX)?;
        let copies = (0..count(reader)?).map(|_| Ok((id(reader)?, id(reader)?)));
        Ok(Self { id: number, name, kind, made_at, point, copies: copies.collect::<Decoded<_>>()? })
    }
}

impl Home {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.branch));
        put_varint(out, self.born);
        put_varint(out, self.older.len() as u64);
        for (born, id) in &self.older {
            put_varint(out, *born);
            put_varint(out, u64::from(*id));
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let branch = id(reader)?;
        let born = reader.varint_max(SEQ_MAX)?;
        let older = (0..count(reader)?).map(|_| Ok((reader.varint_max(SEQ_MAX)?, id(reader)?)));
        let older: Vec<(Seq, KeyspaceId)> = older.collect::<Decoded<_>>()?;
        let positions = std::iter::once(born).chain(older.iter().map(|(born, _)| *born));
        if !positions.is_sorted_by(|newer, older| newer >= older) {
            return Err(DecodeError("the originals of a keyspace are not in order"));
        }
        Ok(Self { branch, born, older })
    }
}
