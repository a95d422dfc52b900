//! A file that is only read, under what was written over it in memory.
//!
//! redb is given this in place of the file. It writes little: a header when it opens, and what it
//! mends. What it wrote is forgotten with the import.

use redb::StorageBackend;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

/// What is kept together of what was written.
const CHUNK_BYTES: u64 = 4096;

/// The file with what was written over it.
#[derive(Debug)]
pub struct Overlay(Mutex<State>);

#[derive(Debug)]
struct State {
    file: File,
    /// Bytes of the file that still show; behind them are zeros.
    file_len: u64,
    len: u64,
    written: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self(Mutex::new(State { file, file_len: len, len, written: BTreeMap::new() })))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic in redb ends the import; the bytes here are whole in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reads what the file has there, and zeros where it ends.
    fn beneath(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = self.file_len.saturating_sub(offset).min(out.len() as u64) as usize;
        let (from_file, behind) = out.split_at_mut(there);
        behind.fill(0);
        if !from_file.is_empty() {
            self.file.seek(SeekFrom::Start(offset))?;
            self.file.read_exact(from_file)?;
        }
        Ok(())
    }

    fn check(&self, offset: u64, len: usize) -> io::Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        state.check(offset, out.len())?;
        state.beneath(offset, out)?;
        let end = offset + out.len() as u64;
        let first = offset / CHUNK_BYTES;
        for (number, chunk) in state.written.range(first..end.div_ceil(CHUNK_BYTES)) {
            let at = number * CHUNK_BYTES;
            let (from, to) = (at.max(offset), (at + CHUNK_BYTES).min(end));
            out[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&chunk[(from - at) as usize..(to - at) as usize]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.check(offset, data.len())?;
        let end = offset + data.len() as u64;
        for number in offset / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES) {
            let at = number * CHUNK_BYTES;
            let mut chunk = match state.written.remove(&number) {
                Some(chunk) => chunk,
                None => {
                    let mut chunk = vec![0; CHUNK_BYTES as usize].into_boxed_slice();
                    state.beneath(at, &mut chunk)?;
                    chunk
                }
            };
            let (from, to) = (at.max(offset), (at + CHUNK_BYTES).min(end));
            chunk[(from - at) as usize..(to - at) as usize]
                .copy_from_slice(&data[(from - offset) as usize..(to - offset) as usize]);
            state.written.insert(number, chunk);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        if len < state.len {
            // What stood behind the new end must not show again.
            state.written.retain(|number, _| number * CHUNK_BYTES < len);
            if let Some(chunk) = state.written.get_mut(&(len / CHUNK_BYTES)) {
                chunk[(len % CHUNK_BYTES) as usize..].fill(0);
            }
            state.file_len = state.file_len.min(len);
        }
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
