//! The order of the engine's layers: a module imports only from its own layer and those below.

use crate::lexer::{line_of, matching, words};
use crate::source::{Source, engine, none_of, workspace};
use std::collections::BTreeMap;

/// The layers, lowest first; groups are set apart by `|` for the eye only.
const LAYERS: &str = "error base | budget fs sync | events waits trace | block filter | options | wal memtable | \
                      cache run | manifest | directory catalog state | iter compaction txn | commit | \
                      admission stats recovery | lookup | monitor | db | ingest repair inspect | api | internals";

/// Where each name that the crate root exports comes from: `Error` from `error`, `Db` from `api`.
fn root_exports() -> BTreeMap<String, String> {
    let root = workspace();
    let source = Source::read(&root, &root.join("crates/esker/src/lib.rs"));
    let mut exports = BTreeMap::new();
    for (at, _) in source.shipped.match_indices("pub use ") {
        let rest = &source.shipped[at + 8..];
        let statement = &rest[..rest.find(';').unwrap()];
        let module = statement.split("::").next().unwrap().trim().to_owned();
        for name in statement.split(|c: char| !c.is_alphanumeric() && c != '_') {
            exports.insert(name.to_owned(), module.clone());
        }
    }
    exports
}

/// The first segments of all paths that begin with `crate::`, groups in braces included.
fn crate_paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in words(code, "crate::") {
        let rest = &code[at + 7..];
        let len = match rest.as_bytes().first() {
            Some(b'{') => matching(rest.as_bytes(), b'{', b'}'),
            _ => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
        };
        let group = rest[..len].trim_start_matches('{').trim_end_matches('}');
        let mut depth = 0;
        let parts = group.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
            let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
            found.push((at, part[..end.unwrap_or(part.len())].to_owned()));
        }
    }
    found
}

#[test]
fn modules_import_only_modules_to_their_left() {
    let order: Vec<&str> = LAYERS.split_whitespace().filter(|&name| name != "|").collect();
    let rank = |module: &str| order.iter().position(|&name| name == module);
    let exports = root_exports();
    let mut findings = Vec::new();
    for source in engine() {
        let module = source.module();
        if module == "lib" {
            continue;
        }
        let Some(own) = rank(module) else {
            findings.push(format!("{}: module {module} is in no layer", source.name));
            continue;
        };
        for (at, name) in crate_paths(&source.shipped) {
            let target = exports.get(&name).unwrap_or(&name);
            let line = line_of(&source.text, at);
            match rank(target) {
                Some(other) if other <= own => {}
                Some(_) => findings.push(format!(
                    "{}:{line}: {module} uses crate::{name}, which lies to its right",
                    source.name
                )),
                // The uppermost layer sees everything, by `crate::*` if it likes.
                None if module == "api" => {}
                None => findings.push(format!(
                    "{}:{line}: {module} uses crate::{name}, which is in no layer",
                    source.name
                )),
            }
        }
        let depth = source.name["crates/esker/src/".len()..].trim_end_matches("/mod.rs");
        let climb = "super::".repeat(depth.split('/').count());
        for (at, _) in source.shipped.match_indices(&climb) {
            let line = line_of(&source.text, at);
            findings.push(format!("{}:{line}: leaves {module} by super, not crate", source.name));
        }
    }
    none_of(&format!("the layers are {LAYERS}; these imports break their order"), findings);
}

#[test]
fn paths_into_the_crate_are_found() {
    let code = "use crate::{base::{Seq, Kind}, fs::Fs};\nuse crate::error::Error;\n";
    let names: Vec<String> = crate_paths(code).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["base", "fs", "error"]);
}
