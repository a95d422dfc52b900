//! The rows of LinkBench's tables, and what an engine has to offer for them.
//!
//! LinkBench keeps *links* from one id to another, with a covering index by time, and *counts* of the
//! links that are visible. Its writes are transactions that read what they change: to add a link is to
//! look whether it is there, write the row and its index entry, and change the count. An engine that
//! offers this is a [`LinkStore`].
//!
//! Each call does what LinkBench's own store for MySQL does. Where it differs, its documentation says so.

use crate::Result;

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its type.
    pub kind: u64,
    /// Where it starts.
    pub id1: u64,
    /// Where it ends.
    pub id2: u64,
    /// Whether lists and counts see it. A deleted link stays, hidden.
    pub visible: bool,
    /// Milliseconds since 1970.
    pub time: u64,
    /// Counts changes, as the user of the table does.
    pub version: u32,
    /// At most 255 bytes.
    pub data: Vec<u8>,
}

/// How many visible links of one type an id has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Where the links start.
    pub id: u64,
    /// Their type.
    pub kind: u64,
    /// How many.
    pub count: u64,
    /// The time of the link that made the row.
    pub time: u64,
    /// Counts changes of the row.
    pub version: u32,
}

/// LinkBench's tables in one database.
pub trait LinkStore: Send + Sync {
    /// A session for one thread.
    fn links(&self) -> Result<Box<dyn LinkSession + '_>>;
}

/// One thread's requests. Each call is one transaction, of the durability that the database was opened
/// with, and tries again what it loses against another one; reads may be of a snapshot.
pub trait LinkSession {
    /// Loads links that are not there, with their index entries and without counts.
    fn load_links(&mut self, links: &[Link]) -> Result<()>;

    /// Loads counts that are not there.
    fn load_counts(&mut self, counts: &[Count]) -> Result<()>;

    /// Adds a link, or replaces what is there: row, index entry and count. The count grows if a visible
    /// link was not there or was hidden, and shrinks if a hidden one takes the place of a visible one.
    /// A count that is not there is made with the time and the version of the link; one that is
    /// keeps its time, and its version grows by one.
    ///
    /// Returns whether there was no such link, visible or hidden.
    fn add_link(&mut self, link: &Link) -> Result<bool>;

    /// Hides a link: `visible` becomes false in its row and its index entry, the rest of it stays. The
    /// count shrinks, but not below 0, and its version grows by one; LinkBench gives it the time of
    /// the clock, which here would make what engines hold differ, so its time stays. A count that is
    /// not there is made with 0 everywhere.
    ///
    /// Returns whether there was a visible one; nothing is changed if not. LinkBench does not tell a
    /// hidden one from a visible one.
    fn delete_link(&mut self, kind: u64, id1: u64, id2: u64) -> Result<bool>;

    /// Adds a link that may be there, as LinkBench updates: the same as [`Self::add_link`]. Returns
    /// whether it was there, visible or hidden.
    fn update_link(&mut self, link: &Link) -> Result<bool> {
        Ok(!self.add_link(link)?)
    }

    /// Finds the links to some ids, visible or hidden, in any order.
    fn multiget(
        &mut self,
        kind: u64,
        id1: u64,
        id2s: &[u64],
        found: &mut dyn FnMut(&Link),
    ) -> Result<()>;

    /// The newest visible links of an id whose time is at least the first and at most the second of
    /// `times`, at most `limit`, newest first; of the same time, by id in any order.
    fn link_list(
        &mut self,
        kind: u64,
        id1: u64,
        times: (u64, u64),
        limit: usize,
        found: &mut dyn FnMut(&Link),
    ) -> Result<()>;

    /// The count of an id's visible links; 0 if it has no row.
    fn count(&mut self, kind: u64, id: u64) -> Result<u64>;
}
