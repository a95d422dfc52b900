//! C programs against the library, as users build them. They need a C compiler. What compares with
//! LevelDB itself needs its headers and library (Debian: libleveldb-dev) and says so where they
//! are missing; `.ci/run` brings them.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// How many functions LevelDB 1.23 has in its C interface.
const FUNCTIONS: usize = 68;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The directory where cargo put the shared library that belongs to this test.
fn library_directory() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Where LevelDB's own header is, if it is installed.
fn stock_header() -> Option<PathBuf> {
    let path = PathBuf::from("/usr/include/leveldb/c.h");
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "LEFT OUT: LevelDB's own header is not here (Debian: apt-get install libleveldb-dev)"
    );
    None
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{text}\n{errors}", output.status);
    text
}

/// Compiles a program against our header and links it with our library.
fn compile(source: &Path, program: &Path) {
    let directory = library_directory();
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    compiler.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]).arg(include());
    compiler.arg(source).arg("-L").arg(&directory).arg("-lesker_leveldb");
    compiler.arg(format!("-Wl,-rpath,{}", directory.display())).arg("-o").arg(program);
    succeeds(&compiler.output().expect("a C compiler"));
}

/// The same against LevelDB's own header and library.
fn compile_stock(source: &Path, program: &Path) -> bool {
    if stock_header().is_none() {
        return false;
    }
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror"]).arg(source).arg("-lleveldb");
    succeeds(&compiler.arg("-o").arg(program).output().expect("a C compiler"));
    true
}

/// A compiled program. It finds the library that belongs to this test and no other: cargo names
/// directories to look in that may hold an older one.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library_directory()).env("RUST_BACKTRACE", "0");
    command
}

/// The tool, compiled once.
fn tool() -> &'static Path {
    static TOOL: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let make = || {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("tool");
        compile(&source("tool.c"), &program);
        (place, program)
    };
    &TOOL.get_or_init(make).1
}

/// What the tool prints, and whether it did what it was asked for.
fn run(program: &Path, arguments: &[&str], directory: &Path) -> (bool, String) {
    let mut command = command(program);
    command.arg(arguments[0]).arg(directory).args(&arguments[1..]);
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[track_caller]
fn does(arguments: &[&str], directory: &Path) -> String {
    let (done, text) = run(tool(), arguments, directory);
    assert!(done, "{arguments:?}: {text}");
    text
}

#[track_caller]
fn refuses(arguments: &[&str], directory: &Path) -> String {
    let (done, text) = run(tool(), arguments, directory);
    assert!(!done, "{arguments:?} went well: {text}");
    text
}

/// The names of the functions that a header declares.
fn functions(header: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(header).unwrap();
    let mut code = String::new();
    for (at, part) in text.split("/*").enumerate() {
        code.push_str(if at == 0 { part } else { part.split_once("*/").unwrap().1 });
    }
    let names = code.split('(').filter_map(|before| {
        let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        name.starts_with("leveldb_").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn every_function_of_the_header_is_exported() {
    let ours = functions(&include().join("leveldb/c.h"));
    assert_eq!(ours.len(), FUNCTIONS, "{ours:?}");
    if let Some(header) = stock_header() {
        assert_eq!(ours, functions(&header), "the headers differ");
    }
    let place = tempfile::tempdir().unwrap();
    let names: Vec<String> = ours.iter().map(|name| format!("(any){name}")).collect();
    let program = format!(
        "#include <leveldb/c.h>\n#include <stdio.h>\ntypedef void (*any)(void);\n\
         any volatile all[] = {{{}}};\nint main(void) {{\n\
         for (size_t i = 0; i < sizeof all / sizeof *all; i++) if (!all[i]) return 1;\n\
         return printf(\"%zu\\n\", sizeof all / sizeof *all) < 0;\n}}\n",
        names.join(", ")
    );
    fs::write(place.path().join("all.c"), program).unwrap();
    compile(&place.path().join("all.c"), &place.path().join("all"));
    let count = succeeds(&command(&place.path().join("all")).output().unwrap());
    assert_eq!(count.trim(), FUNCTIONS.to_string());
}

#[test]
fn our_header_declares_what_leveldbs_declares() {
    let Some(header) = stock_header() else { return };
    let place = tempfile::tempdir().unwrap();
    let ours = include().join("leveldb/c.h");
    // C accepts a second declaration only if its type is the same; C++ even checks more.
    let program = format!(
        "#include \"{}\"\n#undef STORAGE_LEVELDB_INCLUDE_C_H_\n\
         #define leveldb_no_compression ours_no\n#define leveldb_snappy_compression ours_snappy\n\
         #include \"{}\"\n\
         #undef leveldb_no_compression\n#undef leveldb_snappy_compression\n\
         _Static_assert((int)ours_no == (int)leveldb_no_compression, \"\");\n\
         _Static_assert((int)ours_snappy == (int)leveldb_snappy_compression, \"\");\n",
        header.display(),
        ours.display()
    );
    let check = |program: &str| {
        fs::write(place.path().join("both.c"), program).unwrap();
        let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
        compiler.args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only"]);
        compiler.arg(place.path().join("both.c")).output().unwrap()
    };
    succeeds(&check(&program));
    // The check can fail.
    let wrong = format!("{program}int leveldb_put(void);\n");
    assert!(!check(&wrong).status.success());
}

#[test]
fn the_interface_keeps_leveldbs_promises() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("program");
    compile(&source("conformance.c"), &program);
    let text = succeeds(&command(&program).arg(place.path()).output().unwrap());
    let checks: usize = text.split(" checks, 0 failed").next().unwrap().trim().parse().unwrap();
    assert!(checks > 20_000, "{text}");
}

/// The program that judges us must agree with LevelDB.
#[test]
fn leveldb_itself_keeps_the_same_promises() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("stock");
    if compile_stock(&source("conformance.c"), &program) {
        let text = succeeds(&command(&program).arg(place.path()).output().unwrap());
        assert!(text.contains(" checks, 0 failed"), "{text}");
    }
}

#[test]
fn wrong_calls_are_borne() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("program");
    compile(&source("misuse.c"), &program);
    let text = succeeds(&command(&program).arg(place.path()).output().unwrap());
    assert!(text.contains(" checks, 0 failed"), "{text}");
}

/// Every file below a directory with its bytes.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_of_leveldb_is_refused_with_the_way_to_import_it_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("theirs");
    let stock = place.path().join("stock");
    if compile_stock(&source("tool.c"), &stock) {
        assert_eq!(run(&stock, &["fill", "1000"], &dir), (true, String::new()));
    } else {
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("CURRENT"), "MANIFEST-000002\n").unwrap();
        fs::write(dir.join("MANIFEST-000002"), "of LevelDB").unwrap();
        fs::write(dir.join("000003.log"), "of LevelDB").unwrap();
    }
    let before = contents(&dir);
    for command in ["open", "create", "put", "repair", "destroy"] {
        let text = refuses(&[command, "k", "v"], &dir);
        assert!(text.starts_with("Invalid argument: "), "{command}: {text}");
        assert!(text.contains("LevelDB"), "{command}: {text}");
        if matches!(command, "open" | "create" | "put") {
            assert!(text.contains("esker import --from leveldb "), "{command}: {text}");
        }
        assert!(contents(&dir) == before, "{command} changed something");
    }
}

