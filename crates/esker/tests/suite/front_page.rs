//! Everything that a program can use shows how it is used.
//!
//! The front page of a module is what it exports: its `pub use` lists and its own public items. The
//! types behind these names, their public functions and the functions of their traits are looked up
//! in the sources as text. Each must have a block of code in its documentation. Two kinds need none
//! if the example of their type has them by name: getters, and the functions of a trait.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The front pages: the file, below `crates`.
const FRONT_PAGES: [&str; 8] = [
    "esker/src/lib.rs",
    "esker/src/fs/mod.rs",
    "esker/src/repair/mod.rs",
    "esker/src/inspect/mod.rs",
    "esker-json/src/lib.rs",
    "esker-port/src/lib.rs",
    "esker-port/src/token/mod.rs",
    "esker-port/src/word/mod.rs",
];

/// A public item and its documentation.
#[derive(Debug)]
struct Item {
    file: PathBuf,
    line: usize,
    /// `struct`, `enum`, `trait`, `type` or `fn`.
    kind: &'static str,
    /// The type or trait that a function belongs to.
    owner: Option<String>,
    name: String,
    /// From the documentation.
    examples: String,
    /// Whether a function only returns a part of its owner, or belongs to a trait.
    trivial: bool,
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(|entry| entry.file_name());
    for path in entries.iter().map(|entry| entry.path()) {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && name != "tests" {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    found
}

/// The first word of `text`.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// What stands between the fences of a documentation.
fn code(documentation: &[&str]) -> String {
    let mut inside = false;
    let mut code = String::new();
    for line in documentation {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The type of `impl Type {` or `impl<T> Type<T> {`, or the name of a public trait: what the
/// functions below this line belong to.
fn owner(line: &str) -> Option<(&str, bool)> {
    if let Some(rest) = line.strip_prefix("pub trait ") {
        return Some((word(rest), true));
    }
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    // What a type does for a trait is documented with the trait.
    (!rest.contains(" for ")).then(|| (word(rest), false))
}

/// The lines of a file. What a macro defines stands two levels deeper, and is shown as it will be.
fn lines(text: &str) -> Vec<&str> {
    let mut in_macro = false;
    let line = |line| {
        in_macro = str::starts_with(line, "macro_rules!") || in_macro && line != "}";
        if in_macro { line.strip_prefix("        ").unwrap_or(line) } else { line }
    };
    text.lines().map(line).collect()
}

/// The public items of a file, in order.
fn items(file: &Path) -> Vec<Item> {
    let text = fs::read_to_string(file).unwrap();
    let lines = lines(&text);
    let (mut items, mut documentation, mut inside) = (Vec::new(), Vec::new(), None);
    for (at, line) in lines.iter().enumerate() {
        let (indent, bare) = (line.len() - line.trim_start().len(), line.trim_start());
        if let Some(text) = bare.strip_prefix("///") {
            documentation.push(text.strip_prefix(' ').unwrap_or(text));
            continue;
        }
        if bare.starts_with("#[") || bare.starts_with("//") {
            continue;
        }
        let documentation = std::mem::take(&mut documentation);
        if indent == 0 && (bare.starts_with('}') || bare.starts_with("impl")) {
            inside = None;
        }
        if indent == 0 {
            inside = owner(line).or(inside);
        }
        let public = bare.strip_prefix("pub ");
        let within = inside.filter(|_| indent == 4);
        let in_trait = within.is_some_and(|(_, is_trait)| is_trait);
        let Some(rest) = public.or(Some(bare).filter(|_| in_trait)) else { continue };
        let rest =
            ["const ", "unsafe "].iter().fold(rest, |rest, word| rest.trim_start_matches(word));
        let kinds = ["struct", "enum", "trait", "type", "fn"];
        let Some(kind) = kinds.into_iter().find(|kind| word(rest) == *kind) else { continue };
        if indent > 0 && (kind != "fn" || within.is_none()) {
            continue;
        }
        let head = lines[at..].join("\n");
        let head = &head[..head.find(['{', ';']).unwrap_or(head.len())];
        let parameters = head.split_once('(').map(|(_, rest)| rest.trim_start());
        let only_self = ["&self)", "self)"];
        let getter = parameters.is_some_and(|rest| only_self.iter().any(|s| rest.starts_with(s)))
            && !head.contains("-> Result");
        items.push(Item {
            file: file.to_path_buf(),
            line: at + 1,
            kind,
            owner: within.map(|(name, _)| name.to_owned()),
            name: word(rest[kind.len()..].trim_start()).to_owned(),
            examples: code(&documentation),
            trivial: getter || in_trait,
        });
    }
    items
}

/// The names in the `pub use` lists of a file.
fn exports(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let lists = text.split("\npub use ").skip(1).map(|rest| rest.split(';').next().unwrap());
    let names = lists.flat_map(|list| list.rsplit("::").next().unwrap().split(','));
    names.map(|name| name.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()).collect()
}

/// The items of a front page that have no example.
fn without_example(page: &Path) -> (usize, Vec<String>) {
    let is_root = page.ends_with("lib.rs");
    let dir = page.parent().unwrap();
    let all: Vec<Item> = sources(dir).iter().flat_map(|file| items(file)).collect();
    let mut wanted: Vec<&Item> = Vec::new();
    let own = all.iter().filter(|item| item.file == page && item.owner.is_none());
    wanted.extend(own);
    for name in exports(page) {
        if name.is_empty() {
            continue;
        }
        let named = all.iter().filter(|item| item.owner.is_none() && item.name == name);
        let mut named: Vec<&Item> = named.filter(|item| item.file != page).collect();
        if named.len() > 1 && is_root {
            // A lower layer may have a name of its own for something that it shows to nobody.
            named.retain(|item| item.file.starts_with(dir.join("api")));
        }
        assert_eq!(named.len(), 1, "{name} is defined once, not in {named:?}");
        wanted.extend(named);
    }
    let types: BTreeMap<String, &Item> = wanted
        .iter()
        .filter(|item| item.kind != "fn")
        .map(|item| (item.name.clone(), *item))
        .collect();
    for item in all.iter().filter(|item| item.kind == "fn") {
        let Some(of) = item.owner.as_ref().and_then(|name| types.get(name)) else { continue };
        // The same part of the source, so that a namesake's functions are not taken for its own.
        let part = |item: &Item| {
            let below = item.file.strip_prefix(dir).unwrap();
            below.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned()
        };
        if part(item) == part(of) {
            wanted.push(item);
        }
    }
    let mut findings = Vec::new();
    for item in &wanted {
        let of = item.owner.as_ref().map(|name| types[name]);
        let shown = of.is_some_and(|of| of.examples.contains(&format!("{}(", item.name)));
        if item.examples.trim().is_empty() && !(item.trivial && shown) {
            let file = item.file.strip_prefix(crates()).unwrap().display();
            let owner = item.owner.as_ref().map(|name| format!("{name}::")).unwrap_or_default();
            findings.push(format!("{file}:{}: {} {owner}{}", item.line, item.kind, item.name));
        }
    }
    (wanted.len(), findings)
}

#[test]
fn every_item_of_the_front_page_has_an_example() {
    let (mut count, mut findings) = (0, Vec::new());
    for page in FRONT_PAGES {
        let (items, without) = without_example(&crates().join(page));
        assert!(items > 0, "{page} exports nothing");
        count += items;
        findings.extend(without);
    }
    let missing = findings.len();
    let list = findings.join("\n  ");
    assert!(findings.is_empty(), "{missing} of {count} items have no example:\n  {list}\n");
}
