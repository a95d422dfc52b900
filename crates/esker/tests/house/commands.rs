//! What the pages show: programs, each of which a test runs, and commands, whose packages, targets,
//! features, tests, scripts and variables must be there.
//!
//! Nothing is run here. `docs/command-line.md` is run line by line by the tests of `esker-cli`, which
//! also read the command lines of `esker` on all other pages; `xtask` reads those of `cargo xtask`.

use crate::documents::{is_declared, of_tests};
use crate::source::{files, none_of, workspace};
use esker_testkit::pages::{Command, HISTORY, Page, pages};
use std::fs;
use std::path::{Path, PathBuf};

/// A store that `docs/peers.md` makes up to show what a new one needs, and one that there is.
const MADE_UP: (&str, &str) = ("shelf", "redb");

/// Compiles and runs the programs in Java.
const JAVA_PROGRAMS: &str = "bindings/java/esker/src/test/java/dev/esker/ProgramTest.java";

/// Compile and run the programs with Kafka Streams: one with Kafka's test driver, one beside a broker.
const KAFKA_PROGRAMS: &str =
    "bindings/java/esker-kafka-streams/src/test/java/dev/esker/kafka/GuideTest.java";
const BROKER_PROGRAM: &str =
    "bindings/java/esker-kafka-streams/src/test/java/dev/esker/kafka/broker/ScaleOutPageTest.java";

/// The fenced blocks of all pages: page, language, how many, and what runs them.
const PROGRAMS: [(&str, &str, usize, By); 22] = [
    ("README.md", "rust", 1, By::Test("readme::the_readme_shows_the_first_program_as_it_is")),
    ("bindings/java/README.md", "java", 1, By::Script(JAVA_PROGRAMS)),
    (
        "bindings/python/README.md",
        "python",
        1,
        By::Test("test_program::test_the_program_that_the_readme_shows"),
    ),
    ("crates/esker/src/guide.md", "", 20, By::Doctest("crates/esker/src/lib.rs")),
    (
        "docs/c.md",
        "c",
        3,
        By::Test("guide::the_third_program_of_the_guide_ends_a_compaction_when_it_gets_a_signal"),
    ),
    ("docs/c.md", "text", 1, By::Test("guide::the_first_program_of_the_guide_runs_as_printed")),
    ("docs/dump-format.md", "", 1, By::Nothing("the numbers of this dump are made up")),
    ("docs/file-formats.md", "", 3, By::Nothing("directories and grammars")),
    ("docs/import.md", "rust", 1, By::Test("docs::the_program_of_the_page_runs_as_printed")),
    ("docs/java.md", "java", 1, By::Script(JAVA_PROGRAMS)),
    ("docs/java.md", "text", 1, By::Script(JAVA_PROGRAMS)),
    ("docs/kafka-streams.md", "java", 1, By::Script(KAFKA_PROGRAMS)),
    ("docs/kafka-streams.md", "text", 1, By::Script(KAFKA_PROGRAMS)),
    ("docs/leveldb.md", "toml", 1, By::Script("crates/xtask/src/clients.rs")),
    ("docs/leveldb.md", "c", 1, By::Test("docs::the_program_of_the_page_runs_as_printed")),
    ("docs/leveldb.md", "text", 1, By::Test("docs::the_program_of_the_page_runs_as_printed")),
    ("docs/moving.md", "rust", 1, By::Doctest("crates/esker-testkit/src/lib.rs")),
    ("docs/operations.md", "yaml", 2, By::Script("tests/prometheus/scrape.py")),
    ("docs/python.md", "pycon", 17, By::Script("bindings/python/test.sh")),
    (
        "docs/python.md",
        "python",
        1,
        By::Test("test_program::test_the_program_that_the_guide_begins_with"),
    ),
    (
        "docs/python.md",
        "text",
        1,
        By::Test("test_program::test_the_program_that_the_guide_begins_with"),
    ),
    ("docs/scale-out.md", "java", 1, By::Script(BROKER_PROGRAM)),
];

