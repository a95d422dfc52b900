//! Running the programs that chores need.

use crate::workspace::Result;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// The C compiler.
pub(crate) fn cc() -> OsString {
    std::env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Cargo, the one that runs this program if it told so.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a program that prints for the user, and fails with it.
pub(crate) fn call(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
            Err(format!("{name} {}: {status}", words.join(" ")))
        }
        Err(error) => Err(format!("cannot run {name}: {error}")),
    }
}
