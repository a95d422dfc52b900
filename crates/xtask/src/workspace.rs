//! Where the workspace is and where cargo puts what it builds, and how a chore fails.

use std::fs;
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

/// Has a generated file that is checked in say this; a mere check writes nothing. False if the file
/// says something else and is left so.
pub(crate) fn keep(path: &Path, wanted: &str, check: bool) -> Result<bool> {
    if fs::read_to_string(path).unwrap_or_default() == wanted {
        return Ok(true);
    }
    if check {
        return Ok(false);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| format!("cannot make {}: {e}", parent.display()))?;
    }
    fs::write(path, wanted).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(true)
}
