//! Errors about files that LevelDB, or an engine with its formats, wrote.

use crate::{Engine, Error};
use std::path::Path;

/// What is wrong in a file.
pub fn bad(path: &Path, offset: u64, what: impl std::fmt::Display) -> Error {
    damaged(Engine::LevelDb, path, offset, what)
}

/// The same of a file that LevelDB or an engine with its formats wrote.
pub fn damaged(engine: Engine, path: &Path, offset: u64, what: impl std::fmt::Display) -> Error {
    let detail = format!(
        "{what} at offset {offset}: get another copy, or let {}'s own repair mend a copy of it",
        engine.name()
    );
    Error::Source { engine, path: path.to_owned(), detail }
}

/// What the operating system did not do.
pub fn failed(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    let what = path.display().to_string();
    move |error| Error::io(operation, what.clone(), error)
}
