//! The command lines of the documentation, and of the program's own help, are understood.
//!
//! Nothing is run: most of them measure for minutes or hours, some need the stores of others. What a
//! block shows must be a whole command line, of which `bench` also makes its settings. A sentence may
//! leave out arguments that it is not about, but names no command, option or value that is not there.

use super::*;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use esker_testkit::pages::{Command as Shown, HISTORY, Page, pages};
use std::path::Path;

/// A store that `docs/peers.md` makes up to show what a new one needs, and one that there is.
const MADE_UP: (&str, &str) = ("shelf", "redb");
/// What its blocks show is run by a test of its own, with the mistakes that it shows.
const RUN_AS_SHOWN: &str = "docs/command-line.md";

/// Options that sentences name and that are those of cargo, of rustc, of our chores and scripts, or of programs of
/// others.
const NOT_OURS: [&str; 21] = [
    "--address",
    "--again",
    "--allow-dirty",
    "--cache-sim",
    "--cfg",
    "--destdir",
    "--direct",
    "--dropin",
    "--dump-instr",
    "--features",
    "--flat",
    "--include-ignored",
    "--ioengine",
    "--jobs",
    "--libdir",
    "--ratio",
    "--release",
    "--required",
    "--screenshots",
    "--space",
    "--test",
];

/// The arguments for the program, if the command runs it.
fn arguments(shown: &Shown) -> Option<Vec<String>> {
    let rest = shown.arguments_of_esker()?;
    // A sentence names the library, too, and the program with a command of any name.
    let first = rest.first()?.chars().next()?;
    (first.is_ascii_lowercase() || first == '-').then(|| filled(rest))
}

/// Puts something in the place of what stands for a value of a certain form.
fn filled(words: &[String]) -> Vec<String> {
    let mut filled: Vec<String> = Vec::new();
    for word in words {
        let before = filled.last().map_or("", String::as_str);
        let number = word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase());
        let value = match word.as_str() {
            "…" | "LIST" | "NAMES" if before == "--engine" => "esker",
            "…" => continue,
            "NAME" if before == "experiment" => "influxdb",
            "ADDRESS" if before == "--listen" => "127.0.0.1:0",
            "SIZE" | "BYTES" => "1M",
            _ if number && before.starts_with("--") => "1",
            word => word,
        };
        filled.push(value.to_owned());
    }
    filled
}

/// Whether all that is wrong is that something is missing.
fn only_lacks(error: &clap::Error) -> bool {
    let no_value = error.get(ContextKind::InvalidValue);
    let no_value = matches!(no_value, Some(ContextValue::String(value)) if value.is_empty());
    let lacks = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    no_value || lacks.contains(&error.kind())
}

/// What is wrong with arguments.
fn wrong(arguments: &[String], in_block: bool) -> Option<String> {
    let line = std::iter::once("esker").chain(arguments.iter().map(String::as_str));
    match Cli::try_parse_from(line) {
        Ok(Cli { command: Command::Bench(args) }) => {
            bench::settled(&args).err().map(|error| error.to_string())
        }
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => None,
        Err(error) if !in_block && only_lacks(&error) => None,
        Err(error) => error.to_string().lines().next().map(str::to_owned),
    }
}

/// What begins a command line: each command, and each of those below it.
fn beginnings() -> Vec<Vec<String>> {
    let mut beginnings = Vec::new();
    for command in Cli::command().get_subcommands() {
        let name = command.get_name().to_owned();
        for below in command.get_subcommands() {
            let mut words = vec![name.clone(), below.get_name().to_owned()];
            // It has to know which before it can make settings.
            words.extend((below.get_name() == "experiment").then(|| "influxdb".to_owned()));
            beginnings.push(words);
        }
        beginnings.push(vec![name]);
    }
    // Where a sentence only adds what is measured on a database that is there.
    beginnings.push(["bench", "--dir", "DIR"].map(str::to_owned).to_vec());
    beginnings
}

/// What is wrong with options that a sentence names without a command; `None` if some command takes them.
fn nobody_takes(options: &[String]) -> Option<String> {
    let (name, _) = options[0].split_once('=').unwrap_or((&options[0], ""));
    if NOT_OURS.contains(&name) {
        return None;
    }
    let options = filled(options);
    let takes = |mut words: Vec<String>| {
        words.extend(options.iter().cloned());
        wrong(&words, false).is_none()
    };
    (!beginnings().into_iter().any(takes)).then(|| "no command takes that".to_owned())
}