#[test]
fn a_damaged_database_is_repaired_in_place_and_kept_beside() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    does(&["fill", "20000"], &dir);
    let all = does(&["dump"], &dir);
    assert_eq!(all.lines().count(), 20_000);
    assert_eq!(does(&["repair"], &dir), "", "a whole database is left as it is");
    assert_eq!(does(&["dump"], &dir), all);
    let run_file = contents(&dir.join("data")).into_iter().max_by_key(|file| file.1.len()).unwrap();
    let (path, mut bytes) = run_file;
    bytes[10_000..10_200].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let text = refuses(&["dump"], &dir);
    assert!(text.contains("Corruption: "), "{}", text.lines().last().unwrap());
    does(&["repair"], &dir);
    let left = does(&["dump"], &dir);
    let missing = all.lines().filter(|line| !left.contains(line)).count();
    assert!(missing > 0 && missing < 2_000, "{missing} of the entries are lost");
    assert!(left.lines().all(|line| all.contains(line)));
    let names: BTreeSet<String> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["db".to_owned(), "db.damaged-1".to_owned()];
    assert_eq!(names, BTreeSet::from(expected));
    let text = refuses(&["repair"], &place.path().join("nothing"));
    assert!(text.contains("does not exist"), "{text}");
}

#[test]
fn rust_and_c_see_the_same_entries() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    let db = esker::Db::open(&dir).unwrap();
    db.insert("apple", "red").unwrap();
    db.close().unwrap();
    does(&["put", "pear", "green"], &dir);
    assert_eq!(does(&["dump"], &dir), "apple = red\npear = green\n");
    let db = esker::Db::open(&dir).unwrap();
    assert_eq!(db.get("pear").unwrap(), Some(b"green".to_vec()));
}

/// With everything that leaves files: keyspaces, branches, named snapshots, merges, several lives.
#[test]
fn destroying_removes_all_files_of_a_database_and_no_other() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    for life in 0..3 {
        let mut options = esker::Options::default();
        options.memtable_bytes = Some(1 << 16);
        options.log_file_bytes = 1 << 16;
        let db = esker::Db::open_with(&dir, options).unwrap();
        let keyspace = db.keyspace(&format!("keyspace {life}")).unwrap();
        for number in 0..3000 {
            db.insert(format!("{number}"), [life; 100]).unwrap();
            keyspace.insert(format!("{number}"), [life; 20]).unwrap();
        }
        let branch = db.branch(&format!("branch {life}")).unwrap();
        branch.insert("k", "v").unwrap();
        db.snapshot_named(&format!("snapshot {life}")).unwrap();
        db.checkpoint(place.path().join(format!("copy {life}"))).unwrap();
        db.compact().unwrap();
        db.close().unwrap();
    }
    does(&["destroy"], &dir);
    assert!(!dir.exists(), "something is left");
    // What was made of it is a database of its own.
    let copy = place.path().join("copy 2");
    assert_eq!(does(&["dump"], &copy).lines().count(), 3000);
    fs::write(copy.join("mine"), "keep").unwrap();
    fs::write(copy.join("data/mine"), "keep").unwrap();
    does(&["destroy"], &copy);
    let left: Vec<PathBuf> = contents(&copy).into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, [copy.join("data/mine"), copy.join("mine")]);
}
