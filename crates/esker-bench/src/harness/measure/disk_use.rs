//! What a block device did, for all processes together.
//!
//! Linux counts in `/proc/diskstats`. Other processes use the device too, so these figures are reported
//! beside those of the process and do not replace them. There are none on other systems, or if the
//! directory is not on a device (memory, network).

use std::path::Path;

/// Counters of one device since the system started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Reads that were completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Milliseconds in which something was under way.
    pub busy_ms: u64,
}

/// The device counts in sectors of this size, whatever its own are.
const SECTOR: u64 = 512;

impl DeviceUse {
    /// What was done between `earlier` and now.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
        }
    }
}

/// The device that a directory lies on.
#[derive(Debug, Clone, Copy)]
pub struct Device {
    major: u64,
    minor: u64,
}

impl Device {
    /// Finds it; none if the system does not say.
    #[cfg(target_os = "linux")]
    pub fn of(dir: &Path) -> Option<Self> {
        let number = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(dir).ok()?);
        let device =
            Self { major: nix::sys::stat::major(number), minor: nix::sys::stat::minor(number) };
        device.now().map(|_| device)
    }

    /// Finds it; none if the system does not say.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_: &Path) -> Option<Self> {
        None
    }

    /// Its counters.
    pub fn now(&self) -> Option<DeviceUse> {
        let text = std::fs::read_to_string("/proc/diskstats").ok()?;
        find(&text, self.major, self.minor)
    }
}

/// The counters of one device in the text of `/proc/diskstats`.
fn find(text: &str, major: u64, minor: u64) -> Option<DeviceUse> {
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        if (number(0)?, number(1)?) != (major, minor) {
            return None;
        }
        Some(DeviceUse {
            reads: number(3)?,
            read_bytes: number(5)? * SECTOR,
            writes: number(7)?,
            written_bytes: number(9)? * SECTOR,
            busy_ms: number(12)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_device() {
        let text = "   7       0 loop0 1 0 2 0 0 0 0 0 0 0 0\n \
                    254       1 vda1 10 1 20 3 40 5 60 7 0 8 9 0 0\n 254 2 short 1\n";
        let used = find(text, 254, 1).unwrap();
        let expected = DeviceUse {
            reads: 10,
            read_bytes: 20 * 512,
            writes: 40,
            written_bytes: 60 * 512,
            busy_ms: 8,
        };
        assert_eq!(used, expected);
        assert_eq!(find(text, 254, 9), None);
        assert_eq!(find(text, 254, 2), None, "a line that ends early");
        let later = DeviceUse { reads: 15, ..used };
        assert_eq!(later.since(&used), DeviceUse { reads: 5, ..DeviceUse::default() });
    }
}
