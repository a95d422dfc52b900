//! The command lines of `cargo xtask` on all pages are understood. Nothing is run: most of them compile or
//! measure for minutes or hours.

use super::*;
use clap::error::ErrorKind;
use esker_testkit::pages::{Command, HISTORY, Page, pages};

/// The arguments, if the command is one of `cargo xtask`, or of cargo that runs this package.
fn arguments(command: &Command) -> Option<&[String]> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cargo", "xtask", ..] => Some(&command.words[2..]),
        ["cargo", "run", rest @ ..] if rest.contains(&"xtask") => {
            let at = words.iter().position(|word| *word == "--")?;
            Some(&command.words[at + 1..])
        }
        _ => None,
    }
}

/// Counts the commands of a page, and tells which are wrong.
fn check(page: &Page, findings: &mut Vec<String>) -> usize {
    let mut count = 0;
    for command in page.commands() {
        let Some(arguments) = arguments(&command) else { continue };
        count += 1;
        let words = std::iter::once("xtask").chain(arguments.iter().map(String::as_str));
        let Err(error) = Cli::try_parse_from(words) else { continue };
        if error.kind() != ErrorKind::DisplayHelp {
            let error = error.to_string();
            let (line, text) = (command.line, command.text());
            let error = error.lines().next().unwrap_or_default();
            findings.push(format!("{}:{line}: {text}\n    {error}", page.name));
        }
    }
    count
}

#[test]
fn the_chores_on_all_pages_are_understood() {
    let (mut count, mut findings) = (0, Vec::new());
    for page in pages(&workspace::root()).iter().filter(|page| page.name != HISTORY) {
        count += check(page, &mut findings);
    }
    println!("{count} command lines");
    assert!(findings.is_empty(), "wrong on their pages:\n  {}\n", findings.join("\n  "));
    assert!(count > 40, "only {count} command lines were found");
}

#[test]
fn a_chore_that_is_not_there_is_found() {
    for (text, named) in [
        ("`cargo xtask simulate`", ""),
        ("`cargo run --release -p xtask -- simulate-pacing`", ""),
        ("`cargo xtask simulated`", "simulated"),
        ("    cargo xtask fuzz --second 600", "--second"),
        ("    cargo run --release -p xtask -- budget --nums 5", "--nums"),
    ] {
        let page = Page { name: "page.md".to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        assert_eq!(check(&page, &mut findings), 1, "{text}");
        assert_eq!(findings.len(), usize::from(!named.is_empty()), "{text}: {findings:?}");
        let found = findings.concat();
        let said = found.split('\n').next_back().unwrap_or_default();
        assert!(said.contains(named), "{text}: {found}");
    }
}
