//! Circles between files: no file of a crate imports one that imports it, directly or through
//! others.
//!
//! A file imports another if a path in it names that file's module or something in it. A path that
//! ends at a re-export counts as an import of the file that defines the item. What a parent
//! declares (`mod x;`) or re-exports of its own children (`pub use x::Y;`) is no import.

use crate::lexer::{is_word, words};
use crate::source::{Source, all_crates, none_of};
use std::collections::{BTreeMap, BTreeSet};

/// A module's path below the root of its crate, which is empty for the root.
type Module = Vec<String>;

/// A path as it is written, with the name under which it is known in the file.
struct Path {
    parts: Vec<String>,
    alias: Option<String>,
}

impl Path {
    /// Whether a re-export by this path in `file` may be what `name` means there.
    fn offers(&self, name: &str, file: &File) -> bool {
        match self.alias.as_ref().or(self.parts.last()) {
            Some(known) if known == "*" => !file.defines(name),
            known => known.is_some_and(|known| known == name),
        }
    }
}

/// A file's imports.
struct File {
    code: String,
    imports: Vec<Path>,
    /// `pub use`, also with a restriction such as `pub(crate)`.
    exports: Vec<Path>,
}

impl File {
    fn read(code: &str) -> Self {
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        let mut rest = code.as_bytes().to_vec();
        for at in words(code, "use") {
            // `use` also stands in bounds that say what a type captures.
            let Some(len) = code[at..].find(';').filter(|_| !code[at + 3..].starts_with('<'))
            else {
                continue;
            };
            let paths = if is_public(&code[..at]) { &mut exports } else { &mut imports };
            expand("", &code[at + 3..at + len], paths);
            rest[at..at + len].fill(b' ');
        }
        let rest = String::from_utf8(rest).expect("only whole statements were blanked");
        imports.extend(inline_paths(&rest));
        Self { code: code.to_owned(), imports, exports }
    }

    /// Whether an item of this name is defined in the file.
    fn defines(&self, name: &str) -> bool {
        let kinds = ["struct", "enum", "union", "fn", "trait", "type", "const", "static"];
        words(&self.code, name).into_iter().any(|at| {
            let before = self.code[..at].trim_end();
            let word = before.len() - before.bytes().rev().take_while(|&b| is_word(b)).count();
            kinds.contains(&&before[word..])
        })
    }
}

/// Whether the `use` behind this is one that others can name.
fn is_public(before: &str) -> bool {
    let before = before.trim_end();
    let before = match before.strip_suffix(')') {
        Some(inside) => inside.rsplit_once('(').map_or(before, |(head, _)| head),
        None => before,
    };
    before.ends_with("pub")
        && !before[..before.len() - 3].ends_with(|c: char| c == '_' || c.is_alphanumeric())
}

/// The paths of a tree such as `a::{b, c::{self, D as E}}`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<Path>) {
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let whole = format!("{prefix}{path}");
        let parts: Vec<String> = whole.split("::").map(|part| part.trim().to_owned()).collect();
        let alias = Some(alias.trim().to_owned()).filter(|alias| !alias.is_empty());
        paths.push(Path {
            parts: parts.into_iter().filter(|part| !part.is_empty()).collect(),
            alias,
        });
        return;
    };
    let prefix = format!("{prefix}{}", head.trim());
    let mut depth = 0;
    let group = &group[..group.rfind('}').unwrap_or(group.len())];
    let branches = group.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for branch in branches.filter(|branch| !branch.trim().is_empty()) {
        expand(&prefix, branch, paths);
    }
}

