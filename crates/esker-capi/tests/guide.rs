//! The program that the guide begins with runs as it is printed there.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Language, Linked, compile, compile_by, execute, has};

/// The first block in this language.
fn block<'a>(guide: &'a str, language: &str) -> &'a str {
    let (_, rest) = guide.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_first_program_of_the_guide_runs_as_printed() {
    if !has(Language::C99) {
        return;
    }
    let guide = fs::read_to_string(support::workspace().join("docs/c.md")).unwrap();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide.c");
    fs::write(&source, block(&guide, "c")).unwrap();
    let program = compile(&source, Language::C99, Linked::Shared, "guide", &[]);
    assert_eq!(execute(&program, &[]), block(&guide, "text"));
}

#[test]
fn the_second_program_of_the_guide_stores_a_file() {
    if !has(Language::C99) {
        return;
    }
    let guide = fs::read_to_string(support::workspace().join("docs/c.md")).unwrap();
    let (_, second) = guide.split_once("```c\n").unwrap().1.split_once("```c\n").unwrap();
    // A function, and the call that hands it over.
    let (function, call) = second.split_once("```").unwrap().0.split_once("\n\n").unwrap();
    let program = format!(
        r#"#include "esker.h"
#include <errno.h>
#include <stdio.h>

{function}

int main(void) {{
  esker_error *error;
  esker_db *db;
  esker_keyspace *images;
  esker_value *value;
  size_t len;
  FILE *file = fopen("an-image", "w+");
  if (file == NULL || fputs("what the disk holds", file) < 0) return 2;
  rewind(file);
  if (esker_open("my-database", ESKER_NUL, NULL, &db, &error) != ESKER_OK) return 3;
  if (esker_keyspace_open(db, "images", ESKER_NUL, NULL, &images, &error) != ESKER_OK) return 4;
  {call}
  if (error != NULL) return 5;
  if (esker_get(images, "disk.img", 8, &value, &error) != ESKER_OK || value == NULL) return 6;
  printf("%s\n", (const char *)esker_value_data(value, &len));
  esker_value_free(value);
  esker_keyspace_free(images);
  if (esker_close(db, &error) != ESKER_OK) return 7;
  esker_db_free(db);
  return fclose(file);
}}
"#
    );
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("second.c");
    fs::write(&source, program).unwrap();
    let program = compile(&source, Language::C99, Linked::Shared, "second", &[]);
    assert_eq!(execute(&program, &[]), "what the disk holds\n");
}

#[test]
fn the_third_program_of_the_guide_ends_a_compaction_when_it_gets_a_signal() {
    if !has(Language::C99) {
        return;
    }
    let guide = fs::read_to_string(support::workspace().join("docs/c.md")).unwrap();
    let third = guide.split("```c\n").nth(3).unwrap().split("```").next().unwrap();
    let (function, call) = third.rsplit_once("\n\n").unwrap();
    let program = format!(
        r#"#include "esker.h"
#include <signal.h>
#include <stdio.h>

{function}

static void handler(int signal) {{
  (void)signal;
  ended = 1;
}}

int main(void) {{
  esker_error *error;
  esker_db *db;
  esker_keyspace *all;
  if (esker_open("my-database", ESKER_NUL, NULL, &db, &error) != ESKER_OK) return 2;
  if (esker_keyspace_open(db, "all", ESKER_NUL, NULL, &all, &error) != ESKER_OK) return 3;
  if (esker_put(all, "k", 1, "v", 1, ESKER_DURABILITY_DEFAULT, &error) != ESKER_OK) return 4;
  signal(SIGINT, handler);
  raise(SIGINT);
  {call}
  puts(error != NULL ? "ended" : "compacted");
  esker_keyspace_free(all);
  if (esker_close(db, &error) != ESKER_OK) return 5;
  esker_db_free(db);
  return 0;
}}
"#
    );
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("third.c");
    fs::write(&source, program).unwrap();
    let program = compile(&source, Language::C99, Linked::Shared, "third", &[]);
    assert_eq!(execute(&program, &[]), "ended\n");
}

/// What a program says where it fails, with a file in the place of its directory or not.
fn failure_of(program: &Path, blocked: bool) -> String {
    let directory = tempfile::tempdir().unwrap();
    if blocked {
        fs::write(directory.path().join("my-database"), "a file").unwrap();
    }
    let failed = Command::new(program).current_dir(directory.path()).output().unwrap();
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    said
}

#[test]
fn where_the_first_program_fails_it_says_why_whatever_compiles_it() {
    let guide = fs::read_to_string(support::workspace().join("docs/c.md")).unwrap();
    let program = block(&guide, "c");
    // The same program with a key that is longer than a key may be.
    let put = "  put(people, \"ann\", \"engineer\");\n";
    assert!(program.contains(put));
    let long = program.replace(
        put,
        "  static char long_key[70001];\n  memset(long_key, 'k', 70000);\n  put(people, long_key, \"v\");\n",
    );
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (first, long_key) = (directory.join("first.c"), directory.join("long_key.c"));
    fs::write(&first, program).unwrap();
    fs::write(&long_key, long).unwrap();
    for compiler in ["gcc", "clang"].into_iter().filter(|compiler| support::is_there(compiler)) {
        for level in ["-O0", "-O2"] {
            let tag = format!("{compiler}{level}");
            let compiled = |source| {
                compile_by(compiler, source, Language::C99, Linked::Shared, &tag, &[level])
            };
            let said = failure_of(&compiled(&first), true);
            assert!(said.contains("my-database"), "{tag}: {said}");
            let said = failure_of(&compiled(&long_key), false);
            let told = said.contains("key-too-long") && said.contains("70000");
            assert!(told && said.contains("65535"), "{tag}: {said}");
        }
    }
}
