//! Things of the wrong kind in the place of a file or directory: links, pipes, devices and the
//! like. A test puts each of them where a database expects something of its own.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

/// What stands where a file or directory should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// A symbolic link to what stood there.
    Link,
    /// A symbolic link to nothing.
    Dangling,
    /// Another name of the file that stood there.
    HardLink,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device that takes writes without an error, as `/dev/null`.
    Device,
    /// A directory in place of a file, a file in place of a directory.
    Other,
}

impl Misfit {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Link,
        Self::Dangling,
        Self::HardLink,
        Self::Pipe,
        Self::Socket,
        Self::Device,
        Self::Other,
    ];

    /// Puts it at `path`, and what stood there at `original`. False if it cannot be made here.
    pub fn take_the_place(self, path: &Path, original: &Path) -> bool {
        let directory = path.is_dir();
        if self == Self::HardLink && directory {
            return false;
        }
        std::fs::rename(path, original).expect("what stands there can be moved");
        let made = match self {
            Self::Link => symlink(original, path),
            Self::Dangling => symlink(original.with_extension("none"), path),
            Self::HardLink => std::fs::hard_link(original, path),
            Self::Pipe => {
                assert!(made_by("mkfifo", path, &[]), "mkfifo {}", path.display());
                Ok(())
            }
            Self::Socket => socket(path),
            Self::Device if !made_by("mknod", path, &["c", "1", "3"]) => {
                println!("left out: no device can be made here");
                return false;
            }
            Self::Device => Ok(()),
            Self::Other if directory => std::fs::write(path, ""),
            Self::Other => std::fs::create_dir(path),
        };
        made.unwrap_or_else(|error| panic!("{self:?} at {}: {error}", path.display()));
        true
    }
}

fn made_by(program: &str, path: &Path, more: &[&str]) -> bool {
    let made = Command::new(program).arg(path).args(more).output();
    made.is_ok_and(|output| output.status.success())
}

/// Makes a socket elsewhere and moves it, since the path that a socket is bound to may not be long.
fn socket(path: &Path) -> std::io::Result<()> {
    let short = tempfile::tempdir_in("/tmp")?;
    UnixListener::bind(short.path().join("s"))?;
    std::fs::rename(short.path().join("s"), path)
}
