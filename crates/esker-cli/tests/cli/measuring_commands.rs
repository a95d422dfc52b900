//! The commands of all pages that measure are run in a short form: as they are shown, with fewer keys and
//! operations, of the engines that every build has, in a database of their own.
//!
//! What they print is not looked at: it is of another size. A command that fails, or that needs what its
//! page does not say, is found.

use crate::support::{esker, run, text};
use esker_testkit::pages::{Command as Shown, HISTORY, pages};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

/// How many keys and operations a short form has.
const SMALL: &str = "2K";

/// Options that say how large a measurement is, or where it leaves something: a short form has its own, or none.
const REPLACED: [&str; 14] = [
    "--num",
    "--reads",
    "--scale",
    "--duration",
    "--rounds",
    "--repeat",
    "--dir",
    "--results",
    "--out",
    "--engine",
    "--limit",
    "--memory-limit",
    "--durability",
    "--seed",
];

/// Options without a value that need rights or a database that a short form has not.
const LEFT_OUT: [&str; 3] = ["--drop-caches", "--use-existing-db", "--json"];

/// A longer value takes long to make.
const LONGEST_VALUE: usize = 4096;

/// The arguments behind `bench` of a command that measures.
fn measured(shown: &Shown) -> Option<&[String]> {
    let rest = shown.arguments_of_esker()?;
    let measures = rest.first()? == "bench"
        && rest.get(1).is_none_or(|word| word != "report")
        && !rest.iter().any(|word| word == "--list" || word == "--help");
    measures.then(|| &rest[1..])
}

/// The short form of the arguments.
fn short(arguments: &[String]) -> Vec<String> {
    let mut short = Vec::new();
    let is_experiment = arguments.first().is_some_and(|word| word == "experiment");
    let names_one = arguments.get(1).is_some_and(|word| !word.starts_with("--"));
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        if LEFT_OUT.contains(&name) || name == "…" {
            continue;
        }
        if REPLACED.contains(&name) {
            if joined.is_none() {
                words.next();
            }
            continue;
        }
        let small = |value: &str| match value.parse::<usize>() {
            Ok(bytes) if bytes <= LONGEST_VALUE => value.to_owned(),
            _ => LONGEST_VALUE.to_string(),
        };
        match (name, joined) {
            ("--value-size", Some(value)) => short.extend([name.to_owned(), small(value)]),
            ("--value-size", None) => {
                short.push(name.to_owned());
                short.extend(words.next().map(|value| small(value)));
            }
            // Pages that say the same of all experiments, or of all budgets.
            ("NAME", None) => short.push("influxdb".to_owned()),
            ("M", None) => short.push("64M".to_owned()),
            _ => short.push(word.clone()),
        }
    }
    let sizes: &[&str] = match (is_experiment, names_one) {
        (true, true) => &["--scale", SMALL],
        (true, false) => &["influxdb", "--scale", SMALL],
        (false, _) => &["--num", SMALL, "--reads", SMALL],
    };
    let length = ["--duration", "0.1", "--rounds", "1"];
    short.extend(sizes.iter().chain(&length).map(|word| (*word).to_owned()));
    short
}

/// Fills a database as the short form wants to find it.
fn fill(dir: &Path, short: &[String]) {
    let mut load = ["bench", "--num", SMALL, "--workloads", "fillseq"].map(str::to_owned).to_vec();
    for option in ["--value-size", "--key-size", "--key-style"] {
        if let Some(at) = short.iter().position(|word| word == option) {
            load.extend_from_slice(&short[at..at + 2]);
        }
    }
    load.extend(["--dir".to_owned(), text(dir).to_owned()]);
    let output = run(&load);
    assert!(output.status.success(), "{load:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What is wrong with a short form.
fn wrong(arguments: &[String], uses_existing: bool) -> Option<String> {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    let mut line = vec!["bench".to_owned()];
    line.extend_from_slice(arguments);
    line.extend(["--dir".to_owned(), text(&dir).to_owned()]);
    if uses_existing {
        fill(&dir, arguments);
        line.push("--use-existing-db".to_owned());
    }
    let mut command = esker();
    command.current_dir(place.path()).args(&line).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| format!("{}\n    {}", line.join(" "), said.trim()))
}

#[test]
fn the_measuring_commands_of_all_pages_run_in_a_short_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut forms, mut shown, mut findings) = (BTreeSet::new(), 0, Vec::new());
    for page in pages(&root).iter().filter(|page| page.name != HISTORY) {
        for command in page.commands() {
            let Some(arguments) = measured(&command) else { continue };
            shown += 1;
            let uses_existing = arguments.iter().any(|word| word == "--use-existing-db");
            let short = short(arguments);
            if !forms.insert((short.clone(), uses_existing)) {
                continue;
            }
            if let Some(wrong) = wrong(&short, uses_existing) {
                findings.push(format!("{}:{}: {wrong}", page.name, command.line));
            }
        }
    }
    println!("{shown} commands, {} short forms", forms.len());
    assert!(findings.is_empty(), "failed:\n  {}\n", findings.join("\n  "));
    assert!(forms.len() > 60, "only {} short forms were found", forms.len());
}
