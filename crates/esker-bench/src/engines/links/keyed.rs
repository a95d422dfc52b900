//! LinkBench's tables over the transactions of an ordered map.
//!
//! An adapter supplies the transactions of one thread ([`Transactions`]). What LinkBench does in them,
//! and the keys of its rows ([`crate::engines::links::keys`]), are the same for all engines. Bulk loads
//! and reads use the plain session: a batch is atomic and reads nothing, and a read of LinkBench is one
//! lookup or one range.
//!
//! Invariants, for every id1 and type, between transactions:
//! 1. A row of the table of links has exactly one index entry, which holds the same data.
//! 2. The count is the number of visible links, if they were loaded with their counts.

use super::keys;
use super::store::{Count, Link, LinkSession};
use crate::engines::{Direction, Durability, Session};
use crate::{Error, Result};

/// Why an attempt at a transaction ended.
#[derive(Debug)]
pub enum Lost {
    /// It lost against another one; nothing of it was written, and it may be begun anew.
    Conflict,
    /// It cannot be carried out.
    Failed(Error),
}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The outcome of a part of a transaction.
pub type Attempt<T> = Result<T, Lost>;

/// A transaction under way.
pub trait Transaction {
    /// The value of a key that the transaction may write, as it stands; engines that lock, lock it.
    fn get_for_update(&mut self, key: &[u8]) -> Attempt<Option<Vec<u8>>>;

    /// Writes one entry.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Attempt<()>;

    /// Deletes one entry, which is there.
    fn delete(&mut self, key: &[u8]) -> Attempt<()>;
}

/// What happens in a transaction.
pub type Body<'a> = &'a mut dyn FnMut(&mut dyn Transaction) -> Attempt<()>;

/// A session that has transactions.
pub trait Transactions: Session {
    /// Begins a transaction, has `body` fill it, and commits it, so that it survives what the database
    /// was opened for. Takes everything back if `body` or the commit fails.
    fn attempt(&mut self, body: Body<'_>) -> Attempt<()>;
}

/// LinkBench's tables in an ordered map.
pub struct KeyedLinks<S> {
    session: S,
    class: Durability,
}

impl<S: Transactions> KeyedLinks<S> {
    /// Over a session of a database that was opened for this class.
    pub fn new(session: S, class: Durability) -> Self {
        Self { session, class }
    }

