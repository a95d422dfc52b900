//! A limit on the memory of one process, including the system's cache of its files.
//!
//! Linux limits groups of processes. Both versions of its control groups are supported: the single tree
//! of version 2, and the memory tree of version 1. Making a group needs administrator rights (or a tree
//! that was given to the user), so every error message says what was tried. The group is removed when
//! the comparison ends.

use crate::{Error, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A group with a limit.
#[derive(Debug)]
pub struct Group {
    dir: PathBuf,
}

/// Where a group can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tree {
    /// The directory in which groups are made.
    dir: PathBuf,
    /// Whether it is of version 2.
    second: bool,
}

impl Group {
    /// Makes a group whose processes may use `limit` bytes together.
    pub fn new(limit: u64) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let trees = trees(&read("/proc/self/mounts"), &read("/proc/self/cgroup"));
        let mut reasons = Vec::new();
        for tree in &trees {
            match make(tree, limit) {
                Ok(group) => return Ok(group),
                Err(error) => reasons.push(format!("{}: {error}", tree.dir.display())),
            }
        }
        let why = if trees.is_empty() {
            "this system has no control groups that limit memory".to_owned()
        } else {
            reasons.join("; ")
        };
        Err(Error::usage(format!(
            "--memory-limit cannot be kept ({why}): it needs Linux and the administrator's rights"
        )))
    }

    /// Puts a process into the group.
    pub fn add(&self, process: u32) -> Result<()> {
        let path = self.dir.join("cgroup.procs");
        fs::write(&path, process.to_string()).map_err(|error| Error::io("write", &path, &error))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended. A group that stays behind is empty and costs nothing.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The places to try, best first: the memory tree of version 1 if there is one, else version 2.
fn trees(mounts: &str, own: &str) -> Vec<Tree> {
    let mut first = Vec::new();
    let mut second = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (_, Some(dir), Some(kind), Some(options)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        match kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => {
                // Below the own group, whose limit holds too; else at the root of the tree.
                if let Some(below) = own_path(own, |names| names.split(',').any(|n| n == "memory"))
                {
                    first.push(Tree { dir: Path::new(dir).join(below), second: false });
                }
                first.push(Tree { dir: dir.into(), second: false });
            }
            "cgroup2" => second.push(Tree { dir: dir.into(), second: true }),
            _ => (),
        }
    }
    first.extend(second);
    first.dedup();
    first
}

/// The path of the own group in the tree with these controllers, relative to the tree's root.
fn own_path(own: &str, wanted: impl Fn(&str) -> bool) -> Option<&str> {
    own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        wanted(names).then(|| path.trim_start_matches('/'))
    })
}

fn make(tree: &Tree, limit: u64) -> io::Result<Group> {
    if !tree.dir.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such group"));
    }
    if tree.second {
        let controllers = fs::read_to_string(tree.dir.join("cgroup.controllers"))?;
        if !controllers.split_whitespace().any(|name| name == "memory") {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it does not limit memory"));
        }
        fs::write(tree.dir.join("cgroup.subtree_control"), "+memory")?;
    }
    let dir = tree.dir.join(format!("esker-bench-{}", std::process::id()));
    fs::create_dir(&dir)?;
    // Removes the directory if the limit is refused.
    let group = Group { dir };
    let (file, swap) = match tree.second {
        true => ("memory.max", ("memory.swap.max", 0)),
        false => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", limit)),
    };
    fs::write(group.dir.join(file), limit.to_string())?;
    // Where swapping is not accounted for, it cannot be forbidden.
    let _ = fs::write(group.dir.join(swap.0), swap.1.to_string());
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_both_versions() {
        let mounts = "proc /proc proc rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "9:name=systemd:/\n4:memory:/a/b\n1:cpu:/c\n0::/\n";
        let found = trees(mounts, own);
        let dirs: Vec<_> =
            found.iter().map(|tree| (tree.dir.to_str().unwrap(), tree.second)).collect();
        let expected = [
            ("/sys/fs/cgroup/memory/a/b", false),
            ("/sys/fs/cgroup/memory", false),
            ("/sys/fs/cgroup/unified", true),
        ];
        assert_eq!(dirs, expected);
        let found = trees("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "0::/user.slice\n");
        assert_eq!(found, [Tree { dir: "/sys/fs/cgroup".into(), second: true }]);
        assert!(trees("", "").is_empty());
    }

    /// Whether it can be kept depends on the machine; if not, the reason is a sentence.
    #[test]
    fn a_limit_is_kept_or_the_reason_told() {
        match Group::new(64 << 20) {
            Ok(group) => {
                let dir = group.dir.clone();
                let limit = ["memory.limit_in_bytes", "memory.max"]
                    .iter()
                    .find_map(|name| fs::read_to_string(dir.join(name)).ok())
                    .unwrap();
                assert_eq!(limit.trim(), (64 << 20).to_string());
                drop(group);
                assert!(!dir.exists());
            }
            Err(error) => assert!(error.to_string().contains("--memory-limit"), "{error}"),
        }
    }
}
