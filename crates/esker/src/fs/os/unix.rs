//! What Unix systems offer beyond the standard library.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
#[cfg(target_os = "linux")]
use std::sync::OnceLock;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::fs::{Advice, Incarnation, LogMap};

pub(super) fn read_exact_at(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buffer, offset)
}

pub(super) fn write_all_at(file: &fs::File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

pub(super) fn allocated(file: &fs::File) -> io::Result<u64> {
    // The unit of this count is 512 bytes whatever the block size is.
    Ok(file.metadata()?.blocks().saturating_mul(512))
}

pub(super) fn links(file: &fs::File) -> io::Result<u64> {
    Ok(file.metadata()?.nlink())
}

/// By how much the priority of merging threads is lower: the scheduler gives them a tenth of the weight.
#[cfg(target_os = "linux")]
const NICER: i32 = 10;

/// How many files this process may have open.
pub(super) fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// The processor time that the calling thread has used.
pub(super) fn thread_time() -> Option<std::time::Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(std::time::Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

/// Gives the calling thread a low priority; only Linux has one for each thread.
pub(super) fn lower_priority() {
    // A thread that keeps its priority does its work as well.
    #[cfg(target_os = "linux")]
    rustix::process::nice(NICER).ok();
}

/// Repeats a call that a signal interrupted and names calls that the file system lacks.
fn retry(mut call: impl FnMut() -> rustix::io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) fn allocate(file: &fs::File, len: u64) -> io::Result<()> {
    if cfg!(target_vendor = "apple") {
        // Their preallocation neither extends the file nor promises zeros.
        return Err(io::ErrorKind::Unsupported.into());
    }
    retry(|| rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len))
}

/// Whether the file system really allocates space, and not by writing zeros, which some file
/// systems compress away. The range is already allocated.
pub(super) fn allocates(file: &fs::File, len: u64) -> bool {
    allocate(file, len).is_ok()
}

/// Whether writing over allocated bytes needs no more space. File systems that copy on write, or
/// write only to their end, are known by their numbers (statfs(2)). Those that share single files
/// (XFS, by reflinks) keep the space of files that nobody copied.
#[cfg(target_os = "linux")]
pub(super) fn keeps_space(file: &fs::File) -> bool {
    const BTRFS: u64 = 0x9123_683e;
    const BCACHEFS: u64 = 0xca45_1a4e;
    const F2FS: u64 = 0xf2f5_2010;
    const NILFS: u64 = 0x3434;
    const ZFS: u64 = 0x2fc1_2fc1;
    let known = [BTRFS, BCACHEFS, F2FS, NILFS, ZFS];
    rustix::fs::fstatfs(file)
        .is_ok_and(|facts| !known.contains(&(facts.f_type as u64 & 0xffff_ffff)))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn keeps_space(_file: &fs::File) -> bool {
    true
}

#[cfg(target_os = "linux")]
pub(super) fn punch(file: &fs::File, offset: u64, len: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    retry(|| rustix::fs::fallocate(file, flags, offset, len))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn punch(_file: &fs::File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Reads and writes carry their offset, so it does not matter that this moves the file's own one.
#[cfg(target_os = "linux")]
pub(super) fn next_data(file: &fs::File, offset: u64) -> u64 {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(found) => found.max(offset),
        Err(Errno::NXIO) => file.metadata().map_or(offset, |facts| facts.len().max(offset)),
        Err(_) => offset,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn next_data(_file: &fs::File, offset: u64) -> u64 {
    offset
}

pub(super) fn map(file: &fs::File, len: u64) -> io::Result<Box<dyn LogMap>> {
    Ok(Box::new(super::map::Window::new(file, len)?))
}

#[cfg(target_os = "linux")]
pub(super) fn advise(file: &fs::File, advice: Advice) {
    let advice = match advice {
        Advice::Sequential => rustix::fs::Advice::Sequential,
        Advice::Random => rustix::fs::Advice::Random,
        Advice::DontNeed => rustix::fs::Advice::DontNeed,
    };
    // Only a hint, so the result does not matter.
    let _ = rustix::fs::fadvise(file, 0, None, advice);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn advise(_file: &fs::File, _advice: Advice) {}

#[cfg(target_os = "linux")]
pub(super) fn read_ahead(file: &fs::File, offset: u64, len: u64) {
    // Only a hint, so the result does not matter.
    let len = std::num::NonZeroU64::new(len);
    let _ = rustix::fs::fadvise(file, offset, len, rustix::fs::Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn read_ahead(_file: &fs::File, _offset: u64, _len: u64) {}

/// Boot id, mount id and inode; the device is mixed into the mount's eight bytes because inode
/// numbers are unique only within it.
#[cfg(target_os = "linux")]
pub(super) fn incarnation(file: &fs::File) -> Incarnation {
    let (Some(boot), Some((mount, inode))) = (boot_id(), mount_and_inode(file)) else {
        return Incarnation::default();
    };
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&boot);
    bytes[16..24].copy_from_slice(&mount.to_le_bytes());
    bytes[24..].copy_from_slice(&inode.to_le_bytes());
    Incarnation(bytes)
}

/// Other systems provide a boot id only through unsafe calls. Unknown equals nothing, so recovery
/// relies on the synced positions alone (R6).
#[cfg(not(target_os = "linux"))]
pub(super) fn incarnation(_file: &fs::File) -> Incarnation {
    Incarnation::default()
}

/// Whether there is a process of this number, of any user.
pub(crate) fn process_exists(id: u64) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| {
        !matches!(rustix::process::test_kill_process(id), Err(Errno::SRCH | Errno::INVAL))
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn boot_id() -> Option<[u8; 16]> {
    None
}

#[cfg(target_os = "linux")]
pub(crate) fn boot_id() -> Option<[u8; 16]> {
    static BOOT_ID: OnceLock<Option<[u8; 16]>> = OnceLock::new();
    *BOOT_ID.get_or_init(|| {
        let id = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        let id = id.trim_ascii();
        (!id.is_empty()).then(|| xxhash_rust::xxh3::xxh3_128(id).to_le_bytes())
    })
}

/// An unmount loses dirty pages that a failing device or a forced shutdown did not write, and the
/// kernel reuses plain mount ids. Linux 6.8 has mount ids that it uses once per boot. Older kernels
/// cannot tell two mounts apart, so the result is `None`.
#[cfg(target_os = "linux")]
fn mount_and_inode(file: &fs::File) -> Option<(u64, u64)> {
    use rustix::fs::{AtFlags, StatxFlags};
    const MNT_ID_UNIQUE: u32 = 0x4000;
    let wanted = StatxFlags::INO | StatxFlags::from_bits_retain(MNT_ID_UNIQUE);
    let facts = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    if facts.stx_mask & wanted.bits() != wanted.bits() {
        return None;
    }
    let device = (u64::from(facts.stx_dev_major) << 32) | u64::from(facts.stx_dev_minor);
    let mut mount = [0; 16];
    mount[..8].copy_from_slice(&facts.stx_mnt_id.to_le_bytes());
    mount[8..].copy_from_slice(&device.to_le_bytes());
    Some((xxhash_rust::xxh3::xxh3_64(&mount), facts.stx_ino))
}

/// Writes with `RWF_DSYNC`: only the pages of this range are written back, and then the device's
/// cache is flushed. Returns false if the file system does not know the flag or the write was
/// short: the caller then writes and syncs separately.
#[cfg(target_os = "linux")]
pub(super) fn write_through(file: &std::fs::File, bytes: &[u8], offset: u64) -> io::Result<bool> {
    use rustix::io::{Errno, ReadWriteFlags, pwritev2};
    let pieces = [io::IoSlice::new(bytes)];
    match pwritev2(file, &pieces, offset, ReadWriteFlags::DSYNC) {
        Ok(written) => Ok(written == bytes.len()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
