//! What the documents point at: files and sections that links name, tests that the contract names, and
//! pages that the list of all pages names.

use crate::source::{files, none_of, workspace};
use std::collections::{BTreeMap, BTreeSet};
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

/// Where the links of a document lead, within the repository.
fn links(text: &str) -> Vec<String> {
    let text = without_code(text);
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let own = links.filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
    own.map(str::to_owned).collect()
}

/// The name under which a link reaches a heading: letters, digits, hyphens and underscores in lower case,
/// with a hyphen for each space.
fn anchor(heading: &str) -> String {
    // Of a link only its text is shown.
    let mut parts = heading.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, behind)| behind));
    let shown = rest.fold(first, |shown, part| shown + part);
    let kept = shown.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The names of all headings of a document. Of headings that are alike, all but the first have a number.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let (mut fenced, mut found) = (false, BTreeSet::new());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in markdown.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let text = line.trim_start_matches('#');
        if fenced || text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let name = anchor(text);
        let count = counts.entry(name.clone()).or_default();
        found.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    found
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let root = workspace();
    let (mut sections, mut findings) = (0, Vec::new());
    for (path, text) in documents() {
        for link in links(&text) {
            let (target, section) = link.split_once('#').unwrap_or((&link, ""));
            let file = path.parent().unwrap().join(target);
            let file = if target.is_empty() { &path } else { &file };
            let mut found = file.exists();
            if found && !section.is_empty() && file.extension().is_some_and(|ending| ending == "md")
            {
                sections += 1;
                found = anchors(&fs::read_to_string(file).unwrap()).contains(section);
            }
            if !found {
                let name = path.strip_prefix(&root).unwrap();
                findings.push(format!("{}: {link}", name.display()));
            }
        }
    }
    assert!(sections > 50, "only {sections} links lead to a section");
    none_of("these links lead nowhere", findings);
}

#[test]
fn headings_have_the_names_that_links_use() {
    assert_eq!(anchor("Ctrl-C: what it `ends`, and how"), "ctrl-c-what-it-ends-and-how");
    assert_eq!(anchor("1. The [version](x.md#y) now"), "1-the-version-now");
    let page = "# One\n\n## Two words\n```\n# none\n```\n    # none either\n## Two words\n";
    let names = ["one", "two-words", "two-words-1"].map(str::to_owned);
    assert_eq!(anchors(page), names.into());
    assert_eq!(links("[a](b.md#c) `[d](e)` [f](https://g) [h](#i)"), ["b.md#c", "#i"]);
}

/// Whoever looks for something begins with the list.
#[test]
fn the_list_of_pages_names_each() {
    let docs = workspace().join("docs");
    let listed = links(&fs::read_to_string(docs.join("README.md")).unwrap());
    let entries = fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.to_string_lossy().into_owned());
    let pages = names.filter(|name| name.ends_with(".md") && name != "README.md");
    let (known, unknown): (Vec<_>, Vec<_>) = pages.partition(|name| listed.contains(name));
    assert!(known.len() > 20, "docs/README.md lists {} pages", known.len());
    none_of("docs/README.md does not name these pages", unknown);
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
