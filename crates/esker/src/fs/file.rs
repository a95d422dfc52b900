//! An open file, as the engine uses it: the trait [`File`] and what its calls take and give.
//!
//! The trait is the contract on which the engine relies. The files of the operating system and the
//! simulated files of the tests implement it.

use std::fmt;
use std::io;

/// Identifies one life of one file: boot id, mount id and inode (R6). If two incarnations are
/// equal, the page cache was not lost in between. All zeros means unknown, which equals nothing.
///
/// # Example
/// ```
/// use esker::fs::Incarnation;
/// let (unknown, known) = (Incarnation::default(), Incarnation([1; 32]));
/// assert!(known.same_life(&known) && !unknown.same_life(&unknown));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incarnation(pub [u8; 32]);

impl Incarnation {
    /// Whether both are known and the same.
    ///
    /// # Example
    /// ```
    /// use esker::fs::Incarnation;
    /// assert!(!Incarnation::default().same_life(&Incarnation::default()));
    /// ```
    pub fn same_life(&self, other: &Self) -> bool {
        self.0 != [0; 32] && self == other
    }
}

/// An open file.
///
/// Reads and writes carry their offset and may be called from any thread. They deal with short
/// transfers and interruptions themselves.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let path = dir.path().join("a");
/// use esker::fs::{Advice, OpenMode, os};
/// let file = os().open(&path, OpenMode::CreateNew)?;
/// file.allocate(8192)?;
/// file.write_at(b"text", 0)?;
/// file.sync_data()?;
/// file.write_durably(b"more", 4096)?;
/// assert!(file.next_data(0) == 0);
/// let mut text = [0; 4];
/// file.read_at(&mut text, 0)?;
/// assert_eq!(&text, b"text");
/// assert!(file.len()? == 8192 && !file.is_empty()? && file.links()? == 1);
/// println!("{} bytes on the device, {:?}", file.allocated()?, file.incarnation());
/// file.advise(Advice::Random);
/// file.read_ahead(0, 4);
/// if file.keeps_space() && let Ok(map) = file.map(8192) {
///     map.write(0, b"TEXT");
/// }
/// // Not every file system can do this.
/// let _ = file.punch(4096, 4096);
/// file.set_len(4)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait File: Send + Sync + fmt::Debug {
    /// Fills `buffer` from `offset`; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, growing the file where needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Bytes that the file occupies on the device.
    fn allocated(&self) -> io::Result<u64>;
    /// Truncates or extends (sparsely) to `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Allocates real space for the first `len` bytes, extending the file to at least that (R9).
    /// The new bytes read as zeros.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes contents and length durable. After an error the state of the file is unknown and
    /// the call must not be repeated on it (R7, R8).
    fn sync_data(&self) -> io::Result<()>;
    /// Writes all of `bytes` at `offset` inside the file's allocated length and makes them durable,
    /// if possible without writing back other dirty pages of the file. After an error the call must
    /// not be repeated.
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync_data()
    }
    /// Releases the device space of `len` bytes from `offset`; they read as zeros. Fails with
    /// [`io::ErrorKind::Unsupported`] where that is not possible.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Whether overwriting allocated bytes never needs more space. On a file system that copies on
    /// write it does; there the engine maps no file and recycles no allocated space.
    fn keeps_space(&self) -> bool {
        true
    }
    /// An offset at or after `offset` before which the file surely reads as zeros from there on; a hint
    /// that lets recovery pass over space that was allocated and never written.
    fn next_data(&self, offset: u64) -> u64 {
        offset
    }
    /// How many names the file has (R22).
    fn links(&self) -> io::Result<u64>;
    /// The file's present incarnation (R6).
    fn incarnation(&self) -> Incarnation;
    /// Maps the first `len` bytes, which must be allocated, for writing in place. Fails with
    /// [`io::ErrorKind::Unsupported`] where shared mappings do not work, and where a store into
    /// allocated space may find none ([`File::keeps_space`]); the caller then writes with
    /// [`File::write_at`].
    fn map(&self, len: u64) -> io::Result<Box<dyn LogMap>>;
    /// Asks the system to read ahead (`Sequential`) or not (`Random`); a hint only.
    fn advise(&self, advice: Advice);
    /// Says that `len` bytes from `offset` are read next. The system begins to read what it does not have in memory, and
    /// the caller does not wait for it; so a device serves several such requests at once. A hint only, which does nothing
    /// where the system has no such call.
    fn read_ahead(&self, _offset: u64, _len: u64) {}
}

/// How a file will be read.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let path = dir.path().join("a");
/// use esker::fs::{Advice, OpenMode, os};
/// let file = os().open(&path, OpenMode::CreateNew)?;
/// file.advise(Advice::Sequential);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// From start to end.
    Sequential,
    /// Here and there.
    Random,
    /// Not soon: its pages may leave the page cache.
    DontNeed,
}

/// A write-only window of a log file: bytes copied into it survive the process at once, and the
/// machine after the next [`File::sync_data`] of its file.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let path = dir.path().join("a");
/// use esker::fs::{OpenMode, os};
/// let file = os().open(&path, OpenMode::CreateNew)?;
/// file.allocate(4096)?;
/// if let Ok(map) = file.map(4096) {
///     map.populate(0, 4096);
///     assert!(map.len() == 4096 && !map.is_empty());
///     assert!(map.write(0, b"text"));
///     assert!(!map.write(4095, b"text"), "outside");
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait LogMap: Send + Sync + fmt::Debug {
    /// Copies `bytes` to `offset`. Writes outside the window are ignored and return false: the
    /// caller has checked before (R9). Concurrent writers use disjoint ranges.
    fn write(&self, offset: u64, bytes: &[u8]) -> bool;
    /// Makes the next `len` bytes from `offset` resident by *reading* them (R9).
    fn populate(&self, offset: u64, len: u64);
    /// Takes the whole pages within `len` bytes from `offset` out of the memory of the process. What was
    /// written stays in the file, and a later write reads its page in again. While the kernel writes a page
    /// out it protects it against writes, and if the page is still mapped, it interrupts all processors that
    /// run the process for that, page by page. Does nothing where the system has no such call.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let path = dir.path().join("a");
    /// use esker::fs::{OpenMode, os};
    /// let file = os().open(&path, OpenMode::CreateNew)?;
    /// file.allocate(8192)?;
    /// if let Ok(map) = file.map(8192) {
    ///     assert!(map.write(4090, b"two pages"));
    ///     map.release(0, 8192);
    ///     let mut read = [0; 9];
    ///     file.read_at(&mut read, 4090)?;
    ///     assert_eq!(&read, b"two pages");
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn release(&self, _offset: u64, _len: u64) {}
    /// The window's length in bytes.
    fn len(&self) -> u64;
    /// Whether the window is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
