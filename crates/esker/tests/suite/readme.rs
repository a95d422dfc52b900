//! The program in the README is the one in `examples/`, and it runs.

use std::path::Path;

#[path = "../../examples/first.rs"]
mod first;

#[test]
fn the_readme_shows_the_first_program_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("../../README.md")).unwrap();
    let program = std::fs::read_to_string(root.join("examples/first.rs")).unwrap();
    let (_, program) = program.split_once("\n\n").unwrap();
    assert!(readme.contains(&program.replace("pub(crate) fn main", "fn main")));
}

#[test]
fn the_first_program_runs() {
    let directory = tempfile::tempdir().unwrap();
    std::env::set_current_dir(directory.path()).unwrap();
    first::main().unwrap();
    // It may be run again, on the database that it left.
    first::main().unwrap();
}