/// Indented blocks that hold no commands: page, and how the block begins.
const OTHER_BLOCKS: [(&str, &str); 13] = [
    ("ARCHITECTURE.md", "error base"),
    ("docs/compaction.md", "keyspace →"),
    ("docs/import.md", "imported 292 entries"),
    ("docs/java.md", "<dependency>"),
    ("docs/java.md", "long left ="),
    ("docs/kafka-streams.md", "<dependency>"),
    ("docs/operations.md", "rate(esker_stall_seconds_total[1m])"),
    ("docs/operations.md", "get in keyspace default"),
    ("docs/peers.md", "shelf = {"),
    ("docs/peers.md", "fn shelf_offers("),
    ("docs/peers.md", "pub fn open("),
    ("docs/peers.md", "Entry {"),
    ("docs/write-path.md", "encode →"),
];
/// Run line by line by a test of its own; what is between the commands is what they print.
const RUN_AS_SHOWN: &str = "docs/command-line.md";

/// Programs of others, of which a page may show any arguments.
const OTHERS: [&str; 15] = [
    "callgrind_annotate",
    "cat",
    "cc",
    "cp",
    "echo",
    "export",
    "find",
    "git",
    "java",
    "less",
    "mkdir",
    "mvn",
    "perf",
    "valgrind",
    "xargs",
];