    /// Attempts a transaction until it is not lost to another. One of those that met has been
    /// committed, so that somebody always gets ahead.
    fn transact(&mut self, body: Body<'_>) -> Result<()> {
        loop {
            match self.session.attempt(body) {
                Ok(()) => return Ok(()),
                Err(Lost::Conflict) => {}
                Err(Lost::Failed(error)) => return Err(error),
            }
        }
    }
}

fn damaged(what: &str, key: &[u8]) -> Error {
    Error::Failed(format!("the {what} {key:02x?} is not what LinkBench writes"))
}

/// Reads a link that the transaction may change.
fn read(txn: &mut dyn Transaction, kind: u64, id1: u64, id2: u64) -> Attempt<Option<Link>> {
    let key = keys::row_key(kind, id1, id2);
    let Some(value) = txn.get_for_update(&key)? else { return Ok(None) };
    Ok(Some(keys::row(kind, id1, id2, &value).ok_or_else(|| damaged("row", &key))?))
}

/// Writes a link over what was there, if something was (invariant 1).
fn write(txn: &mut dyn Transaction, link: &Link, before: Option<&Link>) -> Attempt<()> {
    txn.put(&keys::row_key(link.kind, link.id1, link.id2), &keys::row_value(link))?;
    let entry = keys::index_key(link);
    let old = before.map(keys::index_key);
    if old.as_ref() == Some(&entry) {
        return Ok(());
    }
    if let Some(old) = old {
        txn.delete(&old)?;
    }
    txn.put(&entry, &[])
}

/// Makes the count of an id one more, or one less (invariant 2). `first` is the row if there is none.
fn recount(txn: &mut dyn Transaction, more: bool, first: Count) -> Attempt<()> {
    let Count { kind, id, .. } = first;
    let key = keys::count_key(kind, id);
    let count = match txn.get_for_update(&key)? {
        None => first,
        Some(value) => {
            let old = keys::count(kind, id, &value).ok_or_else(|| damaged("count", &key))?;
            let count =
                if more { old.count.saturating_add(1) } else { old.count.saturating_sub(1) };
            Count { count, version: old.version.wrapping_add(1), ..old }
        }
    };
    txn.put(&key, &keys::count_value(&count))
}

impl<S: Transactions> LinkSession for KeyedLinks<S> {
    fn load_links(&mut self, links: &[Link]) -> Result<()> {
        for link in links {
            let key = keys::row_key(link.kind, link.id1, link.id2);
            self.session.batch_put(&key, &keys::row_value(link));
            self.session.batch_put(&keys::index_key(link), &[]);
        }
        self.session.batch_commit(self.class)
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<()> {
        for count in counts {
            self.session
                .batch_put(&keys::count_key(count.kind, count.id), &keys::count_value(count));
        }
        self.session.batch_commit(self.class)
    }

    fn add_link(&mut self, link: &Link) -> Result<bool> {
        let mut added = false;
        self.transact(&mut |txn| {
            let before = read(txn, link.kind, link.id1, link.id2)?;
            added = before.is_none();
            let was_visible = before.as_ref().is_some_and(|before| before.visible);
            write(txn, link, before.as_ref())?;
            if link.visible == was_visible {
                return Ok(());
            }
            let Link { kind, id1: id, time, version, visible, .. } = *link;
            let first = Count { id, kind, count: u64::from(visible), time, version };
            recount(txn, visible, first)
        })?;
        Ok(added)
    }

    fn delete_link(&mut self, kind: u64, id1: u64, id2: u64) -> Result<bool> {
        let mut hidden = false;
        self.transact(&mut |txn| {
            let before = read(txn, kind, id1, id2)?.filter(|before| before.visible);
            hidden = before.is_some();
            let Some(before) = before else { return Ok(()) };
            let link = Link { visible: false, ..before.clone() };
            write(txn, &link, Some(&before))?;
            recount(txn, false, Count { id: id1, kind, count: 0, time: 0, version: 0 })
        })?;
        Ok(hidden)
    }

    fn multiget(
        &mut self,
        kind: u64,
        id1: u64,
        id2s: &[u64],
        found: &mut dyn FnMut(&Link),
    ) -> Result<()> {
        let all: Vec<Vec<u8>> = id2s.iter().map(|id2| keys::row_key(kind, id1, *id2)).collect();
        let mut wrong = None;
        let mut seen = |place: usize, value: &[u8]| match keys::row(kind, id1, id2s[place], value) {
            Some(link) => found(&link),
            None => wrong = Some(place),
        };
        match &all[..] {
            // One row is a plain read, which engines have a call for.
            [key] => self.session.get(key, &mut |value| seen(0, value)).map(|_| ())?,
            all => self.session.multi_get(all, &mut seen)?,
        }
        wrong.map_or(Ok(()), |place| Err(damaged("row", &all[place])))
    }

    fn link_list(
        &mut self,
        kind: u64,
        id1: u64,
        (oldest, newest): (u64, u64),
        limit: usize,
        found: &mut dyn FnMut(&Link),
    ) -> Result<()> {
        let prefix = keys::index_prefix(kind, id1, true);
        let from = keys::index_behind(kind, id1, newest);
        let mut cursor = self.session.cursor(Some(&from), Direction::Reverse)?;
        for _ in 0..limit {
            let Some((key, _)) = cursor.next()?.filter(|(key, _)| key.starts_with(&prefix)) else {
                break;
            };
            let link = keys::index(key).ok_or_else(|| damaged("index entry", key))?;
            if link.time < oldest {
                break;
            }
            found(&link);
        }
        Ok(())
    }

    fn count(&mut self, kind: u64, id: u64) -> Result<u64> {
        let key = keys::count_key(kind, id);
        let mut count = Some(0);
        self.session.get(&key, &mut |value| {
            count = keys::count(kind, id, value).map(|count| count.count);
        })?;
        count.ok_or_else(|| damaged("count", &key))
    }
}

#[cfg(test)]
mod tests;
