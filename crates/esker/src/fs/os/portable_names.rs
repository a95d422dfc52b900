//! Names on systems where a path cannot start from a directory handle. Each part of a path below
//! the root is checked before the path is used; a change in between is not detected.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::fs::{DirEntry, OpenMode, PathKind, expect_kind};

/// Where names are looked up.
#[derive(Debug, Default)]
pub(super) struct Names {
    root: Option<PathBuf>,
}

impl Names {
    /// Refuses links on the way to anything below `directory`.
    pub(super) fn below(directory: &Path) -> io::Result<Self> {
        expect_kind(kind_of(fs::metadata(directory)?.file_type()), PathKind::Directory)?;
        Ok(Self { root: Some(directory.to_owned()) })
    }

    /// Checks the way to a path below the root; says whether the path is below it.
    fn check_way(&self, path: &Path) -> io::Result<bool> {
        let is_name = |part| matches!(part, Component::Normal(_));
        let below = self.root.as_ref().and_then(|root| {
            let parts = path.strip_prefix(root).ok()?.components();
            // A path that leads out again, by `..`, is treated as a path outside.
            parts.clone().all(is_name).then(|| (root.clone(), parts))
        });
        let Some((mut at, parts)) = below else { return Ok(false) };
        for (number, part) in parts.enumerate() {
            if number > 0 {
                expect_kind(look(&at)?, PathKind::Directory)?;
            }
            at.push(part);
        }
        Ok(true)
    }

    pub(super) fn open(&self, path: &Path, mode: OpenMode) -> io::Result<fs::File> {
        self.check_way(path)?;
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => {
                options.write(true);
            }
            OpenMode::CreateNew => return options.write(true).create_new(true).open(path),
        }
        expect_kind(look(path)?, PathKind::File)?;
        options.open(path)
    }

    pub(super) fn open_or_create(&self, path: &Path) -> io::Result<fs::File> {
        self.check_way(path)?;
        match look(path) {
            Ok(found) => expect_kind(found, PathKind::File)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).open(path)
    }

    pub(super) fn kind(&self, path: &Path) -> io::Result<PathKind> {
        if !self.check_way(path)?
            && let Ok(there) = fs::metadata(path)
        {
            return Ok(kind_of(there.file_type()));
        }
        look(path)
    }

    pub(super) fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check_way(path)?;
        fs::create_dir(path)
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        if self.check_way(path)? {
            expect_kind(look(path)?, PathKind::Directory)?;
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                // It was removed since the listing began.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let kind = kind_of(metadata.file_type());
            entries.push(DirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                len: if kind == PathKind::File { metadata.len() } else { 0 },
                kind,
            });
        }
        Ok(entries)
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_way(from)?;
        self.check_way(to)?;
        fs::rename(from, to)
    }

    pub(super) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check_way(path)?;
        fs::remove_file(path)
    }

    pub(super) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.check_way(path)?;
        fs::remove_dir(path)
    }

    pub(super) fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_way(from)?;
        self.check_way(to)?;
        expect_kind(look(from)?, PathKind::File)?;
        fs::hard_link(from, to)
    }

    /// Windows journals directory entries itself and has no call to wait for that.
    pub(super) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check_way(path).map(drop)
    }

    /// Unknown; this must not stop a write.
    pub(super) fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.check_way(path).map(|_| u64::MAX)
    }
}

/// The kind of the file itself; a link is not followed.
fn look(path: &Path) -> io::Result<PathKind> {
    Ok(kind_of(fs::symlink_metadata(path)?.file_type()))
}

fn kind_of(kind: fs::FileType) -> PathKind {
    match kind {
        kind if kind.is_file() => PathKind::File,
        kind if kind.is_dir() => PathKind::Directory,
        kind if kind.is_symlink() => PathKind::Link,
        _ => PathKind::Device,
    }
}

/// Whether `path`, or its last existing ancestor, lies in `directory`.
pub(super) fn contains(directory: &Path, path: &Path) -> io::Result<bool> {
    let wanted = fs::canonicalize(directory)?;
    let absolute = std::path::absolute(path)?;
    for above in absolute.ancestors() {
        match fs::canonicalize(above) {
            Ok(real) => return Ok(real.starts_with(&wanted)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