/// What runs a program of a page.
#[derive(Clone, Copy)]
enum By {
    /// A test, as `file::name`.
    Test(&'static str),
    /// The examples of a crate, into which this file takes the page.
    Doctest(&'static str),
    /// A script that names the page.
    Script(&'static str),
    /// Nothing, for this reason.
    Nothing(&'static str),
}

fn named(root: &Path) -> Vec<Page> {
    let mut pages = pages(root);
    pages.retain(|page| page.name != HISTORY);
    for page in &mut pages {
        page.text = page.text.replace(MADE_UP.0, MADE_UP.1);
    }
    pages
}

#[test]
fn every_program_of_a_page_is_run() {
    let root = workspace();
    let pages = pages(&root);
    let tests = of_tests(&root);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let mut findings = Vec::new();
    for page in &pages {
        for block in page.blocks() {
            let Some(language) = block.language else { continue };
            if !PROGRAMS.iter().any(|(name, of, ..)| *name == page.name && *of == language) {
                findings.push(format!(
                    "{}:{}: PROGRAMS does not say what runs it",
                    page.name, block.line
                ));
            }
        }
    }
    for (name, language, count, by) in PROGRAMS {
        let page = pages.iter().find(|page| page.name == name);
        let blocks = page.map(Page::blocks).unwrap_or_default();
        let found =
            blocks.iter().filter(|block| block.language.as_deref() == Some(language)).count();
        if found != count {
            findings.push(format!(
                "{name} has {found} blocks of `{language}`, where {count} are known to be run"
            ));
        }
        let file = name.rsplit('/').next().unwrap();
        let runs = match by {
            By::Test(test) => {
                test.split_once("::").is_some_and(|(file, test)| is_declared(&tests, file, test))
            }
            By::Doctest(source) => read(source).contains(&format!("{file}\")]")),
            By::Script(script) => read(script).contains(file),
            By::Nothing(why) => !why.is_empty(),
        };
        if !runs {
            findings
                .push(format!("what PROGRAMS names for {name} does not run it, or is not there"));
        }
    }
    none_of("a test runs each program of the pages", findings);
}

/// The packages of the workspace: name, directory and manifest.
struct Packages(Vec<(String, PathBuf, String)>);

impl Packages {
    fn new(root: &Path) -> Self {
        let directories = fs::read_dir(root.join("crates")).unwrap();
        let package = |dir: PathBuf| {
            let manifest = fs::read_to_string(dir.join("Cargo.toml")).ok()?;
            let (_, rest) = manifest.split_once("name = \"")?;
            Some((rest.split_once('"')?.0.to_owned(), dir, manifest))
        };
        Self(directories.filter_map(|entry| package(entry.unwrap().path())).collect())
    }

    /// Those of these names, or all.
    fn called(&self, names: &[&str]) -> Result<Vec<&(String, PathBuf, String)>, String> {
        if names.is_empty() {
            return Ok(self.0.iter().collect());
        }
        let of = |name: &&str| {
            let found = self.0.iter().find(|(called, ..)| called == name);
            found.ok_or_else(|| format!("there is no package {name}"))
        };
        // A page may say NAME for any.
        names.iter().filter(|name| name.to_uppercase() != **name).map(of).collect()
    }
}

/// A command of cargo in its parts.
#[derive(Default)]
struct Cargo<'a> {
    packages: Vec<&'a str>,
    targets: Vec<(&'a str, &'a str)>,
    features: Vec<&'a str>,
    rest: Vec<&'a str>,
    after: Vec<&'a str>,
}

impl<'a> Cargo<'a> {
    fn of(words: &'a [String]) -> Result<Self, String> {
        let mut parts = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} has no value"));
            match word {
                "--" => parts.after = words.by_ref().collect(),
                "-p" | "--package" => parts.packages.push(value()?),
                "--test" => parts.targets.push(("tests", value()?)),
                "--bench" => parts.targets.push(("benches", value()?)),
                "--example" => parts.targets.push(("examples", value()?)),
                "--features" => parts.features.extend(value()?.split(',')),
                "--manifest-path" | "--path" | "--config" => {
                    let path = value()?;
                    if !workspace().join(path).exists() {
                        return Err(format!("there is no {path}"));
                    }
                }
                "--release" | "--workspace" | "--lib" | "--doc" | "--no-run" | "--no-deps"
                | "--open" | "--locked" | "--dry-run" => {}
                word if word.starts_with('-') => {
                    return Err(format!("is {word} an option of cargo?"));
                }
                word => parts.rest.push(word),
            }
        }
        Ok(parts)
    }

    /// Whether packages, targets and features are there, and a test has the name that is asked for.
    fn check(&self, action: &str, all: &Packages) -> Result<(), String> {
        let packages = all.called(&self.packages)?;
        let any = |holds: &dyn Fn(&(String, PathBuf, String)) -> bool| {
            packages.iter().any(|package| holds(package))
        };
        for (kind, target) in &self.targets {
            let is_there = |(_, dir, _): &(String, PathBuf, String)| {
                let file = dir.join(kind).join(format!("{target}.rs"));
                file.exists() || dir.join(kind).join(target).join("main.rs").exists()
            };
            if !any(&is_there) {
                return Err(format!("there is no {target} in {kind}"));
            }
        }
        for feature in &self.features {
            let line = format!("\n{feature} = [");
            if !any(&|(_, _, manifest)| manifest.contains(&line)) {
                return Err(format!("there is no feature {feature}"));
            }
        }
        if action == "test" {
            for filter in &self.rest {
                if !any(&|(_, dir, _)| has_tests(dir, filter)) {
                    return Err(format!("no test has {filter} in its name"));
                }
            }
        }
        if action == "bench" {
            let sources: Vec<String> = self
                .targets
                .iter()
                .flat_map(|(kind, target)| {
                    packages.iter().filter_map(move |(_, dir, _)| {
                        fs::read_to_string(dir.join(kind).join(format!("{target}.rs"))).ok()
                    })
                })
                .collect();
            options_are_in(&sources.join("\n"), &self.after)?;
        }
        Ok(())
    }
}

/// Whether a test of a package has this in its name or in that of its module.
fn has_tests(dir: &Path, filter: &str) -> bool {
    let sources =
        ["src", "tests"].map(|below| dir.join(below)).into_iter().filter(|dir| dir.is_dir());
    sources.flat_map(|dir| files(&dir, ".rs")).any(|path| {
        let below = path.strip_prefix(dir).unwrap().with_extension("");
        let text = fs::read_to_string(&path).unwrap();
        let declares = |line: &str| {
            let line = line.trim_start();
            let name = line.strip_prefix("fn ").or_else(|| line.strip_prefix("mod "));
            name.is_some_and(|name| {
                name.split(['(', ';', ' ', '<']).next().unwrap().contains(filter)
            })
        };
        let tests = text.contains("#[test]") || text.contains("mod ");
        tests && (below.to_string_lossy().contains(filter) || text.lines().any(declares))
    })
}

/// Whether a source has all options among these words as literals.
fn options_are_in(source: &str, words: &[&str]) -> Result<(), String> {
    for word in words.iter().filter(|word| word.starts_with("--")) {
        if !source.contains(&format!("\"{word}\"")) {
            return Err(format!("{word} is not in its source"));
        }
    }
    Ok(())
}

/// What the checks look into.
struct House {
    root: PathBuf,
    packages: Packages,
    ci: String,
}

impl House {
    fn new() -> Self {
        let root = workspace();
        let ci = fs::read_to_string(root.join(".ci/run")).unwrap();
        Self { packages: Packages::new(&root), ci, root }
    }