/// The paths that stand in code outside of `use`: whole from `crate`, `super` or `self` on, else
/// the first name, which may be that of a child.
fn inline_paths(code: &str) -> Vec<Path> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("::") {
        let start = at - code[..at].bytes().rev().take_while(|&byte| is_word(byte)).count();
        // Only the beginning of a path counts, and `$crate` begins one too.
        if start == at || code[..start].ends_with("::") {
            continue;
        }
        let end = code[start..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let path = &code[start..end.map_or(code.len(), |end| start + end)];
        let parts: Vec<String> = path.split("::").map(str::to_owned).collect();
        let parts: Vec<String> = parts.into_iter().take_while(|part| !part.is_empty()).collect();
        let rooted = ["crate", "super", "self"].contains(&parts[0].as_str());
        let len = if rooted { parts.len() } else { 1 };
        paths.push(Path { parts: parts[..len].to_vec(), alias: None });
    }
    paths
}

/// The files of a crate.
struct Crate(BTreeMap<Module, File>);

impl Crate {
    /// The file that a path in a module leads to, through re-exports.
    fn resolve(&self, module: &Module, parts: &[String], depth: usize) -> Option<Module> {
        // Re-exports that lead back to themselves do not compile, save where names are shadowed.
        if depth > 8 {
            return None;
        }
        let (at, rest) = self.descend(module, parts)?;
        let (file, Some(name)) = (self.0.get(&at)?, rest.first()) else { return Some(at) };
        let exported = |export| self.resolve_export(&at, export, rest, depth);
        let mut exports = file.exports.iter().filter(|export| export.offers(name, file));
        Some(exports.find_map(exported).unwrap_or(at))
    }

    /// The file in which a re-export finds the first name of `rest`.
    fn resolve_export(
        &self,
        at: &Module,
        export: &Path,
        rest: &[String],
        depth: usize,
    ) -> Option<Module> {
        let (last, head) = export.parts.split_last()?;
        if last != "*" {
            let path: Vec<String> = export.parts.iter().chain(&rest[1..]).cloned().collect();
            return self.resolve(at, &path, depth + 1);
        }
        let source = self.resolve(at, head, depth + 1).filter(|source| source != at)?;
        let path: Vec<String> = ["self".to_owned()].iter().chain(rest).cloned().collect();
        let found = self.resolve(&source, &path, depth + 1)?;
        self.0[&found].defines(&rest[0]).then_some(found)
    }

    /// The module that a path leads to, as far as its parts name modules, and the other parts.
    fn descend<'a>(&self, module: &Module, parts: &'a [String]) -> Option<(Module, &'a [String])> {
        let mut at = module.clone();
        let mut rest = parts;
        match rest.first()?.as_str() {
            "crate" => (at, rest) = (Module::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                at.push(child.to_owned());
                rest = &rest[1..];
                // It is a name of the file's own, or of another crate.
                if !self.0.contains_key(&at) {
                    return None;
                }
            }
        }
        while let Some((next, more)) = rest.split_first() {
            at.push(next.clone());
            if !self.0.contains_key(&at) {
                at.pop();
                break;
            }
            rest = more;
        }
        Some((at, rest))
    }

    /// What each file imports, and by which path.
    fn imports(&self) -> BTreeMap<&Module, BTreeMap<Module, String>> {
        let mut imports = BTreeMap::new();
        for (module, file) in &self.0 {
            let mut of_file = BTreeMap::new();
            let paths = file.imports.iter().map(|path| (path, false));
            for (path, exported) in paths.chain(file.exports.iter().map(|path| (path, true))) {
                let Some(target) = self.resolve(module, &path.parts, 0) else { continue };
                let own = exported && target.starts_with(module);
                if target != *module && !own {
                    of_file.entry(target).or_insert_with(|| path.parts.join("::"));
                }
            }
            imports.insert(module, of_file);
        }
        imports
    }

    /// The circles, each as the files in it with the imports that close it.
    fn circles(&self) -> Vec<String> {
        let imports = self.imports();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            imports.keys().map(|&module| (module, reach(&imports, module))).collect();
        let mut circles = Vec::new();
        let mut seen = BTreeSet::new();
        for (&module, others) in &reached {
            if !others.contains(module) || seen.contains(module) {
                continue;
            }
            let back = |other: &&&Module| reached[**other].contains(module);
            let circle: BTreeSet<&Module> = others.iter().filter(back).copied().collect();
            let mut text = format!("{} files:", circle.len());
            for &from in &circle {
                for (to, path) in imports[from].iter().filter(|(to, _)| circle.contains(to)) {
                    text += &format!("\n    {} imports {} by {path}", shown(from), shown(to));
                }
            }
            seen.extend(circle);
            circles.push(text);
        }
        circles
    }
}

