//! `docs/command-line.md`: its examples run as they are printed and succeed where the page shows no
//! failure, and there is one for every command.

use crate::support::succeed;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A line for the system's shell, and the lines that it prints.
#[derive(Default)]
struct Example {
    line: String,
    printed: Vec<String>,
}

/// The examples of a page: indented, a line that begins with a dollar sign and what it prints.
fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            inside = false;
            continue;
        };
        if let Some(line) = line.strip_prefix("$ ") {
            inside = true;
            found.push(Example { line: line.to_owned(), printed: Vec::new() });
        } else if let Some(example) = found.last_mut().filter(|_| inside) {
            example.printed.push(line.to_owned());
        }
    }
    found
}

fn page() -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(own.join("../../docs/command-line.md")).unwrap()
}

/// Whether a line is as it is printed on the page, where `…` stands for anything.
fn fits(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else { return pattern == line };
    let Some(line) = line.strip_prefix(start) else { return false };
    let mut ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    ends.any(|at| fits(rest, &line[at..]))
}

/// How a line begins that the program prints on standard error.
const SAID: &str = "esker:";

/// The same for all lines; one that is `…` stands for any number of lines. It stands for no line of
/// standard error: failures and warnings are shown.
fn all_fit(patterns: &[String], lines: &[&str]) -> bool {
    match (patterns, lines) {
        ([], lines) => lines.is_empty(),
        ([any, patterns @ ..], lines) if any == "…" => {
            let hidden = lines.iter().take_while(|line| !line.starts_with(SAID)).count();
            (0..=hidden).any(|count| all_fit(patterns, &lines[count..]))
        }
        ([pattern, patterns @ ..], [line, lines @ ..]) => {
            fits(pattern, line) && all_fit(patterns, lines)
        }
        _ => false,
    }
}

/// Whether an example may fail: the page shows what was said, before or after all else, or the exit code.
fn may_fail(example: &Example) -> bool {
    let ends = [example.printed.first(), example.printed.last()];
    example.line.contains("echo $?") || ends.iter().flatten().any(|line| line.starts_with(SAID))
}

#[test]
fn the_examples_print_what_the_page_says() {
    let place = tempfile::tempdir().unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_esker"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let examples = examples(&page());
    assert!(examples.len() > 50, "{}", examples.len());
    for example in examples {
        let Example { line, printed } = &example;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{{ {line}\n}} 2>&1")).current_dir(place.path());
        shell.env("PATH", &path).stdin(Stdio::null());
        let output = shell.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert!(all_fit(printed, &lines), "{line}\nprinted:\n{said}\nnot:\n{printed:#?}");
        let status = output.status;
        assert!(status.success() || may_fail(&example), "{line}\n{status}, printed:\n{said}");
    }
}

#[test]
fn every_command_has_an_example() {
    let help = succeed(["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.map_while(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands.filter(|name| !name.is_empty()).collect();
    assert!(commands.len() > 20, "{help}");
    let examples = examples(&page());
    for command in commands {
        let called = format!("esker {command}");
        let mut lines = examples.iter().map(|example| format!("{} ", example.line));
        assert!(lines.any(|line| line.contains(&format!("{called} "))), "{called}");
    }
}

#[test]
fn lines_fit_where_only_what_may_differ_does() {
    assert!(fits("took … s", "took 0.3 s") && fits("{…}", "{\"a\":1}") && fits("…", ""));
    assert!(!fits("took … s", "took 0.3 ms") && !fits("a", "ab") && !fits("a…b", "a"));
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert!(all_fit(&lines(&["a", "…"]), &["a", "b", "c"]));
    assert!(!all_fit(&lines(&["a", "b"]), &["a"]) && !all_fit(&lines(&["a"]), &["a", "b"]));
    assert!(all_fit(&lines(&["…", "b", "…"]), &["a", "a", "b"]));
    assert!(!all_fit(&lines(&["…", "b"]), &["a"]));
}

#[test]
fn failures_are_not_hidden() {
    let example = |line: &str, printed: &str| Example {
        line: line.to_owned(),
        printed: vec![printed.to_owned()],
    };
    assert!(!all_fit(&["…".to_owned()], &["esker: key not found"]));
    assert!(!may_fail(&example("esker stats DB", "…")));
    assert!(may_fail(&example("esker get DB k", "esker: key not found…")));
    assert!(may_fail(&example("esker get DB k; echo $?", "1")));
}
