//! The disk and the file system that a directory lies on.
//!
//! Linux tells both: `/proc/self/mountinfo` lists the mounted file systems with the devices that they
//! come from, and `/sys/class/block` describes the devices. Figures of other disks and file systems
//! cannot be compared, so reports name them. Neither is known on other systems.

use std::path::Path;

/// What a directory lies on, as far as the system tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// The disk: its model, or else its driver or name; its size; whether it rotates.
    pub disk: Option<String>,
    /// The kind of file system.
    pub file_system: Option<String>,
}

/// `/sys` counts in sectors of this size, whatever the device's own are.
const SECTOR: u64 = 512;

impl Storage {
    /// Looks.
    pub fn of(dir: &Path) -> Self {
        let Ok(dir) = dir.canonicalize() else { return Self::default() };
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let Some(mount) = mount_of(&mounts, &dir) else { return Self::default() };
        let by_number = || disk(&Path::new("/sys/dev/block").join(&mount.number));
        // A file system over several devices has a number of its own, and the name of one of them.
        let by_source = || {
            let device = Path::new(&mount.source).canonicalize().ok()?;
            disk(&Path::new("/sys/class/block").join(device.file_name()?))
        };
        let disk = by_number().or_else(by_source);
        Self { disk, file_system: Some(mount.file_system) }
    }
}

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The number of its device.
    number: String,
    /// Its kind.
    file_system: String,
    /// The device that it comes from, or a name where there is none.
    source: String,
}

/// The file system of a directory in the text of `/proc/self/mountinfo`: the one whose mount point is
/// the nearest parent, and of several at one point the last, which hides the others.
fn mount_of(mounts: &str, dir: &Path) -> Option<Mount> {
    let parsed = mounts.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let fields: Vec<&str> = mount.split(' ').collect();
        let (number, point) = (fields.get(2)?.to_string(), unescaped(fields.get(4)?));
        let mut source = source.split(' ');
        let file_system = source.next()?.to_owned();
        Some((point, Mount { number, file_system, source: unescaped(source.next()?) }))
    });
    let above = parsed.filter(|(point, _)| dir.starts_with(point));
    above.max_by_key(|(point, _)| Path::new(point).components().count()).map(|(_, mount)| mount)
}

/// A field of `mountinfo`, in which blanks and backslashes are three octal digits.
fn unescaped(field: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(field.to_owned(), |text, (code, meant)| text.replace(code, meant))
}

/// The disk that a block device is or is a part of, by its directory below `/sys`.
fn disk(block: &Path) -> Option<String> {
    let whole = if block.join("partition").exists() {
        block.canonicalize().ok()?.parent()?.to_owned()
    } else {
        block.canonicalize().ok()?
    };
    let read = |name: &str| {
        let text = std::fs::read_to_string(whole.join(name)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let driver = || {
        let driver = whole.join("device/driver").canonicalize().ok()?;
        Some(driver.file_name()?.to_string_lossy().into_owned())
    };
    let name = || Some(whole.file_name()?.to_string_lossy().into_owned());
    let model = read("device/model");
    // Virtual disks have no model, and are called rotating whatever lies behind them.
    let rotates = model.is_some() && read("queue/rotational").is_some_and(|told| told == "1");
    let mut told = vec![model.or_else(driver).or_else(name)?];
    let sectors = read("size").and_then(|size| size.parse::<u64>().ok());
    told.extend(sectors.map(|sectors| format!("{} GiB", (sectors * SECTOR) >> 30)));
    told.extend(rotates.then(|| "rotating".to_owned()));
    Some(told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/root rw\n\
                          25 24 0:23 / /dev/shm rw,relatime shared:4 - tmpfs tmpfs rw\n\
                          31 27 254:16 / /data\\040two rw master:1 propagate_from:2 - xfs /dev/vdb1 rw\n\
                          32 27 0:40 / /data\\040two/old rw - tmpfs hidden rw\n\
                          33 27 0:41 / /data\\040two/old rw - btrfs /dev/vdc rw\n\
                          half a line\n";

    #[test]
    fn the_nearest_and_last_mount_is_that_of_a_directory() {
        let of = |dir: &str| {
            let mount = mount_of(MOUNTS, Path::new(dir)).unwrap();
            (mount.file_system, mount.source)
        };
        assert_eq!(mount_of(MOUNTS, Path::new("/data two")).unwrap().number, "254:16");
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(of("/home"), pair("ext4", "/dev/root"));
        assert_eq!(of("/data two/x"), pair("xfs", "/dev/vdb1"));
        assert_eq!(of("/data two/old/x"), pair("btrfs", "/dev/vdc"));
        assert_eq!(of("/data twofold"), pair("ext4", "/dev/root"));
        assert_eq!(of("/dev/shm"), pair("tmpfs", "tmpfs"));
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    /// A tree as in `/sys`: a disk with one partition.
    #[cfg(unix)]
    #[test]
    fn a_partition_is_described_by_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("devices/vda");
        let part = whole.join("vda1");
        for made in [whole.join("queue"), whole.join("device"), part.clone()] {
            std::fs::create_dir_all(made).unwrap();
        }
        std::fs::write(part.join("partition"), "1\n").unwrap();
        std::fs::write(part.join("size"), "8\n").unwrap();
        std::fs::write(whole.join("size"), "536870912\n").unwrap();
        std::fs::write(whole.join("queue/rotational"), "1\n").unwrap();
        let link = dir.path().join("block-vda1");
        std::os::unix::fs::symlink(&part, &link).unwrap();
        assert_eq!(disk(&link).unwrap(), "vda, 256 GiB");
        std::fs::write(whole.join("device/model"), "Large Disk 9  \n").unwrap();
        assert_eq!(disk(&link).unwrap(), "Large Disk 9, 256 GiB, rotating");
        std::fs::write(whole.join("queue/rotational"), "0\n").unwrap();
        assert_eq!(disk(&link).unwrap(), "Large Disk 9, 256 GiB");
        assert_eq!(disk(&dir.path().join("nothing")), None);
    }

    #[test]
    fn a_directory_that_is_missing_lies_nowhere() {
        assert_eq!(Storage::of(Path::new("/no/such/directory")), Storage::default());
        if cfg!(target_os = "linux") {
            let dir = tempfile::tempdir().unwrap();
            assert!(Storage::of(dir.path()).file_system.is_some());
        }
    }
}