/// All files that a file imports, directly or through others.
fn reach<'a>(
    imports: &'a BTreeMap<&'a Module, BTreeMap<Module, String>>,
    from: &Module,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&Module> = imports[from].keys().collect();
    while let Some(module) = pending.pop() {
        if reached.insert(module) {
            pending.extend(imports[module].keys());
        }
    }
    reached
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "the crate's root".to_owned() } else { module.join("::") }
}

/// The crate that a source belongs to, and the module that it is.
fn place(source: &Source) -> (String, Module) {
    let (of_crate, below) = source.name.split_once("/src/").unwrap();
    let mut module: Module = below.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if ["mod", "lib", "main"].contains(&module.last().unwrap().as_str()) {
        module.pop();
    }
    (of_crate.to_owned(), module)
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut crates: BTreeMap<String, BTreeMap<Module, File>> = BTreeMap::new();
    for source in all_crates() {
        let (of_crate, module) = place(&source);
        let file = File::read(&source.shipped);
        crates.entry(of_crate).or_default().insert(module, file);
    }
    let mut findings = Vec::new();
    for (name, files) in crates {
        let circles = Crate(files).circles();
        findings.extend(circles.into_iter().map(|circle| format!("{name}, {circle}")));
    }
    none_of("files of a crate do not import each other in circles", findings);
}

#[test]
fn circles_are_found_through_re_exports_and_only_where_there_are_some() {
    let circles = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(name, code)| {
            let parts = name.split('/').filter(|part| !part.is_empty());
            (parts.map(str::to_owned).collect(), File::read(code))
        });
        Crate(files.collect()).circles()
    };
    // A parent may declare and re-export, and a child may use what its parent re-exports.
    let parent = "mod a;\nmod b;\npub use a::A;\npub(crate) use b::{B, C as D};\n";
    let b = "pub struct B;\npub struct C;\n";
    assert_eq!(
        circles(&[("", parent), ("a", "use crate::B;\nstruct A(B, super::D);\n"), ("b", b)]),
        [""; 0]
    );
    // By a `use`, inline, through a re-export, its new name, or a re-export of everything.
    for (a, parent) in [
        ("use super::b::B;", parent),
        ("fn f() { super::b::g() }", parent),
        ("use crate::{D, a};", parent),
        ("use crate::B;", "mod a;\nmod b;\npub use b::*;\n"),
    ] {
        let b = format!("use crate::a::A;\n{b}");
        let found = circles(&[("", parent), ("a", a), ("b", &b)]);
        assert_eq!(found.len(), 1, "{a}: {found:?}");
        assert!(found[0].starts_with("2 files:\n    a imports b by "), "{}", found[0]);
        assert!(found[0].contains("\n    b imports a by crate::a::A"), "{}", found[0]);
    }
    // A parent that uses its child's item closes a circle with a child that uses its own.
    let found =
        circles(&[("", "mod a;\nuse a::A;\nstruct P(A);\n"), ("a", "use super::P;\nstruct A;")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("the crate's root imports a by a::A"), "{}", found[0]);
    // Three in a row are one circle.
    let ring = [("a", "use crate::b::x;"), ("b", "use crate::c::x;"), ("c", "use crate::a::x;")];
    assert!(circles(&[&[("", "")][..], &ring].concat())[0].starts_with("3 files:"));
}