/// Counts the command lines of a page, those of blocks first, and tells which are wrong.
fn check(page: &Page, findings: &mut Vec<String>) -> (usize, usize) {
    let (mut blocks, mut sentences) = (0, 0);
    for shown in page.commands() {
        if shown.in_block && page.name == RUN_AS_SHOWN {
            continue;
        }
        let option =
            shown.words.first().is_some_and(|word| word.len() > 2 && word.starts_with("--"));
        let wrong = match arguments(&shown) {
            Some(arguments) => wrong(&arguments, shown.in_block),
            None if option => nobody_takes(&shown.words),
            None => continue,
        };
        *(if shown.in_block { &mut blocks } else { &mut sentences }) += 1;
        if let Some(wrong) = wrong {
            findings.push(format!("{}:{}: {}\n    {wrong}", page.name, shown.line, shown.text()));
        }
    }
    (blocks, sentences)
}

#[test]
fn the_command_lines_of_all_pages_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut blocks, mut sentences, mut findings) = (0, 0, Vec::new());
    for mut page in pages(&root).into_iter().filter(|page| page.name != HISTORY) {
        page.text = page.text.replace(MADE_UP.0, MADE_UP.1);
        let counted = check(&page, &mut findings);
        blocks += counted.0;
        sentences += counted.1;
    }
    println!("{blocks} command lines of blocks and {sentences} of sentences");
    assert!(findings.is_empty(), "wrong on their pages:\n  {}\n", findings.join("\n  "));
    assert!(blocks > 110, "only {blocks} command lines were found in blocks");
    assert!(sentences > 200, "only {sentences} command lines were found in sentences");
}

/// What the help of every command says at its end, as a page whose examples are blocks.
fn help(command: &clap::Command, name: &str) -> Vec<Page> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let indent = |line: &str| {
        if line.starts_with("  ") { format!("    {line}\n") } else { format!("{line}\n\n") }
    };
    let text = text.lines().map(indent).collect();
    let own = Page { name: format!("{name} --help"), text };
    let below = command.get_subcommands();
    let below = below.flat_map(|below| help(below, &format!("{name} {}", below.get_name())));
    std::iter::once(own).chain(below).collect()
}

#[test]
fn the_examples_of_all_helps_are_understood() {
    let (mut blocks, mut findings) = (0, Vec::new());
    for page in help(&Cli::command(), "esker") {
        blocks += check(&page, &mut findings).0;
    }
    println!("{blocks} examples");
    assert!(findings.is_empty(), "wrong in their helps:\n  {}\n", findings.join("\n  "));
    assert!(blocks > 25, "only {blocks} examples were found");
}

#[test]
fn what_is_wrong_with_a_command_line_is_found() {
    let findings = |text: &str| {
        let page = Page { name: "page.md".to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        let counted = check(&page, &mut findings);
        assert_eq!(counted.0 + counted.1, 1, "{text}");
        findings
    };
    for right in [
        "    esker bench --num 1K|2K --engine … --workloads fillseq",
        "    cargo run --release --features peers -- bench compare --engine esker,rocksdb",
        "    target/release/esker load NEW FILE",
        "`esker put --ttl` and `esker COMMAND --help` of `esker`",
        "`esker bench`",
        "`--scale 10M`",
        "`--num 1K --workloads fillseq,…`",
    ] {
        let right = right.replace("1K|2K", "1K");
        assert_eq!(findings(&right), [""; 0], "{right}");
    }
    for (wrong, named) in [
        ("    esker bench --number 1K", "--number"),
        ("    esker bench --num 1K --workloads fillsqe", "fillsqe"),
        ("    esker bench --engine oracle", "oracle"),
        ("    esker bench experiment influx", "influx"),
        ("    esker bench --use-existing-db", "--dir"),
        ("    cargo run -- bench compare --nonsense", "--nonsense"),
        ("    esker get DIR", "required"),
        ("`esker mend DIR`", "mend"),
        ("`esker put DIR K --time 5s`", "--time"),
        ("`esker put --durability safe`", "safe"),
        ("`--number 1K`", "no command"),
        ("`--scale 10M --workloads fillseq`", "no command"),
    ] {
        let found = findings(wrong);
        assert!(found.len() == 1 && found[0].starts_with("page.md:1: "), "{wrong}: {found:?}");
        assert!(found[0].split('\n').next_back().unwrap().contains(named), "{found:?}");
    }
}
