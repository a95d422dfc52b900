//! An open file of the operating system.

use std::fs;
use std::io;

use super::system;
use crate::fs::{Advice, File, Incarnation, LogMap};

/// A descriptor. The standard library opens it close-on-exec.
#[derive(Debug)]
pub(super) struct OsFile(pub(super) fs::File);

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        system::read_exact_at(&self.0, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        system::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(target_os = "linux")]
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if system::write_through(&self.0, bytes, offset)? {
            return Ok(());
        }
        self.write_at(bytes, offset)?;
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        system::allocated(&self.0)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match system::allocate(&self.0, len) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                write_zeros_up_to(&self.0, len)
            }
            other => other,
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        // Syncs the data and the metadata needed to read it, such as the length. On Apple systems
        // the standard library requests a full flush, without which the device may keep the data in
        // a volatile cache.
        self.0.sync_data()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        system::punch(&self.0, offset, len)
    }

    fn keeps_space(&self) -> bool {
        system::keeps_space(&self.0)
    }

    fn next_data(&self, offset: u64) -> u64 {
        // Where writing over allocated bytes needs space, pages that were written may be missing in what
        // the system says for a while (ZFS was seen to do that).
        if self.keeps_space() { system::next_data(&self.0, offset) } else { offset }
    }

    fn links(&self) -> io::Result<u64> {
        system::links(&self.0)
    }

    fn incarnation(&self) -> Incarnation {
        system::incarnation(&self.0)
    }

    fn map(&self, len: u64) -> io::Result<Box<dyn LogMap>> {
        // A store beyond the end of the file would raise SIGBUS, so the range is checked (R9).
        if len == 0 || len > self.len()? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the range to map is empty or reaches past the end of the file",
            ));
        }
        // A store without space behind it raises SIGBUS too. If the file system copies on write or
        // cannot really allocate, the log writes records by calls, which can fail.
        if !self.keeps_space() || !system::allocates(&self.0, len) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        system::map(&self.0, len)
    }

    fn advise(&self, advice: Advice) {
        system::advise(&self.0, advice);
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        system::read_ahead(&self.0, offset, len);
    }
}

/// Allocates by writing zeros behind the present end, where the file system has no call for it.
/// Bytes before the end do not change.
fn write_zeros_up_to(file: &fs::File, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut end = file.metadata()?.len();
    while end < len {
        let step = (len - end).min(ZEROS.len() as u64);
        system::write_all_at(file, &ZEROS[..step as usize], end)?;
        end += step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_fill_from_the_end_and_keep_what_is_there() {
        let file = tempfile::tempfile().expect("a temporary file");
        system::write_all_at(&file, b"head", 0).expect("write");
        write_zeros_up_to(&file, 200_000).expect("fill");
        write_zeros_up_to(&file, 10).expect("nothing to do");
        assert_eq!(file.metadata().expect("metadata").len(), 200_000);
        let mut all = vec![1; 200_000];
        system::read_exact_at(&file, &mut all, 0).expect("read");
        assert_eq!(&all[..4], b"head");
        assert!(all[4..].iter().all(|&byte| byte == 0));
    }
}
