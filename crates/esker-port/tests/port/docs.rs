//! The program in `docs/import.md` is the example that stands in this crate, and runs.

use std::path::Path;

#[path = "../../examples/import.rs"]
#[allow(dead_code, reason = "its `main` is called when it is run as a program")]
mod program;

#[test]
fn the_program_of_the_page_runs_as_printed() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(own.join("../../docs/import.md")).unwrap();
    let (_, rest) = page.split_once("```rust\n").unwrap();
    let printed = rest.split_once("```").unwrap().0;
    assert_eq!(printed, std::fs::read_to_string(own.join("examples/import.rs")).unwrap());
    let place = tempfile::tempdir().unwrap();
    let old = own.join("tests/fixtures/leveldb/db");
    program::import(&old, &place.path().join("new")).unwrap();
    let db = esker::Db::open(place.path().join("new")).unwrap();
    let keyspace = db.keyspace("backwards").unwrap();
    assert!(keyspace.first_key_value().unwrap().is_some());
}
