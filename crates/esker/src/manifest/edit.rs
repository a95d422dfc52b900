//! The edits of the manifest: changes in a form whose replay gives the same version.

use crate::base::codec::{DecodeError, Decoded, Reader, put_bytes, put_varint};
use crate::base::limits::KEYSPACES_MAX;
use crate::base::{FileId, KeyspaceId, Millis, Seq};
use crate::manifest::fields::{put_key, read_key, read_list, read_name};
use crate::manifest::{BranchRecord, Home};
use crate::run::SegmentMeta;
use crate::wal::ops::Op;

/// A tree has at most this many tiers.
pub const TIERS_MAX: usize = 4;

/// A keyspace as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyspaceRecord {
    /// Its number, never reused (R16).
    pub id: KeyspaceId,
    /// Its name.
    pub name: String,
    /// The name of its comparator; `None`: bytewise.
    pub comparator: Option<String>,
}

/// The properties of a keyspace that may change while it exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traits {
    /// The name of its merge operator; empty: none.
    pub operator: String,
    /// The name of its compaction filter; empty: none.
    pub filter: String,
    /// The time to live of writes that do not set their own; 0: for ever.
    pub ttl: Millis,
}

impl Traits {
    /// The operation that gives them to a keyspace.
    pub fn set_op(&self, keyspace: KeyspaceId) -> Op<'_> {
        Op::SetTraits { keyspace, operator: &self.operator, filter: &self.filter, ttl: self.ttl }
    }
}

/// A run as the manifest knows it: run segments in key order, then segments of range tombstones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRecord {
    /// Data segments, ascending and not overlapping.
    pub segments: Vec<SegmentMeta>,
    /// Segments that hold range tombstones.
    pub tombstones: Vec<SegmentMeta>,
}

/// A partition as the manifest knows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartitionRecord {
    /// Its first possible key; `None`: no lower bound (the first partition of a tree).
    pub lower: Option<Vec<u8>>,
    /// Its base run.
    pub base: RunRecord,
    /// Its delta runs, the newest first.
    pub deltas: Vec<RunRecord>,
}

/// A change of one keyspace's tree.
#[derive(Debug, Clone, PartialEq)]
pub enum TreeEdit {
    /// Adds a delta on top of `count` neighbouring partitions of a row, the first of which begins
    /// at `lower`. For spans it is their newest pending run.
    AddDelta {
        /// The row: 0 is that of partitions.
        tier: usize,
        /// The first of them.
        lower: Option<Vec<u8>>,
        /// How many.
        count: usize,
        /// The new, newest delta of each.
        run: RunRecord,
    },
    /// Replaces `count` neighbouring partitions of a row, the first of which begins at `lower`.
    Replace {
        /// The row: 0 is that of partitions.
        tier: usize,
        /// The first replaced partition.
        lower: Option<Vec<u8>>,
        /// How many are replaced.
        count: usize,
        /// The partitions that take their place.
        partitions: Vec<PartitionRecord>,
    },
    /// Sets a whole tier: the top one or another that is there, or a new one above them. Without
    /// spans, it removes the top tier.
    Tier {
        /// Which.
        tier: usize,
        /// Its spans, in key order.
        spans: Vec<PartitionRecord>,
    },
    /// A row of the tree consists of these pieces, some of them shared with other trees. A row of
    /// partitions begins a tree without tiers.
    Share {
        /// The row: 0 is that of partitions.
        tier: usize,
        /// In key order.
        pieces: Vec<TreePiece>,
    },
}

/// A stretch of partitions of a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum TreePiece {
    /// Partitions that no earlier tree has.
    Own(Vec<PartitionRecord>),
    /// Partitions of the same row of another keyspace's tree, as the changes before this one leave
    /// it.
    Of {
        /// The other keyspace.
        keyspace: KeyspaceId,
        /// The index of the first of them in that tree.
        first: usize,
        /// How many.
        count: usize,
    },
}

/// One atomic change of the database's description.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edit {
    /// Where the log must begin (R11), if it changed.
    pub log_start: Option<Seq>,
    /// The next file number to assign, if it changed.
    pub next_file: Option<FileId>,
    /// The next keyspace number to assign, if it changed.
    pub next_keyspace: Option<KeyspaceId>,
    /// New branches; in the first record, all branches.
    pub branches: Vec<BranchRecord>,
    /// The homes of keyspaces of branches.
    pub homes: Vec<(KeyspaceId, Home)>,
    /// Keyspaces that were made.
    pub created: Vec<KeyspaceRecord>,
    /// Traits that keyspaces got.
    pub traits: Vec<(KeyspaceId, Traits)>,
    /// Keyspaces that were dropped, with their trees.
    pub dropped: Vec<KeyspaceId>,
    /// Branches that were dropped; their keyspaces are in `dropped`.
    pub branches_dropped: Vec<KeyspaceId>,
    /// Changes of trees, in this order.
    pub trees: Vec<(KeyspaceId, TreeEdit)>,
}

