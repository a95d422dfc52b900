//! What the system lets this process have.
//!
//! A process runs in a control group, which is in another one, and so on up to the root of the hierarchy. Each of
//! them may have a limit, and the least one holds: a container in a group of a service, say, or a limit that a job
//! scheduler set for all jobs of a user. `/proc/self/cgroup` names the group, `/proc/self/mountinfo` says where its
//! hierarchy is mounted, and which part of it: in a container often only the container's own.
//!
//! The memory is all that is asked for here. The number of processors comes from
//! [`std::thread::available_parallelism`], which goes through the same groups for their quotas.

use std::path::{Component, Path, PathBuf};

/// The memory in bytes that this process may use: the machine's, or the least limit of its control groups where that
/// is smaller. `None`: nothing is known.
pub fn memory() -> Option<u64> {
    memory_below(Path::new("/"))
}

/// As [`memory`], with the files of the system below `root`.
fn memory_below(root: &Path) -> Option<u64> {
    let groups = read(root, "proc/self/cgroup").unwrap_or_default();
    let mounts = read(root, "proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts.lines().filter_map(Mount::parse);
    let limits = mounts.flat_map(|mount| mount.limits(root, &groups));
    limits.chain(read(root, "proc/meminfo").and_then(|text| machine(&text))).min()
}

fn machine(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// A mount of a hierarchy of control groups that limits memory.
struct Mount {
    /// The group whose directory is mounted.
    top: PathBuf,
    /// Where.
    point: PathBuf,
    /// Whether it is the one hierarchy of version 2.
    unified: bool,
}

impl Mount {
    /// From a line of `mountinfo`: `36 35 0:31 /top /point options… - type source superoptions`.
    fn parse(line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (top, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let unified = match kind.next()? {
            "cgroup2" => true,
            "cgroup" if kind.nth(1)?.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        // Spaces in names are written so.
        let path = |path: &str| PathBuf::from(path.replace("\\040", " "));
        Some(Self { top: path(top), point: path(point), unified })
    }

    /// The process's group in this hierarchy, below the group that is mounted.
    fn group(&self, groups: &str) -> Option<PathBuf> {
        let path = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let found = match self.unified {
                true => number == "0" && controllers.is_empty(),
                false => controllers.split(',').any(|controller| controller == "memory"),
            };
            found.then(|| Path::new(path))
        })?;
        // A group outside of what is mounted cannot be seen from here, and the one that is mounted is a parent.
        let inside = path.strip_prefix(&self.top).unwrap_or(Path::new(""));
        let named = inside.components().all(|part| matches!(part, Component::Normal(_)));
        Some(if named { inside.to_owned() } else { PathBuf::new() })
    }

    /// The limits of the process's group and of all its parents.
    fn limits(&self, root: &Path, groups: &str) -> Vec<u64> {
        let Some(group) = self.group(groups) else { return Vec::new() };
        let name = if self.unified { "memory.max" } else { "memory.limit_in_bytes" };
        let point = self.point.strip_prefix("/").unwrap_or(&self.point);
        // Seeded: a limit of a group above the process's own does not count.
        let parents = if bug!("options_limits_of_parents_ignored") { 1 } else { usize::MAX };
        let limit = |group: &Path| read(root, point.join(group).join(name))?.trim().parse().ok();
        group.ancestors().take(parents).filter_map(limit).collect()
    }
}

/// A file of the system. It is no file of a database, so it does not go through `Fs`.
fn read(root: &Path, path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

#[cfg(test)]
mod tests;
