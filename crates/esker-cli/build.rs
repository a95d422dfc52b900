//! Tells the program which commit it is built from and by which compiler.
//!
//! A report of the benchmark without them cannot be repeated. Without git, or outside of a checkout, the
//! commit is not known.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-changed=build.rs");
    for path in watched(own) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rustc-env=ESKER_COMMIT={}", commit(own).unwrap_or_default());
    println!("cargo:rustc-env=ESKER_COMPILER={}", compiler().unwrap_or_default());
}

/// The checkout that this crate is part of. A crate that was unpacked from the registry is in none, whatever repository
/// its directory may lie in.
fn checkout(own: &Path) -> Option<PathBuf> {
    let root = own.join("../..");
    root.join("crates/esker-cli/build.rs").exists().then_some(root)
}

/// What decides on the commit, and on whether files differ from it: the log of commits, and the sources
/// of all crates.
fn watched(own: &Path) -> Vec<PathBuf> {
    let Some(root) = checkout(own) else { return Vec::new() };
    let log =
        said(Command::new("git").current_dir(own).args(["rev-parse", "--git-path", "logs/HEAD"]));
    let log = log.map(|path| own.join(path)).into_iter();
    let crates = root.join("crates").read_dir().into_iter().flatten().flatten();
    let sources = crates.map(|entry| entry.path().join("src"));
    let lock = root.join("Cargo.lock");
    log.chain(sources).chain([lock]).filter(|path| path.exists()).collect()
}

fn commit(own: &Path) -> Option<String> {
    let root = checkout(own)?;
    let git = |arguments: &[&str]| said(Command::new("git").current_dir(&root).args(arguments));
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        "crates",
        "Cargo.toml",
        "Cargo.lock",
    ])?;
    Some(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

/// The compiler's version, the target, and what of the profile and the flags changes the speed.
fn compiler() -> Option<String> {
    let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let version = said(Command::new(of("RUSTC")?).arg("--version"))?;
    let mut told = vec![version];
    told.extend(of("TARGET"));
    told.extend(of("OPT_LEVEL").map(|level| format!("opt-level {level}")));
    let flags = of("CARGO_ENCODED_RUSTFLAGS").map(|flags| flags.replace('\u{1f}', " "));
    // Other flags may hold the names of directories.
    let words = flags.iter().flat_map(|flags| flags.split([' ', ',']));
    let kept = words.filter(|word| {
        ["target-cpu=", "-Ctarget-cpu=", "target-feature="]
            .iter()
            .any(|kept| word.starts_with(kept))
    });
    told.extend(kept.map(|word| word.trim_start_matches("-C").to_owned()));
    Some(told.join(", "))
}

/// What a program prints, if it ends well.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