mod tag {
    pub const LOG_START: u8 = 1;
    pub const NEXT_FILE: u8 = 2;
    pub const NEXT_KEYSPACE: u8 = 3;
    pub const CREATED: u8 = 4;
    pub const DROPPED: u8 = 5;
    pub const ADD_DELTA: u8 = 6;
    pub const REPLACE: u8 = 7;
    pub const TRAITS: u8 = 8;
    pub const TIER: u8 = 9;
    pub const ADD_RUN: u8 = 10;
    pub const REPLACE_SPANS: u8 = 11;
    pub const SHARE_SPANS: u8 = 12;
    pub const BRANCH: u8 = 16;
    pub const HOME: u8 = 17;
    pub const BRANCH_DROPPED: u8 = 18;
    pub const SHARE: u8 = 19;
    pub const ADD_DELTA_TO_MANY: u8 = 20;
}

impl RunRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        for list in [&self.segments, &self.tombstones] {
            put_varint(out, list.len() as u64);
            for meta in list {
                meta.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let segments = read_list(reader, 8, SegmentMeta::decode)?;
        let tombstones = read_list(reader, 8, SegmentMeta::decode)?;
        Ok(Self { segments, tombstones })
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.tombstones.is_empty()
    }
}

impl PartitionRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        put_key(out, self.lower.as_deref());
        self.base.encode(out);
        put_varint(out, self.deltas.len() as u64);
        for delta in &self.deltas {
            delta.encode(out);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let lower = read_key(reader)?;
        let base = RunRecord::decode(reader)?;
        let deltas = read_list(reader, 2, RunRecord::decode)?;
        Ok(Self { lower, base, deltas })
    }
}

impl TreePiece {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Own(partitions) => {
                out.push(0);
                put_varint(out, partitions.len() as u64);
                partitions.iter().for_each(|partition| partition.encode(out));
            }
            Self::Of { keyspace, first, count } => {
                out.push(1);
                put_varint(out, u64::from(*keyspace));
                put_varint(out, *first as u64);
                put_varint(out, *count as u64);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let number = |reader: &mut Reader<'_>| reader.varint_max(u64::from(u32::MAX));
        match reader.u8()? {
            0 => Ok(Self::Own(read_list(reader, 4, PartitionRecord::decode)?)),
            1 => {
                let keyspace = number(reader)? as KeyspaceId;
                let (first, count) = (number(reader)? as usize, number(reader)? as usize);
                Ok(Self::Of { keyspace, first, count })
            }
            _ => Err(DecodeError("a piece of a tree is of a kind that is not known")),
        }
    }
}

impl Edit {
    /// Appends the encoded edit.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for (number, tag) in [
            (self.log_start, tag::LOG_START),
            (self.next_file, tag::NEXT_FILE),
            (self.next_keyspace.map(u64::from), tag::NEXT_KEYSPACE),
        ] {
            if let Some(number) = number {
                out.push(tag);
                put_varint(out, number);
            }
        }
        for branch in &self.branches {
            out.push(tag::BRANCH);
            branch.encode(out);
        }
        for (id, home) in &self.homes {
            out.push(tag::HOME);
            put_varint(out, u64::from(*id));
            home.encode(out);
        }
        for keyspace in &self.created {
            out.push(tag::CREATED);
            put_varint(out, u64::from(keyspace.id));
            put_bytes(out, keyspace.name.as_bytes());
            put_bytes(out, keyspace.comparator.as_deref().unwrap_or_default().as_bytes());
        }
        for (id, traits) in &self.traits {
            out.push(tag::TRAITS);
            put_varint(out, u64::from(*id));
            put_bytes(out, traits.operator.as_bytes());
            put_bytes(out, traits.filter.as_bytes());
            put_varint(out, traits.ttl);
        }
        for id in &self.dropped {
            out.push(tag::DROPPED);
            put_varint(out, u64::from(*id));
        }
        for id in &self.branches_dropped {
            out.push(tag::BRANCH_DROPPED);
            put_varint(out, u64::from(*id));
        }
        self.encode_trees(out);
    }

    fn encode_trees(&self, out: &mut Vec<u8>) {
        for (id, change) in &self.trees {
            match change {
                TreeEdit::Share { tier, pieces } => {
                    put_place(out, (tag::SHARE, tag::SHARE_SPANS), *id, *tier);
                    put_varint(out, pieces.len() as u64);
                    pieces.iter().for_each(|piece| piece.encode(out));
                }
                TreeEdit::Tier { tier, spans } => {
                    out.push(tag::TIER);
                    put_varint(out, u64::from(*id));
                    put_varint(out, *tier as u64);
                    put_partitions(out, spans);
                }
                TreeEdit::AddDelta { tier, lower, count, run } => {
                    let many = *count != 1 || *tier > 0;
                    let plain = if many { tag::ADD_DELTA_TO_MANY } else { tag::ADD_DELTA };
                    put_place(out, (plain, tag::ADD_RUN), *id, *tier);
                    put_key(out, lower.as_deref());
                    if many {
                        put_varint(out, *count as u64);
                    }
                    run.encode(out);
                }
                TreeEdit::Replace { tier, lower, count, partitions } => {
                    put_place(out, (tag::REPLACE, tag::REPLACE_SPANS), *id, *tier);
                    put_key(out, lower.as_deref());
                    put_varint(out, *count as u64);
                    put_partitions(out, partitions);
                }
            }
        }
    }

    /// Decodes an edit that fills `bytes`.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        let mut edit = Self::default();
        while !reader.is_empty() {
            let tag = reader.u8()?;
            edit.decode_field(tag, &mut reader)?;
        }
        Ok(edit)
    }

    fn decode_field(&mut self, tag: u8, reader: &mut Reader<'_>) -> Decoded<()> {
        let id = |reader: &mut Reader<'_>| Ok(reader.varint_max(u64::from(u32::MAX))? as u32);
        match tag {
            tag::LOG_START => self.log_start = Some(reader.varint_max(crate::base::SEQ_MAX)?),
            tag::NEXT_FILE => self.next_file = Some(reader.varint()?),
            tag::NEXT_KEYSPACE => self.next_keyspace = Some(id(reader)?),
            tag::CREATED => {
                if self.created.len() >= KEYSPACES_MAX {
                    return Err(DecodeError("there are more keyspaces than the limit"));
                }
                let id = id(reader)?;
                let name = read_name(reader)?;
                let comparator = Some(read_name(reader)?).filter(|name| !name.is_empty());
                self.created.push(KeyspaceRecord { id, name, comparator });
            }
            tag::TRAITS => {
                if self.traits.len() >= KEYSPACES_MAX {
                    return Err(DecodeError("there are more keyspaces than the limit"));
                }
                let id = id(reader)?;
                let (operator, filter) = (read_name(reader)?, read_name(reader)?);
                self.traits.push((id, Traits { operator, filter, ttl: reader.varint()? }));
            }
            tag::BRANCH => self.branches.push(BranchRecord::decode(reader)?),
            tag::HOME => self.homes.push((id(reader)?, Home::decode(reader)?)),
            tag::BRANCH_DROPPED => self.branches_dropped.push(id(reader)?),
            tag::DROPPED => self.dropped.push(id(reader)?),
            _ => self.trees.push(decode_tree(tag, reader)?),
        }
        Ok(())
    }
}

