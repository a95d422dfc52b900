//! Headers of the C interfaces, generated from their Rust sources.
//!
//! They are checked in, so that nobody needs this program to use the library; `--check` generates
//! them again and compares, so that they are always up to date.

use crate::workspace::{Result, keep};
use std::path::Path;

/// One header.
struct Header {
    /// The directory of the crate that it shows, which holds a `cbindgen.toml`.
    source: &'static str,
    /// The header that is checked in.
    file: &'static str,
}

/// All headers.
const HEADERS: &[Header] = &[
    Header { source: "crates/esker-ffi", file: "crates/esker-capi/include/esker.h" },
    Header { source: "crates/esker-leveldb", file: "crates/esker-leveldb/include/leveldb/c.h" },
];

/// Writes all headers, or only compares them.
pub(crate) fn run(workspace: &Path, check: bool) -> Result<()> {
    let mut behind = Vec::new();
    for Header { source, file } in HEADERS {
        let wanted = generate(&workspace.join(source))?;
        if !keep(&workspace.join(file), &wanted, check)? {
            behind.push(*file);
        }
    }
    if behind.is_empty() {
        return Ok(());
    }
    Err(format!("{} is not what its source says: run `cargo xtask headers`", behind.join(", ")))
}

/// Without the generator, nothing is compared.
#[cfg(not(feature = "headers"))]
fn generate(_: &Path) -> Result<String> {
    Err("build this with `--features headers`, as `cargo xtask` does".to_owned())
}

/// The header of the crate in `directory`.
#[cfg(feature = "headers")]
fn generate(directory: &Path) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("cannot generate the header of {}: {error}", directory.display())
    };
    let config = cbindgen::Config::from_file(directory.join("cbindgen.toml"))
        .map_err(|error| failed(&error))?;
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_crate(directory)
        .generate()
        .map_err(|error| failed(&error))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).map_err(|error| failed(&error))
}

#[cfg(all(test, feature = "headers"))]
mod tests {
    #[test]
    fn the_headers_are_what_their_sources_say() {
        super::run(&crate::workspace::root(), true).unwrap();
    }
}
