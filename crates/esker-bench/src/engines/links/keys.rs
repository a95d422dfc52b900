//! How the tables lie in one ordered map.
//!
//! Keys begin with a byte for the table; integers are big-endian, so that they sort by their value.
//!
//! | table | key | value |
//! |---|---|---|
//! | 1, links | link type, id1, id2 | visibility, time, version, data |
//! | 2, index | id1, link type, visibility, time, id2, version, data | nothing |
//! | 3, counts | id, link type | count, time, version |

use super::store::{Count, Link};

const LINKS: u8 = 1;
const INDEX: u8 = 2;
const COUNTS: u8 = 3;
/// The bytes of a row of the table of links beside its data.
const ROW: usize = 1 + 3 * 8 + 1 + 8 + 4;
/// The bytes of an index entry beside its data.
const ENTRY: usize = 1 + 2 * 8 + 1 + 2 * 8 + 4;
/// The bytes of a count, key and value.
pub const COUNT_BYTES: usize = 1 + 2 * 8 + 2 * 8 + 4;

/// Bytes of a link's row and its index entry together.
pub fn link_bytes(link: &Link) -> usize {
    ROW + ENTRY + 2 * link.data.len()
}

/// The key of a link's row.
pub fn row_key(kind: u64, id1: u64, id2: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 3 * 8);
    key.push(LINKS);
    [kind, id1, id2].iter().for_each(|number| key.extend_from_slice(&number.to_be_bytes()));
    key
}

/// The value of a link's row.
pub fn row_value(link: &Link) -> Vec<u8> {
    let mut value = Vec::with_capacity(ROW + link.data.len());
    value.push(u8::from(link.visible));
    value.extend_from_slice(&link.time.to_be_bytes());
    value.extend_from_slice(&link.version.to_be_bytes());
    value.extend_from_slice(&link.data);
    value
}

/// The link of a row whose key is known; none if the value is no row's.
pub fn row(kind: u64, id1: u64, id2: u64, value: &[u8]) -> Option<Link> {
    let mut rest = Rest(value);
    let (visible, time, version) = (rest.flag()?, rest.u64()?, rest.u32()?);
    Some(Link { kind, id1, id2, visible, time, version, data: rest.0.to_vec() })
}

/// What the index entries of an id's links of one type begin with, visible ones or hidden ones.
pub fn index_prefix(kind: u64, id1: u64, visible: bool) -> Vec<u8> {
    let mut key = Vec::with_capacity(ENTRY);
    key.push(INDEX);
    key.extend_from_slice(&id1.to_be_bytes());
    key.extend_from_slice(&kind.to_be_bytes());
    key.push(u8::from(visible));
    key
}

/// A key behind all index entries of visible links whose time is at most this one, and before all
/// others of the id and type.
pub fn index_behind(kind: u64, id1: u64, time: u64) -> Vec<u8> {
    let mut key = index_prefix(kind, id1, true);
    match time.checked_add(1) {
        Some(next) => key.extend_from_slice(&next.to_be_bytes()),
        // No entry has as many bytes of 255 for its time and id2.
        None => key.extend_from_slice(&[u8::MAX; 17]),
    }
    key
}

/// The key of a link's index entry, whose value is empty.
pub fn index_key(link: &Link) -> Vec<u8> {
    let mut key = index_prefix(link.kind, link.id1, link.visible);
    key.extend_from_slice(&link.time.to_be_bytes());
    key.extend_from_slice(&link.id2.to_be_bytes());
    key.extend_from_slice(&link.version.to_be_bytes());
    key.extend_from_slice(&link.data);
    key
}

/// The link of an index entry; none if the key is no index entry's.
pub fn index(key: &[u8]) -> Option<Link> {
    let mut rest = Rest(key.strip_prefix(&[INDEX])?);
    let (id1, kind, visible) = (rest.u64()?, rest.u64()?, rest.flag()?);
    let (time, id2, version) = (rest.u64()?, rest.u64()?, rest.u32()?);
    Some(Link { kind, id1, id2, visible, time, version, data: rest.0.to_vec() })
}

/// The key of a count's row.
pub fn count_key(kind: u64, id: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 2 * 8);
    key.push(COUNTS);
    key.extend_from_slice(&id.to_be_bytes());
    key.extend_from_slice(&kind.to_be_bytes());
    key
}

/// The value of a count's row.
pub fn count_value(count: &Count) -> Vec<u8> {
    let mut value = Vec::with_capacity(2 * 8 + 4);
    value.extend_from_slice(&count.count.to_be_bytes());
    value.extend_from_slice(&count.time.to_be_bytes());
    value.extend_from_slice(&count.version.to_be_bytes());
    value
}

/// The count of a row whose key is known; none if the value is no row's.
pub fn count(kind: u64, id: u64, value: &[u8]) -> Option<Count> {
    let mut rest = Rest(value);
    let count = Count { id, kind, count: rest.u64()?, time: rest.u64()?, version: rest.u32()? };
    rest.0.is_empty().then_some(count)
}

/// The bytes that have not been read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(id2: u64, visible: bool, time: u64) -> Link {
        let (kind, id1, version, data) = (123, 7, 9, vec![0, 255, 3]);
        Link { kind, id1, id2, visible, time, version, data }
    }

    #[test]
    fn what_is_encoded_comes_back() {
        for link in [link(1, true, 0), link(u64::MAX, false, u64::MAX)] {
            assert_eq!(row(link.kind, link.id1, link.id2, &row_value(&link)).unwrap(), link);
            assert_eq!(index(&index_key(&link)).unwrap(), link);
            let row = row_key(link.kind, link.id1, link.id2).len() + row_value(&link).len();
            assert_eq!(row + index_key(&link).len(), link_bytes(&link));
        }
        let known = Count { id: 1, kind: 2, count: 3, time: 4, version: 5 };
        assert_eq!(count(2, 1, &count_value(&known)).unwrap(), known);
        assert_eq!(count_key(2, 1).len() + count_value(&known).len(), COUNT_BYTES);
        for broken in [&[][..], &[2; 13], &[1; 5]] {
            assert!(row(1, 2, 3, broken).is_none() && count(1, 2, broken).is_none());
            assert!(index(broken).is_none());
        }
    }

    #[test]
    fn the_index_sorts_visible_links_by_time() {
        let prefix = index_prefix(123, 7, true);
        let keys =
            [link(9, true, 5), link(1, true, 6), link(2, true, 6), link(3, true, u64::MAX - 1)]
                .map(|link| index_key(&link));
        assert!(keys.is_sorted() && keys.iter().all(|key| key.starts_with(&prefix)));
        assert!(!index_key(&link(9, false, 5)).starts_with(&prefix));
        assert!(index_behind(123, 7, 5) > keys[0] && index_behind(123, 7, 5) < keys[1]);
        assert!(index_behind(123, 7, 6) > keys[2] && index_behind(123, 7, 6) < keys[3]);
        assert!(index_behind(123, 7, u64::MAX) > index_key(&link(u64::MAX, true, u64::MAX)));
        assert!(index_behind(123, 7, u64::MAX) < index_prefix(124, 7, false));
    }
}
