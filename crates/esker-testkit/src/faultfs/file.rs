//! Files whose calls may fail.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::fs::{Advice, File, Incarnation, LogMap};

use super::rule::Op;
use super::shared::Shared;
use super::verdict::{Verdict, io_error};

/// An open file of a file system with faults.
pub(super) struct FaultFile {
    fs: Arc<Shared>,
    inner: Arc<dyn File>,
    /// The name at the time of opening.
    path: PathBuf,
}

impl fmt::Debug for FaultFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultFile").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl FaultFile {
    pub(super) fn new(fs: Arc<Shared>, inner: Arc<dyn File>, path: &Path) -> Self {
        Self { fs, inner, path: path.to_owned() }
    }

    /// The file itself where that is known, so that renaming does not hide it; else its name.
    pub(super) fn identity(&self) -> String {
        let incarnation = self.inner.incarnation();
        if incarnation == Incarnation::default() {
            return self.path.display().to_string();
        }
        format!("{:?}", incarnation.0)
    }

    fn admit<T>(&self, op: Op, skipped: T, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.fs.admit(op, &[&self.path], skipped, call)
    }

    fn allow(&self, op: Op) -> io::Result<()> {
        self.fs.allow(op, &[&self.path])
    }

    /// Notes a sync that must not have been tried.
    fn watch_sync(&self) {
        let identity = self.identity();
        let mut state = self.fs.state.lock();
        if state.failed_syncs.contains(&identity) {
            let line = format!("sync_data of {} after a failed one", self.path.display());
            state.violations.push(line);
        }
    }
}

impl File for FaultFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.fs.note_read(&self.path, offset, buffer.len());
        match self.fs.ask(Op::Read, &[&self.path]) {
            Verdict::Pass | Verdict::Skip => self.inner.read_at(buffer, offset),
            Verdict::Flip(bit) => {
                self.inner.read_at(buffer, offset)?;
                if !buffer.is_empty() {
                    let bit = bit % (buffer.len() as u64 * 8);
                    buffer[(bit / 8) as usize] ^= 1 << (bit % 8);
                }
                Ok(())
            }
            Verdict::Fail(error) | Verdict::Short(_, error) => Err(error),
            Verdict::FailSync(_) => Err(io_error()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.fs.ask(Op::Write, &[&self.path]) {
            Verdict::Pass | Verdict::Flip(_) => self.inner.write_at(bytes, offset),
            Verdict::Skip => Ok(()),
            Verdict::Short(written, error) => {
                let written = written.min(bytes.len().saturating_sub(1));
                self.inner.write_at(&bytes[..written], offset)?;
                Err(error)
            }
            Verdict::Fail(error) => Err(error),
            Verdict::FailSync(_) => Err(io_error()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.allow(Op::Len)?;
        self.inner.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.allow(Op::Allocated)?;
        self.inner.allocated()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.admit(Op::SetLen, (), || self.inner.set_len(len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.admit(Op::Allocate, (), || self.inner.allocate(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watch_sync();
        let answer = match self.fs.ask(Op::SyncData, &[&self.path]) {
            Verdict::Pass | Verdict::Flip(_) => self.inner.sync_data(),
            Verdict::Skip => Ok(()),
            Verdict::Fail(error) | Verdict::Short(_, error) => Err(error),
            Verdict::FailSync(revert) => {
                if let Some(disk) = &self.fs.disk {
                    disk.fail_sync(&self.inner.incarnation(), revert)?;
                }
                Err(io_error())
            }
        };
        if answer.is_err() {
            let identity = self.identity();
            self.fs.state.lock().failed_syncs.insert(identity);
        }
        answer
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.admit(Op::Punch, (), || self.inner.punch(offset, len))
    }

    fn keeps_space(&self) -> bool {
        self.inner.keeps_space()
    }

    fn links(&self) -> io::Result<u64> {
        self.allow(Op::Links)?;
        self.inner.links()
    }

    fn incarnation(&self) -> Incarnation {
        if self.fs.state.lock().hide_incarnations {
            return Incarnation::default();
        }
        self.inner.incarnation()
    }

    fn map(&self, len: u64) -> io::Result<Box<dyn LogMap>> {
        self.allow(Op::Map)?;
        self.inner.map(len)
    }

    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        let range = offset..offset.saturating_add(len);
        if let Some(ranges) = &mut self.fs.state.lock().asked_ahead {
            ranges.push((self.path.clone(), range));
        }
        self.inner.read_ahead(offset, len);
    }
}