/// Appends a tag, a keyspace and, except for the row of partitions, a row.
fn put_place(out: &mut Vec<u8>, (plain, of_tier): (u8, u8), id: KeyspaceId, tier: usize) {
    out.push(if tier == 0 { plain } else { of_tier });
    put_varint(out, u64::from(id));
    if tier > 0 {
        put_varint(out, tier as u64);
    }
}

fn put_partitions(out: &mut Vec<u8>, partitions: &[PartitionRecord]) {
    put_varint(out, partitions.len() as u64);
    partitions.iter().for_each(|partition| partition.encode(out));
}

fn read_tier(reader: &mut Reader<'_>) -> Decoded<usize> {
    match reader.varint_max(TIERS_MAX as u64)? {
        0 => Err(DecodeError("an edit names the row of partitions as a tier")),
        tier => Ok(tier as usize),
    }
}

/// The change of a tree that has this tag.
fn decode_tree(tag: u8, reader: &mut Reader<'_>) -> Decoded<(KeyspaceId, TreeEdit)> {
    let read_count = |reader: &mut Reader<'_>| Ok(reader.varint_max(u64::from(u32::MAX))? as usize);
    let read_partitions = |reader: &mut Reader<'_>| read_list(reader, 4, PartitionRecord::decode);
    if !matches!(
        tag,
        tag::SHARE | tag::ADD_DELTA | tag::ADD_DELTA_TO_MANY | tag::REPLACE | tag::TIER
            ..=tag::SHARE_SPANS
    ) {
        return Err(DecodeError("an edit has a field that is not known"));
    }
    let id = reader.varint_max(u64::from(u32::MAX))? as KeyspaceId;
    let of_tier = matches!(tag, tag::TIER..=tag::SHARE_SPANS);
    let tier = if of_tier { read_tier(reader)? } else { 0 };
    let change = match tag {
        tag::SHARE | tag::SHARE_SPANS => {
            TreeEdit::Share { tier, pieces: read_list(reader, 2, TreePiece::decode)? }
        }
        tag::TIER => TreeEdit::Tier { tier, spans: read_partitions(reader)? },
        tag::REPLACE | tag::REPLACE_SPANS => {
            let (lower, count) = (read_key(reader)?, read_count(reader)?);
            TreeEdit::Replace { tier, lower, count, partitions: read_partitions(reader)? }
        }
        _ => {
            let lower = read_key(reader)?;
            let count = if tag == tag::ADD_DELTA { 1 } else { read_count(reader)? };
            if tag == tag::ADD_DELTA_TO_MANY && count < 2 {
                return Err(DecodeError("a delta for many partitions is for fewer than two"));
            }
            TreeEdit::AddDelta { tier, lower, count, run: RunRecord::decode(reader)? }
        }
    };
    Ok((id, change))
}
