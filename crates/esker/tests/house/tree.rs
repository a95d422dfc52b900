//! The shape of the tree: what stands at the root, how much of the engine is public, how large its
//! largest part is, what packages hold.

use crate::lexer::{blank_items, words};
use crate::source::{Source, engine, none_of, workspace};
use std::fs;
use std::process::Command;

/// What stands at the root of the repository, and nothing else.
const AT_THE_ROOT: [&str; 19] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "bindings",
    "clippy.toml",
    "crates",
    "docs",
    "fuzz",
    "rustfmt.toml",
    "tests",
];
const PUBLIC_MODULES_MAX: usize = 4;
const DATABASE_LINES_MAX: usize = 5_500;

/// The names at the root: those that git tracks or, where git cannot tell, all but what builds
/// leave there.
fn names_at_the_root() -> Vec<String> {
    let root = workspace();
    if root.join(".git").exists() {
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(&root).output();
        if let Ok(listed) = listed
            && listed.status.success()
        {
            let text = String::from_utf8_lossy(&listed.stdout).into_owned();
            let names = text.split('\0').filter_map(|path| path.split('/').next());
            return names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        }
    }
    let entries = fs::read_dir(&root).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| !["target", ".git"].contains(&name.as_str())).collect()
}

#[test]
fn the_root_holds_what_it_should() {
    let names = names_at_the_root();
    assert!(names.iter().any(|name| name == "Cargo.toml"), "the root was not read: {names:?}");
    let unknown = names.into_iter().filter(|name| !AT_THE_ROOT.contains(&name.as_str()));
    none_of("the root holds what AT_THE_ROOT lists; this is not on the list", unknown.collect());
}

/// The modules that `lib.rs` makes public, outside the build for the model checker.
fn public_modules() -> usize {
    let root = workspace();
    let source = Source::read(&root, &root.join("crates/esker/src/lib.rs"));
    words(&blank_items(&source.shipped, "loom"), "pub mod").len()
}

#[test]
fn the_engine_has_few_public_modules() {
    let found = public_modules();
    assert!(
        found <= PUBLIC_MODULES_MAX,
        "crates/esker/src/lib.rs has {found} public modules, and at most {PUBLIC_MODULES_MAX} are \
         allowed: make the module private, and export the item that is wanted"
    );
}

#[test]
fn the_database_module_stays_small() {
    let mut sources = engine();
    sources.retain(|source| source.name.starts_with("crates/esker/src/db/"));
    let found: usize = sources.iter().map(|source| source.text.lines().count()).sum();
    assert!(found > 0, "crates/esker/src/db holds no source");
    assert!(
        found <= DATABASE_LINES_MAX,
        "crates/esker/src/db has {found} lines without tests, and at most {DATABASE_LINES_MAX} are \
         allowed: move what is no part of coordinating a database out of it"
    );
}

/// Whether a published crate with a build script packs a list of files without it.
fn build_script_left_out(manifest: &str) -> bool {
    let published = !manifest.lines().any(|line| line.trim() == "publish = false");
    let included = manifest.split_once("\ninclude = [").map(|(_, rest)| rest);
    let listed = included.and_then(|rest| rest.split(']').next());
    published && listed.is_some_and(|files| !files.contains("\"build.rs\""))
}

/// Cargo packs a crate without its build script if `include` does not name it, and the package then lacks
/// what the script sets.
#[test]
fn published_crates_pack_their_build_scripts() {
    let (mut findings, mut scripts) = (Vec::new(), 0);
    for entry in fs::read_dir(workspace().join("crates")).unwrap() {
        let directory = entry.unwrap().path();
        if directory.join("build.rs").exists() {
            scripts += 1;
            let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
            if build_script_left_out(&manifest) {
                findings.push(directory.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    assert!(scripts > 0, "no crate has a build script");
    none_of("`include` in Cargo.toml of these published crates lacks build.rs", findings);
}

#[test]
fn a_build_script_that_is_left_out_is_seen() {
    let manifest = |list: &str, more: &str| format!("[package]\ninclude = [{list}]\n{more}\n");
    assert!(build_script_left_out(&manifest("\"src/**\"", "")));
    assert!(!build_script_left_out(&manifest("\"src/**\",\n\"build.rs\"", "")));
    assert!(!build_script_left_out(&manifest("\"src/**\"", "publish = false")));
    assert!(!build_script_left_out("[package]\n"));
}
