//! Going over the entries that a snapshot shows, with large values apart.

use crate::stream::{Content, Entries, WHOLE_BYTES_MAX};
use crate::{Error, Result};
use esker::{Iter, Keyspace, Snapshot, ValueReader};
use std::io::ErrorKind;

/// Fills a frame with entries. Ends before it is full at an entry whose value passes in pieces, and returns its key.
pub(crate) fn fill(entries: &mut Entries, iter: &mut Iter) -> Result<Option<Vec<u8>>> {
    while !entries.is_full() {
        let Some((key, value)) = iter.next_entry()? else { break };
        if value.len() > WHOLE_BYTES_MAX {
            return Ok(Some(key.to_vec()));
        }
        if value.is_empty() {
            let key = key.to_vec();
            if iter.is_in_pieces() {
                return Ok(Some(key));
            }
            entries.push(&key, &[]);
            continue;
        }
        entries.push(key, value);
    }
    Ok(None)
}

/// A reader of a value that an iterator over the snapshot has met.
pub(crate) fn reader_of(
    snapshot: &Snapshot,
    keyspace: &Keyspace,
    key: &[u8],
) -> Result<ValueReader> {
    let value = snapshot.get_reader(keyspace, key)?;
    value.ok_or_else(|| Error::of_value(ErrorKind::NotFound.into()))
}

/// Adds what an iterator over the snapshot shows to the checksum of content.
pub(crate) fn digest(
    content: &mut Content,
    snapshot: &Snapshot,
    keyspace: &Keyspace,
    iter: Iter,
) -> Result<()> {
    let mut iter = iter.leaving_pieces();
    let mut entries = Entries::with_frame_capacity();
    let mut more = true;
    while more {
        entries.clear();
        let large = fill(&mut entries, &mut iter)?;
        more = large.is_some() || entries.is_full();
        content.entries(&entries);
        if let Some(key) = large {
            let mut value = reader_of(snapshot, keyspace, &key)?;
            content.entry_from(&key, &mut value)?;
        }
    }
    Ok(())
}
