//! C and C++ programs against the library: each is compiled with all warnings as errors, linked
//! with the shared and the static library, and run.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use support::{Language, Linked, compile, execute, has, package};

fn source(name: &str) -> PathBuf {
    package().join("tests/c").join(name)
}

/// Compiles and runs a program in both linkages; it must end by saying that all went well.
fn passes(name: &str, language: Language) {
    if !has(language) {
        return;
    }
    let path = source(name);
    let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
    for (linked, tag) in [(Linked::Shared, "shared"), (Linked::Fixed, "static")] {
        let said = execute(&compile(&path, language, linked, tag, &[]), &[]);
        assert!(said.contains(&format!("{stem}: ok")), "{said}");
    }
}

#[test]
fn each_function_does_what_it_says() {
    passes("basics.c", Language::C99);
}

#[test]
fn each_mistake_is_a_typed_error_and_loses_nothing() {
    passes("errors.c", Language::C99);
}

#[test]
fn orders_of_a_program_are_kept_by_name() {
    passes("orders.c", Language::C99);
}

#[test]
fn transactions_are_whole_and_conflicts_are_told() {
    passes("transactions.c", Language::C99);
}

#[test]
fn operators_and_times_to_live_work() {
    passes("operators.c", Language::C99);
}

#[test]
fn branches_and_named_snapshots_go_their_own_way() {
    passes("branches.c", Language::C99);
}

#[test]
fn ingestions_take_effect_whole_and_can_be_joined() {
    passes("ingestion.c", Language::C99);
}

#[test]
fn values_come_and_go_in_pieces() {
    passes("streamed.c", Language::C99);
}

#[test]
fn values_stay_as_they_were_read() {
    passes("values.c", Language::C99);
}

#[test]
fn ranges_are_counted_and_cut() {
    passes("counts.c", Language::C99);
}

#[test]
fn a_program_ends_long_calls() {
    passes("interrupted.c", Language::C99);
}

#[test]
fn a_forked_child_is_refused_and_its_parent_goes_on() {
    passes("fork.c", Language::C99);
}

#[test]
fn the_header_is_cpp_too() {
    passes("classes.cpp", Language::Cpp17);
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(package().join("include/esker.h")).unwrap();
    // Comments may name functions too.
    let mut code = String::new();
    for part in header.split("/*") {
        code.push_str(part.split_once("*/").map_or(part, |(_, behind)| behind));
    }
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '(');
    let calls = words.filter_map(|word| word.split_once('(')).map(|(name, _)| name.to_owned());
    calls.filter(|name| name.starts_with("esker_")).collect()
}

#[test]
fn the_programs_call_every_function() {
    let mut called = String::new();
    for entry in fs::read_dir(package().join("tests/c")).unwrap() {
        called.push_str(&fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let declared = declared();
    assert!(declared.len() > 50, "only {declared:?}");
    let forgotten: Vec<_> =
        declared.iter().filter(|name| !called.contains(&format!("{name}("))).collect();
    assert!(forgotten.is_empty(), "no program in tests/c calls {forgotten:?}");
}

#[test]
fn the_shared_library_exports_what_the_header_declares_and_no_more() {
    let mut nm = std::process::Command::new("nm");
    nm.args(["-g", "--defined-only"]);
    nm.arg(if cfg!(target_os = "macos") { "-U" } else { "-D" });
    let Ok(output) = nm.arg(&support::libraries().shared).output() else {
        eprintln!("LEFT OUT: there is no nm");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    let names = names.map(|name| name.trim_start_matches('_').to_owned());
    let exported: BTreeSet<String> = names.filter(|name| name.starts_with("esker_")).collect();
    assert_eq!(exported, declared());
}

/// Whether this compiler has AddressSanitizer with the check for leaks.
fn has_sanitizer() -> bool {
    if !has(Language::C99) || !cfg!(target_os = "linux") {
        return false;
    }
    let probe = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("probe.c");
    fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
    let mut command = std::process::Command::new(support::compiler(Language::C99));
    command.args(["-fsanitize=address", "-o"]).arg(probe.with_extension("out")).arg(&probe);
    let found = command.output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("LEFT OUT: the C compiler has no AddressSanitizer");
    }
    found
}

/// Handles of all kinds are made and freed; `ESKER_C_CYCLES` says how often. The sanitizer sees
/// each access out of bounds, each use after free that C does, and whatever is not freed.
#[test]
fn nothing_is_lost_or_used_after_free() {
    if !has_sanitizer() {
        return;
    }
    let cycles = std::env::var("ESKER_C_CYCLES").unwrap_or_else(|_| "20000".to_owned());
    let options = ["-fsanitize=address", "-fno-omit-frame-pointer"];
    for (name, more) in [
        ("cycles.c", vec![cycles.as_str()]),
        ("basics.c", vec![]),
        ("errors.c", vec![]),
        ("orders.c", vec![]),
        ("operators.c", vec![]),
        ("transactions.c", vec![]),
        ("branches.c", vec![]),
        ("ingestion.c", vec![]),
        ("streamed.c", vec![]),
        ("values.c", vec![]),
        ("interrupted.c", vec![]),
        ("counts.c", vec![]),
    ] {
        let program = compile(&source(name), Language::C99, Linked::Fixed, "asan", &options);
        let said = execute(&program, &more);
        assert!(said.contains(": ok"), "{said}");
        print!("{said}");
    }
}
