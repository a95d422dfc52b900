//! What the documents point at: files that links name, and tests that the contract names.

use crate::source::{files, none_of, workspace};
use std::fs;
use std::path::{Path, PathBuf};

/// The documents at the root and in `docs`.
fn documents() -> Vec<(PathBuf, String)> {
    let root = workspace();
    let docs = root.join("docs");
    let mut paths = if docs.is_dir() { files(&docs, ".md") } else { Vec::new() };
    for entry in fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Blanks fenced and inline code, in which brackets are no links.
fn without_code(markdown: &str) -> String {
    let mut fenced = false;
    let lines = markdown.lines().map(|line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return String::new();
        }
        if fenced { String::new() } else { line.split('`').step_by(2).collect() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let root = workspace();
    let mut findings = Vec::new();
    for (path, text) in documents() {
        let text = without_code(&text);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links {
            let target = link.split(['#', ' ']).next().unwrap();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !path.parent().unwrap().join(target).exists() {
                let name = path.strip_prefix(&root).unwrap();
                findings.push(format!("{}: {link}", name.display()));
            }
        }
    }
    none_of("these links lead nowhere", findings);
}

/// Whether a piece of code in a document is `file::test`: names in lower case, at least two.
fn test_reference(text: &str) -> Option<(String, &str)> {
    let (file, test) = text.rsplit_once("::")?;
    let fits = |name: &str, more: &str| {
        !name.is_empty()
            && name.chars().all(|c| {
                c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || more.contains(c)
            })
    };
    if !fits(file, ":/.-") || !fits(test, "") || ["std", "core"].contains(&file) {
        return None;
    }
    Some((file.trim_end_matches(".rs").replace("::", "/"), test))
}

/// The files that tests are written in.
pub fn of_tests(root: &Path) -> Vec<PathBuf> {
    [".rs", ".py"].iter().flat_map(|ending| files(root, ending)).collect()
}

/// Whether one of these files has this name and a test of this name.
pub fn is_declared(sources: &[PathBuf], file: &str, test: &str) -> bool {
    let declared = [format!("fn {test}("), format!("def {test}(")];
    // `wal` stands for wal.rs, wal/mod.rs and wal/tests.rs.
    sources.iter().any(|path| {
        let name = path.with_extension("").to_string_lossy().replace('\\', "/");
        let name = name.trim_end_matches("/mod");
        let fits = [name, name.trim_end_matches("/tests")]
            .iter()
            .any(|name| name.ends_with(&format!("/{file}")));
        let says = |text: String| declared.iter().any(|declared| text.contains(declared));
        fits && fs::read_to_string(path).is_ok_and(says)
    })
}

#[test]
fn the_tests_named_in_the_contract_exist() {
    let root = workspace();
    let contract = fs::read_to_string(root.join("docs/contract.md")).expect("docs/contract.md");
    let sources = of_tests(&root);
    let mut findings = Vec::new();
    let mut references = 0;
    for code in contract.split('`').skip(1).step_by(2) {
        let Some((file, test)) = test_reference(code) else { continue };
        references += 1;
        if !is_declared(&sources, &file, test) {
            findings.push(code.to_owned());
        }
    }
    assert!(references > 0, "docs/contract.md names no test: write `file::test_name`");
    none_of("docs/contract.md names tests that do not exist", findings);
}

#[test]
fn names_of_tests_are_told_from_other_paths() {
    assert_eq!(test_reference("kill_loop::a_b1"), Some(("kill_loop".into(), "a_b1")));
    assert_eq!(test_reference("wal::tests::x"), Some(("wal/tests".into(), "x")));
    assert_eq!(test_reference("Db::open"), None);
    assert_eq!(test_reference("esker::Error"), None);
}
