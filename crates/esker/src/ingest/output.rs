//! The files that an ingestion writes.
//!
//! A few keyspaces have a file each to which their entries go. Where there are more, the one that was
//! written least recently hands its file on: its segment ends there, and one of the other keyspace begins.
//! So memory is bounded by the buffers of a few files, whatever the number of keyspaces.

use super::load::Load;
use crate::base::{FileId, KeyOrder, KeyspaceId};
use crate::db::Core;
use crate::error::{IoContext, Result};
use crate::run::{RunWriter, file_name};
use std::collections::BTreeMap;

/// A file ends at about this size: space is given back by whole files where file systems have no holes,
/// and what is written is synced now and then.
const FILE_BYTES: u64 = 256 << 20;
/// Keyspaces that are written to at the same time.
const FILES_MAX: usize = 8;

/// The loads of an ingestion.
pub(super) type Loads = BTreeMap<KeyspaceId, Load>;

/// A file that takes entries of a keyspace.
#[derive(Debug)]
struct Open {
    writer: RunWriter,
    keyspace: KeyspaceId,
    used: u64,
}

/// Its files.
#[derive(Debug, Default)]
pub(super) struct Output {
    open: Vec<Open>,
    /// Files that were ended.
    ended: Vec<FileId>,
    /// Bytes of these.
    pub bytes: u64,
    /// Whether names of files are not durable yet.
    unnamed: bool,
    uses: u64,
}

impl Output {
    /// Writes the next entry of a keyspace, with `add`. `loads` gets the segments that end.
    pub fn add<R>(
        &mut self,
        core: &Core,
        loads: &mut Loads,
        (id, key): (KeyspaceId, &[u8]),
        add: impl FnOnce(&mut RunWriter) -> Result<R>,
    ) -> Result<R> {
        let at = self.file_of(core, loads, id)?;
        self.uses += 1;
        let Open { writer, used, .. } = &mut self.open[at];
        *used = self.uses;
        let added = add(writer)?;
        if let Some(load) = loads.get_mut(&id) {
            load.take(writer.take_segments());
            load.note(key);
        }
        if writer.bytes_written() >= FILE_BYTES {
            self.end(at, loads)?;
        }
        Ok(added)
    }

    /// Writes the range tombstones of a keyspace.
    pub fn add_tombstones<O: KeyOrder>(
        &mut self,
        core: &Core,
        loads: &mut Loads,
        order: &O,
        id: KeyspaceId,
    ) -> Result<()> {
        let at = self.file_of(core, loads, id)?;
        if let Some(load) = loads.get_mut(&id) {
            let writer = &mut self.open[at].writer;
            writer.add_tombstones::<O>(&load.fragments(order))?;
            load.take(writer.take_segments());
        }
        Ok(())
    }

    /// The file of a keyspace, which gets one if it has none.
    fn file_of(&mut self, core: &Core, loads: &mut Loads, id: KeyspaceId) -> Result<usize> {
        match self.open.iter().position(|open| open.keyspace == id) {
            Some(at) => Ok(at),
            None => self.begin(core, loads, id),
        }
    }

    fn begin(&mut self, core: &Core, loads: &mut Loads, keyspace: KeyspaceId) -> Result<usize> {
        if self.open.len() < FILES_MAX {
            // Close waits for the store; after it a number may be given out again.
            let _store = core.store.lock();
            core.check_open()?;
            let writer = core.begin_file(true)?;
            self.unnamed = true;
            self.open.push(Open { writer, keyspace, used: 0 });
            return Ok(self.open.len() - 1);
        }
        let oldest = self.open.iter().enumerate().min_by_key(|(_, open)| open.used);
        let at = oldest.map_or(0, |(at, _)| at);
        let Open { writer, keyspace: before, .. } = &mut self.open[at];
        writer.cut()?;
        if let Some(load) = loads.get_mut(before) {
            load.take(writer.take_segments());
        }
        *before = keyspace;
        Ok(at)
    }

    /// Ends the segment that a keyspace is writing.
    pub fn cut(&mut self, loads: &mut Loads, id: KeyspaceId) -> Result<()> {
        let open = self.open.iter_mut().find(|open| open.keyspace == id);
        if let (Some(open), Some(load)) = (open, loads.get_mut(&id)) {
            open.writer.cut()?;
            load.take(open.writer.take_segments());
        }
        Ok(())
    }

    /// Ends a file and makes its contents durable.
    fn end(&mut self, at: usize, loads: &mut Loads) -> Result<()> {
        let Open { writer, keyspace, .. } = &mut self.open[at];
        let segments = writer.finish()?;
        if let Some(load) = loads.get_mut(keyspace) {
            load.take(segments);
        }
        let writer = self.open.swap_remove(at).writer;
        self.bytes += writer.bytes_written();
        self.ended.push(writer.id());
        Ok(())
    }

    /// Ends all files and makes them durable, with their names.
    pub fn finish(&mut self, core: &Core, loads: &mut Loads) -> Result<()> {
        while let Some(at) = self.open.len().checked_sub(1) {
            self.end(at, loads)?;
        }
        if self.unnamed {
            let directory = core.files.directory();
            core.fs.sync_dir(directory).context("sync", directory)?;
            self.unnamed = false;
        }
        Ok(())
    }

    /// Takes over the files of another ingestion, which were ended.
    pub fn join(&mut self, other: &mut Self) {
        self.ended.append(&mut other.ended);
        self.bytes += std::mem::take(&mut other.bytes);
        self.unnamed |= std::mem::take(&mut other.unnamed);
    }

    /// Removes the files.
    pub fn abandon(&mut self, core: &Core) {
        core.give_up_files(self.open.drain(..).map(|open| open.writer));
        for id in self.ended.drain(..) {
            let path = core.files.directory().join(file_name(id));
            if let Err(error) = core.fs.remove_file(&path).context("remove", &path) {
                core.monitor.files_left("files of an ingestion that was given up", &error);
            }
        }
    }
}