    /// What is wrong with a command; `None` if it is none that is known.
    fn check(&self, command: &Command) -> Option<Result<(), String>> {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let Some((program, rest)) = words.split_first() else { return Some(Ok(())) };
        Some(match *program {
            "cargo" => self.cargo(&command.words[1..]),
            ".ci/run" => {
                let step = |name: &&&str| !self.ci.contains(&format!("\nstep {name} "));
                rest.iter()
                    .find(step)
                    .map_or(Ok(()), |name| Err(format!("no step is called {name}")))
            }
            "apt-get" => {
                let missing = |name: &&&str| {
                    !self.ci.contains(&format!(" {name}")) && !self.ci.contains(&format!("={name}"))
                };
                let names = rest.iter().filter(|name| **name != "install");
                names
                    .clone()
                    .find(missing)
                    .map_or(Ok(()), |name| Err(format!(".ci/run does not install {name}")))
            }
            "pip" => match rest {
                ["install", place]
                    if *place == "esker"
                        || self.root.join("bindings/python").join(place).exists()
                        || self.root.join(place).exists() =>
                {
                    Ok(())
                }
                _ => Err("what does it install?".to_owned()),
            },
            "python" | "/usr/bin/python3" => match rest {
                ["-m", "esker", ..] => Ok(()),
                [script, rest @ ..] => self.script(script, rest),
                [] => Ok(()),
            },
            "esker" | "target/release/esker" => Ok(()),
            script if script.starts_with("bindings/") => self.script(script, rest),
            // What was built before.
            built if built.starts_with("target/") || built.starts_with("./") => Ok(()),
            other if OTHERS.contains(&other) => Ok(()),
            _ => return None,
        })
    }

    fn script(&self, script: &str, words: &[&str]) -> Result<(), String> {
        let text = fs::read_to_string(self.root.join(script));
        options_are_in(&text.map_err(|error| format!("{script}: {error}"))?, words)
    }

