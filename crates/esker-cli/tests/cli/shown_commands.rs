//! The command lines of all pages that name a database as `DIR` are run as they are shown, each on a
//! database of its own, and succeed.
//!
//! `docs/command-line.md` has a test of its own for its blocks, and `docs/import.md` for all. What measures is run
//! by `measuring_commands.rs`; what goes on until someone ends it is only read, by the program's own tests.

use crate::support::{esker, succeed, text, tree};
use esker_testkit::pages::{Command as Shown, HISTORY, pages};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// What pages call a database, one to be made, and a file.
const PLACEHOLDERS: [&str; 4] = ["DIR", "DIR/superblock-A", "NEW", "FILE"];

/// Whether a command can be run, and ends by itself and soon.
fn is_run(shown: &Shown) -> bool {
    let words: Vec<&str> = shown.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["esker", "bench", "report", rest @ ..] => rest.contains(&"today.json"),
        ["esker", "bench" | "import" | "serve-metrics", ..] => false,
        ["esker", "top", rest @ ..] => rest.contains(&"--once"),
        ["esker", rest @ ..] => rest.iter().any(|word| PLACEHOLDERS.contains(word)),
        _ => false,
    }
}

/// Makes what the command needs: a database with a keyspace, a branch and an entry of the names that
/// pages use, and files.
fn prepare(place: &Path, words: &[String]) {
    let is_needed = |name: &str| words.iter().any(|word| word.as_str() == name);
    let at = |name: &str| place.join(name);
    let (dir, file) = (at("DIR"), at("FILE"));
    if words[1] == "bench" {
        for name in ["today.json", "old.json"] {
            let measure =
                ["bench", "--json", "--num", "200", "--workloads", "fillseq", "--rounds", "2"];
            fs::write(at(name), succeed(measure.iter().chain(&["--engine", "esker,mem"]))).unwrap();
        }
        return;
    }
    succeed(["put", text(&dir), "KEY", "VALUE"]);
    succeed(["put", text(&dir), "k", "v", "--keyspace", "NAME"]);
    match words[1].as_str() {
        "load" => {
            let dump = ["dump", text(&dir), "--out", text(&file)];
            assert!(esker().args(dump).output().unwrap().status.success());
        }
        "inspect" => drop(fs::copy(dir.join("superblock-A"), &file).unwrap()),
        "compact" if is_needed("NEW") => drop(succeed(["put", text(&at("NEW")), "k", "v"])),
        _ => {}
    }
    succeed(["branch", text(&dir), "--make", "NAME"]);
}

#[test]
fn the_commands_of_all_pages_succeed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for page in pages(&root).iter().filter(|page| page.name != HISTORY) {
        let own_test = page.name == "docs/command-line.md";
        let commands = page.commands().into_iter().filter(|shown| !(own_test && shown.in_block));
        for shown in commands.filter(is_run) {
            count += 1;
            let place = tempfile::tempdir().unwrap();
            prepare(place.path(), &shown.words);
            let before = tree(place.path());
            let mut command = esker();
            command.current_dir(place.path()).args(&shown.words[1..]).stdin(Stdio::null());
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let line = format!("{}:{}: {}", page.name, shown.line, shown.text());
            assert!(output.status.success(), "{line}\n{said}");
            let idle = output.stdout.is_empty() && tree(place.path()) == before;
            assert!(
                !idle,
                "{line}
printed nothing and wrote nothing"
            );
        }
    }
    println!("{count} commands were run");
    assert!(count > 25, "only {count} commands were found");
}
