//! What a release needs before something is uploaded, in one command. Nothing is uploaded here.
//!
//! What is made for a release is left in `target/release-files`.

#[cfg(test)]
mod tests;

use crate::programs::{call, cargo};
use crate::workspace::{Result, target};
use crate::{api, headers};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The lock files that there are: the workspace's, the bindings', the fuzz targets'.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "bindings/python/Cargo.toml", "fuzz/Cargo.toml"];

/// The packages of which programs and libraries are given away, with their directories.
const GIVEN: [(&str, &str); 5] = [
    ("esker", "crates/esker"),
    ("esker-cli", "crates/esker-cli"),
    ("esker-capi", "crates/esker-capi"),
    ("esker-leveldb", "crates/esker-leveldb"),
    ("esker-python", "bindings/python"),
];

#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Only these steps; all if none is named.
    #[arg(value_enum)]
    steps: Vec<Step>,
    /// Also packs what is not committed, to try it out.
    #[arg(long)]
    allow_dirty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The version is the same everywhere, and CHANGELOG.md has a section about it.
    Versions,
    /// Headers and listings of interfaces are up to date.
    Interfaces,
    /// Every crate is packed, and built from its package.
    Crates,
    /// Licences, sources and versions of dependencies are as .cargo/deny.toml says.
    Licences,
    /// Bills of materials (CycloneDX).
    Sbom,
    /// Wheel and source distribution for Python, and a wheel that is built from the latter.
    Python,
}

/// Runs the steps in order; the first that fails ends it.
pub(crate) fn run(workspace: &Path, asked: &Release) -> Result<()> {
    for step in Step::value_variants() {
        if !asked.steps.is_empty() && !asked.steps.contains(step) {
            continue;
        }
        println!("== {}", format!("{step:?}").to_lowercase());
        match step {
            Step::Versions => versions(workspace)?,
            Step::Interfaces => {
                headers::run(workspace, true)?;
                api::run(workspace, true)?;
            }
            Step::Crates => crates(workspace, asked.allow_dirty)?,
            Step::Licences => licences(workspace)?,
            Step::Sbom => materials(workspace)?,
            Step::Python => python(workspace)?,
        }
    }
    Ok(())
}

/// Reads the files that say a version.
fn versions(workspace: &Path) -> Result<()> {
    let read = |name: &str| {
        fs::read_to_string(workspace.join(name)).map_err(|e| format!("cannot read {name}: {e}"))
    };
    let version = env!("CARGO_PKG_VERSION");
    let found =
        differing(version, &read(MANIFESTS[0])?, &read(MANIFESTS[1])?, &read("CHANGELOG.md")?);
    if found.is_empty() {
        println!("{version} everywhere");
        return Ok(());
    }
    Err(format!("the version is {version}, but:\n  {}", found.join("\n  ")))
}

/// What does not say this version: in the manifests of the workspace and of the bindings, and in
/// the list of changes.
fn differing(version: &str, own: &str, bindings: &str, changes: &str) -> Vec<String> {
    let asked = format!("version = \"{version}\"");
    let mut found = Vec::new();
    for line in own.lines().filter(|line| line.contains("path = \"crates/")) {
        if line.contains("version = ") && !line.contains(&asked) {
            found.push(format!("Cargo.toml: {line}"));
        }
    }
    if !bindings.lines().any(|line| line == asked) {
        found.push(format!("bindings/python/Cargo.toml has no line {asked}"));
    }
    let title = format!("## {version}");
    let titled = |line: &str| line == title || line.starts_with(&format!("{title} "));
    if !changes.lines().any(titled) {
        found.push(format!("CHANGELOG.md has no section {title}"));
    }
    found
}

fn crates(workspace: &Path, allow_dirty: bool) -> Result<()> {
    let mut publish = cargo();
    publish.current_dir(workspace).args(["publish", "--dry-run", "--workspace", "--locked"]);
    if allow_dirty {
        publish.arg("--allow-dirty");
    }
    call(&mut publish)
}

/// Says how to get a subcommand of cargo that is missing.
fn require(subcommand: &str) -> Result<()> {
    let mut asked = cargo();
    asked.args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    match asked.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!(
            "cargo-{subcommand} is missing: `cargo install cargo-{subcommand} --locked`"
        )),
    }
}

fn licences(workspace: &Path) -> Result<()> {
    require("deny")?;
    for manifest in MANIFESTS {
        let mut deny = cargo();
        deny.current_dir(workspace).args(["deny", "--log-level", "error", "--locked"]);
        deny.args(["--manifest-path", manifest, "--config", ".cargo/deny.toml", "check"]);
        println!("{manifest}");
        call(deny.args(["licenses", "bans", "sources"]))?;
    }
    Ok(())
}

/// One bill for each package that is given away. The tool writes beside the manifests of all
/// packages of a workspace, so the files are moved, and the others removed.
fn materials(workspace: &Path) -> Result<()> {
    require("cyclonedx")?;
    let to = target(workspace).join("release-files");
    fs::create_dir_all(&to).map_err(|e| format!("cannot make {}: {e}", to.display()))?;
    for manifest in &MANIFESTS[..2] {
        let mut tool = cargo();
        tool.current_dir(workspace).args(["cyclonedx", "--quiet", "--format", "json"]);
        tool.args(["--spec-version", "1.5", "--manifest-path", manifest]);
        call(&mut tool)?;
    }
    // Where this workspace lies on this machine is nobody's business.
    let place = format!("file://{}", workspace.display());
    for (package, directory) in GIVEN {
        let name = format!("{package}.cdx.json");
        let made = workspace.join(directory).join(&name);
        let text = fs::read_to_string(&made)
            .map_err(|e| format!("cannot read {}: {e}", made.display()))?;
        fs::write(to.join(&name), text.replace(&place, "file:///esker"))
            .map_err(|e| format!("cannot write {}: {e}", to.join(&name).display()))?;
        println!("made {}", to.join(&name).display());
    }
    let crates = workspace.join("crates");
    let listed =
        fs::read_dir(&crates).map_err(|e| format!("cannot read {}: {e}", crates.display()))?;
    let directories = listed.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    for directory in directories.chain([workspace.join("bindings/python")]) {
        let inside = fs::read_dir(&directory).into_iter().flatten().flatten();
        for file in inside.map(|entry| entry.path()) {
            if file.to_string_lossy().ends_with(".cdx.json") {
                fs::remove_file(&file)
                    .map_err(|e| format!("cannot remove {}: {e}", file.display()))?;
            }
        }
    }
    Ok(())
}

fn python(workspace: &Path) -> Result<()> {
    let to = target(workspace).join("release-files");
    call(Command::new(workspace.join("bindings/python/build.sh")).arg(to))
}
