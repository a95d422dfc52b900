use super::memory_below;
use std::path::Path;

const MIB: u64 = 1 << 20;
const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const OLD: &str = "33 25 0:29 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory";

/// A system with these files, and a machine of 8 GiB.
struct System(tempfile::TempDir);

impl System {
    fn new(groups: &str, mounts: &[&str]) -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        system.file("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  100 kB\n");
        system.file("proc/self/cgroup", groups);
        let others = ["22 26 0:20 / /sys rw - sysfs sysfs rw", "no mount"];
        let mounts: Vec<&str> = others.iter().chain(mounts).copied().collect();
        system.file("proc/self/mountinfo", &(mounts.join("\n") + "\n"));
        system
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// What it has after the limit of a group was set, in MiB.
    fn with(&self, path: &str, limit: &str) -> u64 {
        self.file(path, &(limit.to_owned() + "\n"));
        memory_below(self.0.path()).unwrap() / MIB
    }
}

fn mib(count: u64) -> String {
    (count * MIB).to_string()
}

#[test]
fn the_least_limit_of_the_group_and_its_parents_counts() {
    let system = System::new("0::/system.slice/store.service/worker\n", &[UNIFIED]);
    assert_eq!(memory_below(system.0.path()), Some(8192 * MIB));
    let slice = "sys/fs/cgroup/system.slice";
    assert_eq!(system.with(&format!("{slice}/memory.max"), "max"), 8192);
    assert_eq!(system.with(&format!("{slice}/store.service/worker/memory.max"), &mib(900)), 900);
    assert_eq!(system.with(&format!("{slice}/store.service/memory.max"), &mib(1000)), 900);
    assert_eq!(system.with(&format!("{slice}/memory.max"), &mib(700)), 700);
    // What is set for others does not count, nor does more than the machine has.
    assert_eq!(system.with(&format!("{slice}/other.service/memory.max"), &mib(1)), 700);
    assert_eq!(system.with("sys/fs/cgroup/memory.max", &mib(100_000)), 700);
    assert_eq!(system.with("sys/fs/cgroup/memory.max", &mib(600)), 600);
    assert_eq!(system.with("sys/fs/cgroup/memory.max", "damaged"), 700);
}

#[test]
fn version_1_has_a_hierarchy_of_its_own_for_memory() {
    let other = "34 25 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct";
    let groups = "9:cpu,cpuacct:/other\n8:memory,hugetlb:/jobs/7\n0::/jobs/7\n";
    let system = System::new(groups, &[other, OLD]);
    let place = "sys/fs/cgroup/memory";
    let none = (i64::MAX as u64 / 4096 * 4096).to_string();
    assert_eq!(system.with(&format!("{place}/memory.limit_in_bytes"), &none), 8192);
    assert_eq!(system.with(&format!("{place}/jobs/7/memory.limit_in_bytes"), &mib(64)), 64);
    assert_eq!(system.with(&format!("{place}/jobs/memory.limit_in_bytes"), &mib(32)), 32);
    assert_eq!(system.with("sys/fs/cgroup/cpu/other/memory.limit_in_bytes", &mib(1)), 32);
}

#[test]
fn a_part_of_the_hierarchy_may_be_mounted() {
    // A container sees its own group at the top, whatever the file says.
    let part = "33 25 0:29 /docker/ab\\040c /mnt/my\\040groups rw - cgroup2 cgroup2 rw";
    for (group, at) in [("/docker/ab c/in/side", "in/side/"), ("/docker/ab c", "")] {
        let system = System::new(&format!("0::{group}\n"), &[part]);
        assert_eq!(system.with("mnt/my groups/memory.max", &mib(500)), 500);
        assert_eq!(system.with(&format!("mnt/my groups/{at}memory.max"), &mib(400)), 400);
    }
    // A group beside what is mounted: only what is mounted is known to be a parent.
    for group in ["/elsewhere", "/../other", "/docker/ab c/../../../.."] {
        let system = System::new(&format!("0::{group}\n"), &[part]);
        assert_eq!(system.with("mnt/my groups/memory.max", &mib(500)), 500);
        assert_eq!(system.with("memory.max", &mib(1)), 500);
    }
}

#[test]
fn a_system_without_such_files_says_nothing() {
    assert_eq!(memory_below(Path::new("/nowhere/at/all")), None);
    let system = System::new("not a line\n1:x\n", &[UNIFIED, OLD, "a b c - cgroup2"]);
    assert_eq!(memory_below(system.0.path()), Some(8192 * MIB));
}
