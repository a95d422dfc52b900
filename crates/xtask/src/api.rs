//! Listings of the public interfaces of the libraries that are published, one line for each item.
//!
//! They are checked in, so that a change of an interface shows in the change that makes it; `--check`
//! makes them again and compares. They are made from rustdoc's JSON, which is not stable: its format
//! must be the one that the crates `public-api` and `rustdoc-types` read.

#[cfg(all(test, feature = "api"))]
mod tests;

use crate::programs::{call, cargo};
use crate::workspace::{Result, keep, target};
use std::path::{Path, PathBuf};

/// The crates. Their features add nothing to their interfaces.
const LISTED: [&str; 3] = ["esker", "esker-json", "esker-port"];

/// Traits that the compiler implements for its own use: no program can name them.
#[cfg(feature = "api")]
const INTERNAL: [&str; 3] = ["::Freeze for ", "::StructuralPartialEq for ", "::UnsafeUnpin for "];

/// Writes all listings, or only compares them.
pub(crate) fn run(workspace: &Path, check: bool) -> Result<()> {
    let mut behind = Vec::new();
    for name in LISTED {
        let wanted = listing(&document(workspace, name)?)?;
        let file = format!("crates/{name}/api.txt");
        if !keep(&workspace.join(&file), &wanted, check)? {
            behind.push(file);
        }
    }
    if behind.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the public interface is not what {} says: run `cargo xtask api`, and read the difference as \
         the programs will that use it; CHANGELOG.md tells them",
        behind.join(", ")
    ))
}

/// Has rustdoc describe a crate, and says where.
fn document(workspace: &Path, name: &str) -> Result<PathBuf> {
    let mut rustdoc = cargo();
    rustdoc.current_dir(workspace).args(["rustdoc", "--quiet", "--lib", "--package", name]);
    // The warnings are those of another step: `cargo doc`.
    rustdoc.args(["--", "--cap-lints", "allow", "-Z", "unstable-options"]);
    rustdoc.args(["--output-format", "json"]);
    // The option is unstable because the format is; that is checked before it is read.
    call(rustdoc.env("RUSTC_BOOTSTRAP", "1"))?;
    Ok(target(workspace).join(format!("doc/{}.json", name.replace('-', "_"))))
}

/// Without the reader, nothing is listed.
#[cfg(not(feature = "api"))]
fn listing(_: &Path) -> Result<String> {
    Err("build this with `--features api`, as `cargo xtask` does".to_owned())
}

/// The items that a description has, with those that derives and auto traits add. What the standard
/// library implements for all types is left out.
#[cfg(feature = "api")]
fn listing(description: &Path) -> Result<String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", description.display());
    let text = std::fs::read_to_string(description).map_err(|error| failed(&error))?;
    fits(&text)?;
    let builder = public_api::Builder::from_rustdoc_json(description).omit_blanket_impls(true);
    let items = builder.build().map_err(|error| failed(&error))?;
    let internal = |line: &String| INTERNAL.iter().any(|name| line.contains(name));
    let lines = items.items().map(ToString::to_string).filter(|line| !internal(line));
    Ok(lines.map(|line| line + "\n").collect())
}

/// Fails if a description has another format than the one that is read here.
#[cfg(feature = "api")]
fn fits(description: &str) -> Result<()> {
    let known = rustdoc_types::FORMAT_VERSION;
    let field = "\"format_version\":";
    let found = description.rsplit_once(field).map_or("", |(_, rest)| rest);
    let found: String = found.trim_start().chars().take_while(char::is_ascii_digit).collect();
    if found == known.to_string() {
        return Ok(());
    }
    Err(format!(
        "rustdoc writes format {found} of its JSON, and format {known} is read here: use a toolchain \
         that writes it (Rust 1.95), or change public-api and rustdoc-types in crates/xtask/Cargo.toml \
         to versions that read format {found}, run `cargo xtask api`, and see that only the \
         presentation has changed"
    ))
}
