//! The memory that an engine may use if nobody says how much.
//!
//! The documentation of several engines recommends a share of the machine's memory for their caches.
//! Their adapters ask here how much that is; a report names the same figure.

/// Bytes of memory of the machine or of the control group, whichever is less. None if the system does not
/// tell.
pub fn machine_memory() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    // "max" where there is no limit.
    let group = group.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some((kib << 10).min(group))
}
