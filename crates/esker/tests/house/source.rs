//! The sources of the workspace, each in views that agree byte by byte, and how findings are told.

use crate::lexer::{blank_comments_and_literals, blank_test_items, is_word, words};
use std::fs;
use std::path::{Path, PathBuf};

/// One source file in three views that agree line by line and byte by byte.
pub struct Source {
    /// Relative to the workspace, with `/` between names.
    pub name: String,
    /// As it stands in the file.
    pub text: String,
    /// Without comments and the contents of literals.
    pub code: String,
    /// Without items under `#[cfg(test)]` as well.
    pub shipped: String,
}

impl Source {
    pub fn read(root: &Path, path: &Path) -> Self {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        Self::of(name, fs::read_to_string(path).unwrap())
    }

    /// A source of this text.
    pub fn of(name: String, text: String) -> Self {
        let code = blank_comments_and_literals(&text);
        let shipped = blank_test_items(&code);
        Self { name, text, code, shipped }
    }

    /// The top-level module of the engine that the file belongs to.
    pub fn module(&self) -> &str {
        let below = self.name.strip_prefix("crates/esker/src/").unwrap();
        below.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// The modules in files of their own that this file declares for tests only, as their paths
    /// without an ending.
    fn test_modules(&self) -> Vec<String> {
        self.modules(|at| self.shipped.as_bytes()[at] == b' ')
    }

    /// The modules in files of their own whose declarations `chosen` chooses by their places.
    pub fn modules(&self, chosen: impl Fn(usize) -> bool) -> Vec<String> {
        let (dir, file) = self.name.rsplit_once('/').unwrap();
        let dir = match file {
            "mod.rs" | "lib.rs" | "main.rs" => dir.to_owned(),
            _ => self.name.trim_end_matches(".rs").to_owned(),
        };
        let chosen = words(&self.code, "mod").into_iter().filter(|at| chosen(*at));
        let names = chosen.filter_map(|at| {
            let (name, _) = self.code[at + 3..].split_once(';')?;
            let name = name.trim();
            let placed = self.text[..at].trim_end().lines().last().unwrap_or_default();
            let placed = placed.strip_prefix("#[path = \"");
            if let Some(path) = placed.and_then(|rest| rest.strip_suffix(".rs\"]")) {
                return Some(format!("{dir}/{path}"));
            }
            name.bytes().all(is_word).then(|| format!("{dir}/{name}"))
        });
        names.collect()
    }
}

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All files below `dir` with this ending, sorted; build output is passed over.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    pending.push(path);
                }
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The engine's sources that are not test modules.
pub fn engine() -> Vec<Source> {
    all_crates().into_iter().filter(|source| source.name.starts_with("crates/esker/src/")).collect()
}

/// The sources of all crates, test modules included.
pub fn everything() -> Vec<Source> {
    let root = workspace();
    let crates = fs::read_dir(root.join("crates")).unwrap();
    let dirs = crates.map(|entry| entry.unwrap().path().join("src")).filter(|dir| dir.is_dir());
    dirs.flat_map(|dir| files(&dir, ".rs")).map(|path| Source::read(&root, &path)).collect()
}

/// The sources of all crates that are not test modules.
pub fn all_crates() -> Vec<Source> {
    let mut sources = everything();
    let tests: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    sources.retain(|source| {
        let in_tests = |module: &String| {
            source
                .name
                .strip_prefix(module.as_str())
                .is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        let by_name = source.name.contains("/tests/") || source.name.ends_with("/tests.rs");
        !by_name && !tests.iter().any(in_tests)
    });
    sources
}

/// The sources of the layer for Python, whose crate is outside the workspace.
pub fn python() -> Vec<Source> {
    let root = workspace();
    let files = files(&root.join("bindings/python/src"), ".rs");
    files.into_iter().map(|path| Source::read(&root, &path)).collect()
}

#[track_caller]
pub fn none_of(what: &str, mut findings: Vec<String>) {
    findings.sort();
    findings.dedup();
    assert!(findings.is_empty(), "{what}:\n  {}\n", findings.join("\n  "));
}

#[test]
fn modules_for_tests_alone_are_told_apart() {
    let text = "#[cfg(all(test, loom))]\nmod models;\nmod shipped;\nmod inner {}\n";
    let source = Source::of("crates/x/src/a/mod.rs".to_owned(), text.to_owned());
    assert_eq!(source.test_modules(), ["crates/x/src/a/models"]);
    let all = source.modules(|_| true);
    assert_eq!(all, ["crates/x/src/a/models", "crates/x/src/a/shipped"]);
}