    fn cargo(&self, words: &[String]) -> Result<(), String> {
        let Some((action, rest)) = words.split_first() else { return Ok(()) };
        match action.as_str() {
            "test" | "bench" | "build" | "run" | "doc" | "check" | "install" | "publish"
            | "deny" => Cargo::of(rest)?.check(action, &self.packages),
            // Its own tests read what follows.
            "xtask" => Ok(()),
            "add" => Ok(()),
            "fuzz" => {
                let target = rest.iter().skip(1).find(|target| {
                    !self.root.join(format!("fuzz/fuzz_targets/{target}.rs")).exists()
                });
                target.map_or(Ok(()), |target| Err(format!("there is no target {target}")))
            }
            _ => Err(format!("is {action} a command of cargo?")),
        }
    }
}

/// The variables of a command that are ours and that nothing reads.
fn unread(command: &Command, sources: &[(String, String)]) -> Option<String> {
    let mut ours =
        command.environment.iter().map(|(name, _)| name).filter(|name| name.starts_with("ESKER_"));
    let name =
        ours.find(|name| !sources.iter().any(|(_, text)| text.contains(&format!("{name}\""))))?;
    Some(format!("nothing reads {name}"))
}

/// The programs and scripts of the workspace: names and texts.
fn code(root: &Path) -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> =
        [".rs", ".py", ".sh", ".h"].iter().flat_map(|ending| files(root, ending)).collect();
    // What is written here is no use of it.
    paths.retain(|path| !path.to_string_lossy().contains("tests/house"));
    paths.push(root.join(".ci/run"));
    let read = |path: PathBuf| (path.display().to_string(), fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

#[test]
fn the_commands_of_all_pages_name_things_that_exist() {
    let house = House::new();
    let sources = code(&house.root);
    let (mut count, mut findings) = (0, Vec::new());
    for page in named(&house.root) {
        for command in page.commands() {
            let Some(checked) = house.check(&command) else { continue };
            // A sentence that only names a program.
            if command.words.len() < 2 && !command.in_block {
                continue;
            }
            count += 1;
            let wrong = checked.err().or_else(|| unread(&command, &sources));
            findings.extend(wrong.map(|wrong| {
                format!("{}:{}: {}: {wrong}", page.name, command.line, command.text())
            }));
        }
    }
    println!("{count} commands");
    none_of("the pages name what is not there", findings);
    assert!(count > 400, "only {count} commands were found");
}

#[test]
fn every_indented_block_holds_commands_or_is_known_to_hold_none() {
    let house = House::new();
    let (mut lines, mut findings) = (0, Vec::new());
    for page in named(&house.root).iter().filter(|page| page.name != RUN_AS_SHOWN) {
        for block in page.blocks().iter().filter(|block| block.language.is_none()) {
            let begins = |of: &str| {
                block.lines[0].trim_start().starts_with(&of.replace(MADE_UP.0, MADE_UP.1))
            };
            if OTHER_BLOCKS.iter().any(|(name, of)| *name == page.name && begins(of)) {
                continue;
            }
            for (line, text) in block.joined() {
                lines += 1;
                let mut first = block.commands().into_iter().filter(|command| command.line == line);
                if first.next().is_some_and(|command| house.check(&command).is_none()) {
                    findings.push(format!("{}:{line}: {text}", page.name));
                }
            }
        }
    }
    none_of("OTHERS has no such program, nor OTHER_BLOCKS such a block", findings);
    assert!(lines > 180, "only {lines} lines were found");
}

/// A variable, a code or a constant that a page names is somewhere in the sources.
#[test]
fn the_names_in_capitals_on_all_pages_exist() {
    let root = workspace();
    let sources = code(&root);
    let (mut count, mut findings) = (0, Vec::new());
    for page in named(&root) {
        for (at, line) in page.text.lines().enumerate() {
            let words =
                line.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
            for name in words.filter(|word| word.starts_with("ESKER_") && !word.ends_with('_')) {
                count += 1;
                if !sources.iter().any(|(_, text)| text.contains(name)) {
                    findings.push(format!("{}:{}: {name}", page.name, at + 1));
                }
            }
        }
    }
    none_of("no source has these names", findings);
    assert!(count > 60, "only {count} names were found");
}

#[test]
fn what_is_wrong_with_a_command_is_found() {
    let house = House::new();
    let sources = code(&house.root);
    let wrong = |text: &str| {
        let page = Page { name: "page.md".to_owned(), text: format!("    {text}\n") };
        let command = page.commands().remove(0);
        let checked = house.check(&command).unwrap_or_else(|| Err("unknown".to_owned()));
        checked.err().or_else(|| unread(&command, &sources))
    };
    for right in [
        "cargo test --release -p esker --test house files_are_short -- --nocapture",
        "ESKER_SEED=1 cargo bench -p esker --bench tree_shape -- --ratio 300",
        "cargo build --release --features peers,import-redb",
        ".ci/run format clippy",
        "pip install ./bindings/python",
    ] {
        assert_eq!(wrong(right), None, "{right}");
    }
    for (command, named) in [
        ("cargo test -p esker --test suites", "suites"),
        ("cargo test -p esker --test house files_are_tall", "files_are_tall"),
        ("cargo test -p eskers", "eskers"),
        ("cargo tset -p esker", "tset"),
        ("cargo build --realease", "--realease"),
        ("cargo build --features peer-oracle", "peer-oracle"),
        ("cargo bench -p esker --bench tree_shape -- --ratios 300", "--ratios"),
        ("ESKER_SEEDS=1 cargo test --workspace", "ESKER_SEEDS"),
        (".ci/run format clipy", "clipy"),
        ("apt-get install libleveldb2", "libleveldb2"),
        ("pip install ./bindings/pyton", "install"),
        ("python bindings/python/bench.py --numb 1", "--numb"),
        ("bindings/python/built.sh", "built.sh"),
        ("eskr get DIR KEY", "unknown"),
    ] {
        let found = wrong(command);
        assert!(found.as_ref().is_some_and(|found| found.contains(named)), "{command}: {found:?}");
    }
}
