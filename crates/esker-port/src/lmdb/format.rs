//! The bytes of an LMDB file: meta pages, pages of the trees, their nodes.
//!
//! This is the layout that `mdb.c` of LMDB 0.9 gives to 64-bit machines with the least significant
//! byte first. A length or place is never used before it was compared with what holds it.

use esker::internals::base::codec::{DecodeError, Decoded, Reader};

/// Bytes of a page before its table of nodes.
pub const PAGE_HEAD: usize = 16;
/// Bytes of a node before its key.
const NODE_HEAD: usize = 8;
/// Bytes of the description of a tree.
const TREE_BYTES: usize = 48;
/// What has to be read of a meta page.
pub const META_BYTES: usize = PAGE_HEAD + 24 + 2 * TREE_BYTES + 16;

const MAGIC: u32 = 0xbeef_c0de;
const VERSION: u32 = 1;
/// The place of no page: the root of an empty tree.
const NOWHERE: u64 = u64::MAX;
/// Sizes of pages that LMDB makes.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 256..=32_768;
/// Deeper than any tree can be.
const DEPTH_MAX: usize = 32;

const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const META: u16 = 0x08;
/// Flags of pages that say how they are used in memory, and nothing about what they hold.
const KINDS: u16 = 0x7f;

const BIG: u16 = 0x01;
const TREE: u16 = 0x02;
const SEVERAL: u16 = 0x04;

/// Why a page cannot be used.
pub fn wrong<T>(what: &'static str) -> Decoded<T> {
    Err(DecodeError(what))
}

/// What describes the state after a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub page_bytes: usize,
    /// The tree of the database without a name.
    pub main: Tree,
    pub last_page: u64,
    pub transaction: u64,
}

impl Meta {
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        reader.take(10)?;
        let kind = u16_of(&mut reader)?;
        reader.take(4)?;
        let (magic, version) = (reader.u32()?, reader.u32()?);
        if magic != MAGIC || kind & META == 0 {
            return wrong(
                "it has no meta page of LMDB, or one that a machine of 32 bits or of the other \
                 byte order made",
            );
        }
        if version != VERSION {
            return wrong("it is of a version of LMDB that is not known");
        }
        // The address it was mapped at, and the size of the map.
        reader.take(16)?;
        let free = Tree::decode(&mut reader)?;
        let main = Tree::decode(&mut reader)?;
        let (last_page, transaction) = (reader.u64()?, reader.u64()?);
        let page_bytes = free.pad as usize;
        if !page_bytes.is_power_of_two() || !PAGE_SIZES.contains(&page_bytes) {
            return wrong("a meta page has a size of pages that cannot be");
        }
        Ok(Self { page_bytes, main, last_page, transaction })
    }
}

/// The description of a tree, a database of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The size of pages, in the first tree of a meta page.
    pad: u32,
    flags: u16,
    pub depth: usize,
    pub leaves: u64,
    pub entries: u64,
    pub root: Option<u64>,
}

impl Tree {
    fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let pad = reader.u32()?;
        let (flags, depth) = (u16_of(reader)?, usize::from(u16_of(reader)?));
        let (_branches, leaves, _overflow) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (entries, root) = (reader.u64()?, reader.u64()?);
        if depth > DEPTH_MAX {
            return wrong("a tree is deeper than it can be");
        }
        let root = (root != NOWHERE).then_some(root);
        if root.is_some() != (depth > 0) {
            return wrong("a tree has a root without a depth, or the reverse");
        }
        Ok(Self { pad, flags, depth, leaves, entries, root })
    }

    /// How its keys are ordered, if not by their bytes: LMDB's name for it.
    pub fn other_order(&self) -> Option<&'static str> {
        match self.flags {
            flags if flags & 0x08 != 0 => Some("MDB_INTEGERKEY"),
            flags if flags & 0x02 != 0 => Some("MDB_REVERSEKEY"),
            _ => None,
        }
    }
}

