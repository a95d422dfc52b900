//! Tells the adapters which versions of their engines were built in.
//!
//! Most engines written in Rust do not say their own version, and a report without it cannot be
//! repeated. The lock file knows it. Where there is none, the adapters say that it is unknown.

use std::fs;
use std::path::Path;

fn main() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    println!("cargo:rerun-if-changed=build.rs");
    if lock.exists() {
        println!("cargo:rerun-if-changed={}", lock.display());
    }
    let text = fs::read_to_string(&lock).unwrap_or_default();
    println!("cargo:rustc-env=LOCKED_VERSIONS={}", versions(&text));
}

/// `name=version` of every package, separated by spaces.
fn versions(lock: &str) -> String {
    let quoted = |line: &str, key: &str| {
        let rest = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        rest.strip_suffix('"').map(str::to_owned)
    };
    let mut name = String::new();
    let mut found = Vec::new();
    for line in lock.lines() {
        if let Some(text) = quoted(line, "name") {
            name = text;
        } else if let Some(version) = quoted(line, "version") {
            found.push(format!("{name}={version}"));
        }
    }
    found.join(" ")
}
