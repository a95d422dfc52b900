//! Whether two directories hold the same bytes.
//!
//! A test that claims "this changed no byte" takes a [`Tree`] before and after and compares them:
//! names, lengths and contents of everything below a directory. Locks, times and allocation do
//! not count.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use esker::fs::{Fs, OpenMode};
use esker::internals::base::codec::checksum;

/// How much is read at a time.
const PIECE: u64 = 256 << 10;

/// What stands at one path below the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory,
    /// A file.
    File {
        /// Its length in bytes.
        len: u64,
        /// A checksum of its contents.
        digest: u64,
    },
}

/// All that is below a directory, by path with `/` between names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// The entries, without the root itself.
    pub entries: BTreeMap<String, Entry>,
}

impl Tree {
    /// Reads everything below `root`.
    pub fn read(fs: &dyn Fs, root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut waiting = vec![(root.to_owned(), String::new())];
        while let Some((dir, prefix)) = waiting.pop() {
            for entry in fs.list(&dir)? {
                let name = format!("{prefix}{}", entry.name);
                let path = dir.join(&entry.name);
                let found = if entry.is_dir() {
                    waiting.push((path, format!("{name}/")));
                    Entry::Directory
                } else {
                    let (len, digest) = file(fs, &path)?;
                    Entry::File { len, digest }
                };
                tree.entries.insert(name, found);
            }
        }
        Ok(tree)
    }

    /// One number for all of it, the same on every machine.
    pub fn digest(&self) -> u64 {
        let lines = self.entries.iter().map(|(name, entry)| match entry {
            Entry::Directory => format!("{name}/\n"),
            Entry::File { len, digest } => format!("{name} {len} {digest:016x}\n"),
        });
        checksum(0, 0, lines.collect::<String>().as_bytes())
    }

    /// One line for each path that differs, empty if nothing does.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, entry) in &self.entries {
            match other.entries.get(name) {
                None => lines.push(format!("{name}: gone")),
                Some(now) if now != entry => lines.push(format!("{name}: {entry} became {now}")),
                Some(_) => {}
            }
        }
        let new = other.entries.iter().filter(|(name, _)| !self.entries.contains_key(*name));
        lines.extend(new.map(|(name, entry)| format!("{name}: new, {entry}")));
        lines
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => write!(f, "a directory"),
            Self::File { len, digest } => write!(f, "{len} bytes ({digest:016x})"),
        }
    }
}

/// Length and checksum of a file.
pub fn file(fs: &dyn Fs, path: &Path) -> io::Result<(u64, u64)> {
    let file = fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let (mut at, mut digest) = (0, 0);
    let mut buffer = Vec::new();
    while at < len {
        buffer.resize((len - at).min(PIECE) as usize, 0);
        file.read_at(&mut buffer, at)?;
        digest = checksum(digest, at, &buffer);
        at += buffer.len() as u64;
    }
    Ok((len, digest))
}

/// Whether two directories, possibly on different file systems, hold the same files.
pub fn files_equal(a: (&dyn Fs, &Path), b: (&dyn Fs, &Path)) -> io::Result<bool> {
    Ok(Tree::read(a.0, a.1)? == Tree::read(b.0, b.1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CrashFs;

    fn sample() -> CrashFs {
        let fs = CrashFs::new();
        fs.create_dir(Path::new("/db")).expect("create");
        fs.create_dir(Path::new("/db/data")).expect("create");
        let file = fs.open(Path::new("/db/data/1"), OpenMode::CreateNew).expect("create");
        file.write_at(&vec![7; 600_000], 0).expect("write");
        fs.open(Path::new("/db/empty"), OpenMode::CreateNew).expect("create");
        fs
    }

    #[test]
    fn equal_trees_are_equal_on_different_disks() {
        let (one, two) = (sample(), sample());
        let root = Path::new("/db");
        assert!(files_equal((&one, root), (&two, root)).expect("read"));
        let tree = Tree::read(&one, root).expect("read");
        assert_eq!(tree.entries.keys().collect::<Vec<_>>(), ["data", "data/1", "empty"]);
        assert_eq!(tree.digest(), Tree::read(&two, root).expect("read").digest());
    }

    #[test]
    fn each_kind_of_change_shows() {
        let fs = sample();
        let before = Tree::read(&fs, Path::new("/")).expect("read");
        let file = fs.open(Path::new("/db/data/1"), OpenMode::ReadWrite).expect("open");
        let check = |expected: &str| {
            let now = Tree::read(&fs, Path::new("/")).expect("read");
            let lines = before.differences(&now).join("\n");
            assert!(lines.contains(expected), "{expected:?} is not in {lines:?}");
            assert_ne!(before.digest(), now.digest());
        };
        file.write_at(&[6], 300_000).expect("one byte in the second piece");
        check("db/data/1: 600000 bytes");
        file.write_at(&[7], 300_000).expect("back");
        assert_eq!(Tree::read(&fs, Path::new("/")).expect("read"), before);
        file.set_len(600_001).expect("longer by a zero");
        check("became 600001 bytes");
        file.set_len(600_000).expect("back");
        fs.rename(Path::new("/db/empty"), Path::new("/db/moved")).expect("rename");
        check("db/empty: gone");
        check("db/moved: new, 0 bytes");
    }
}