/// What stands behind a key.
pub enum Held<'a> {
    Value(&'a [u8]),
    /// A value in pages of its own.
    Far {
        page: u64,
        len: usize,
    },
    /// A database of its own.
    Tree(Tree),
    /// Several values.
    Several,
}

/// A page of a tree.
pub struct Page<'a> {
    bytes: &'a [u8],
    count: usize,
    leaf: bool,
}

impl<'a> Page<'a> {
    /// `number` is where it was read from.
    pub fn decode(bytes: &'a [u8], number: u64) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        let stored = reader.u64()?;
        reader.take(2)?;
        let kind = u16_of(&mut reader)? & KINDS;
        let lower = usize::from(u16_of(&mut reader)?);
        if stored != number {
            return wrong("a page says that it is another one");
        }
        if kind != BRANCH && kind != LEAF {
            return wrong("a page is not of the kind that belongs there");
        }
        if lower < PAGE_HEAD || lower > bytes.len() || lower % 2 != 0 {
            return wrong("a page has a table of nodes that does not fit");
        }
        Ok(Self { bytes, count: (lower - PAGE_HEAD) / 2, leaf: kind == LEAF })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn is_leaf(&self) -> bool {
        self.leaf
    }

    /// The head of a node, and what follows it on the page.
    fn node(&self, index: usize) -> Decoded<([u16; 4], &'a [u8])> {
        let mut reader = Reader::new(&self.bytes[PAGE_HEAD + 2 * index..]);
        let at = usize::from(u16_of(&mut reader)?);
        let node = self.bytes.get(at..).filter(|_| at >= PAGE_HEAD + 2 * self.count);
        let Some(node) = node.filter(|node| node.len() >= NODE_HEAD) else {
            return wrong("a node stands beyond its page");
        };
        let mut reader = Reader::new(node);
        let mut head = [0; 4];
        for word in &mut head {
            *word = u16_of(&mut reader)?;
        }
        Ok((head, &node[NODE_HEAD..]))
    }

    /// The page that a node of a branch leads to.
    pub fn child(&self, index: usize) -> Decoded<u64> {
        let ([low, middle, high, _], _) = self.node(index)?;
        Ok(u64::from(low) | u64::from(middle) << 16 | u64::from(high) << 32)
    }

    /// A key of a leaf, and what stands behind it.
    pub fn entry(&self, index: usize) -> Decoded<(&'a [u8], Held<'a>)> {
        let ([low, high, flags, key], rest) = self.node(index)?;
        let Some((key, rest)) = rest.split_at_checked(usize::from(key)) else {
            return wrong("a key reaches beyond its page");
        };
        let len = usize::from(low) | usize::from(high) << 16;
        let held = match flags {
            BIG => Held::Far { page: Reader::new(rest).u64()?, len },
            0 | TREE => match rest.get(..len) {
                None => return wrong("a value reaches beyond its page"),
                Some(value) if flags == 0 => Held::Value(value),
                Some(tree) if tree.len() == TREE_BYTES => {
                    Held::Tree(Tree::decode(&mut Reader::new(tree))?)
                }
                Some(_) => return wrong("the description of a database has another length"),
            },
            flags if flags & SEVERAL != 0 => Held::Several,
            _ => return wrong("a node is of a kind that is not known"),
        };
        Ok((key, held))
    }
}

/// How many pages a value in pages of its own takes there: this many at least.
pub fn far_pages(head: &[u8], number: u64) -> Decoded<u64> {
    let mut reader = Reader::new(head);
    let stored = reader.u64()?;
    reader.take(2)?;
    let kind = u16_of(&mut reader)? & KINDS;
    if stored != number || kind != OVERFLOW {
        return wrong("a page is not the one that holds a large value");
    }
    Ok(u64::from(reader.u32()?))
}

fn u16_of(reader: &mut Reader<'_>) -> Decoded<u16> {
    let bytes = reader.take(2)?;
    Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
}
