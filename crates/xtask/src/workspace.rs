//! Where the workspace is and where cargo puts what it builds, and how a chore fails.

use std::path::{Path, PathBuf};

/// The error message of a chore.
pub(crate) type Result<T, E = String> = std::result::Result<T, E>;

/// The directory of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target(workspace: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => workspace.join(directory),
        None => workspace.join("target"),
    }
}
