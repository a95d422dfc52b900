//! Programs and test suites that others wrote for LevelDB, run unchanged on LevelDB's own library
//! and on ours. The first run judges the second: ours need not pass what LevelDB fails.
//!
//! Versions are pinned (`tests/clients`), and each client must run at least its known number of
//! tests or checks, so that a run of nothing does not pass.

use crate::dropin;
use crate::programs::{self, call, cc};
use crate::workspace::{Result, target};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's LevelDB, and what it is asked with.
const STOCK_HEADERS: &str = "/usr/include/leveldb/db.h";
/// Debian's Python, for which its packages are built.
const PYTHON: &str = "/usr/bin/python3";

/// The needs of a client besides a compiler.
struct Needs {
    what: &'static str,
    here: fn() -> bool,
}

const NOTHING: Needs = Needs { what: "", here: || true };
const GO: Needs = Needs { what: "Go", here: || answers("go", &["version"]) };
const PLYVEL: Needs = Needs {
    what: "plyvel (Debian: apt-get install python3-plyvel)",
    here: || answers(PYTHON, &["-c", "import plyvel"]),
};

/// A client: its name, how many tests or checks it has at least, and how it is run.
struct Client {
    name: &'static str,
    least: usize,
    needs: Needs,
    /// Says how many tests or checks passed; an error if one failed.
    run: fn(&Bench, &Library) -> Result<usize>,
}

const CLIENTS: &[Client] = &[
    Client {
        name: "conformance program, C, compiled for LevelDB",
        least: 22_187,
        needs: NOTHING,
        run: |bench, library| bench.checks(&bench.c_program("conformance")?, library),
    },
    Client {
        name: "tool like leveldbutil, C, compiled for LevelDB",
        least: 1_001,
        needs: NOTHING,
        run: tool,
    },
    Client {
        name: "program over all classes, C++, compiled for LevelDB",
        least: 16_120,
        needs: NOTHING,
        run: |bench, library| bench.checks(&bench.cxx_program("all_cxx")?, library),
    },
    Client {
        name: "plyvel 1.5.0, Debian's binary, all functions",
        least: 133,
        needs: PLYVEL,
        run: plyvel,
    },
    Client { name: "levigo 1.0.0, its tests, on the C half", least: 3, needs: GO, run: levigo },
    Client {
        name: "leveldb 0.8.6 for Rust, its tests, on the C half",
        least: 24,
        needs: NOTHING,
        run: leveldb_rs,
    },
];

/// A library that clients run on.
struct Library {
    name: &'static str,
    /// Where it is; `None`: where the system has LevelDB's.
    directory: Option<PathBuf>,
    /// The same without the C++ half.
    c_half: Option<PathBuf>,
}

/// Where clients are built and run.
struct Bench {
    workspace: PathBuf,
    /// Kept from run to run.
    target: PathBuf,
    /// Of this run.
    place: tempfile::TempDir,
}

/// Runs all clients, and prints the result of each.
pub(crate) fn run(workspace: &Path, all: bool) -> Result<()> {
    if !Path::new(STOCK_HEADERS).exists() {
        let what = "LevelDB itself is not here (Debian: apt-get install libleveldb-dev)";
        return if all { Err(what.to_owned()) } else { left_out("all clients", what) };
    }
    let libraries = [
        Library { name: "LevelDB", directory: None, c_half: None },
        Library {
            name: "Esker",
            directory: Some(dropin::run(workspace, false)?),
            c_half: Some(dropin::run(workspace, true)?),
        },
    ];
    let place = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let target = target(workspace).join("clients");
    fs::create_dir_all(&target).map_err(|e| format!("cannot make {target:?}: {e}"))?;
    let bench = Bench { workspace: workspace.to_owned(), target, place };
    let mut failed = Vec::new();
    let mut report = String::new();
    for client in CLIENTS {
        if !(client.needs.here)() {
            let what = format!("{} is not here", client.needs.what);
            if all {
                return Err(format!("{}: {what}", client.name));
            }
            left_out(client.name, &what)?;
            continue;
        }
        for library in &libraries {
            let found = match (client.run)(&bench, library) {
                Ok(passed) if passed >= client.least => format!("{passed} passed"),
                Ok(passed) => format!("FAILED: only {passed} of {} ran", client.least),
                Err(why) => format!("FAILED: {why}"),
            };
            if found.starts_with("FAILED") {
                failed.push(client.name);
            }
            let line = format!("{:53} {:8} {found}\n", client.name, library.name);
            print!("{line}");
            report.push_str(&line);
        }
    }
    symbols(&bench, &libraries[1])?;
    println!("\n{report}");
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join("; "))) }
}

fn left_out(what: &str, why: &str) -> Result<()> {
    println!("LEFT OUT: {what}: {why}");
    Ok(())
}

/// Whether a program is installed and runs with these arguments.
fn answers(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// The output of a command; an error if it fails.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}\n{text}{errors}", output.status))
}

/// The number of checks that a program reports; an error if it reports a failed one.
fn checks_in(text: &str) -> Result<usize> {
    let last = text.lines().last().unwrap_or_default();
    let count = last.strip_suffix(" checks, 0 failed").and_then(|count| count.parse().ok());
    count.ok_or_else(|| format!("it did not end well:\n{text}"))
}

impl Bench {
    /// A new directory.
    fn fresh(&self) -> Result<PathBuf> {
        for number in 0..u32::MAX {
            let path = self.place.path().join(format!("run-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("cannot make {path:?}: {error}")),
            }
        }
        Err("all names are taken".to_owned())
    }

    fn source(&self, name: &str) -> PathBuf {
        self.workspace.join("tests/clients").join(name)
    }

    /// A C program, compiled against LevelDB's header and linked with LevelDB's library.
    fn c_program(&self, name: &str) -> Result<PathBuf> {
        let directory = self.workspace.join("crates/esker-leveldb/tests/c");
        let program = self.target.join(name);
        let mut compiler = Command::new(cc());
        compiler.args(["-std=c11", "-O2"]).arg(directory.join(format!("{name}.c")));
        call(compiler.arg("-lleveldb").arg("-o").arg(&program))?;
        Ok(program)
    }

    /// The same in C++.
    fn cxx_program(&self, name: &str) -> Result<PathBuf> {
        let program = self.target.join(name);
        let mut compiler = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        compiler.args(["-std=c++17", "-O2"]).arg(self.source(&format!("{name}.cc")));
        call(compiler.args(["-lleveldb", "-lpthread"]).arg("-o").arg(&program))?;
        Ok(program)
    }

    /// The checks of a program that is given a directory.
    fn checks(&self, program: &Path, library: &Library) -> Result<usize> {
        let mut command = library.command(program)?;
        checks_in(&output(command.arg(self.fresh()?))?)
    }
}

impl Library {
    /// A program that runs on this library; an error if it would run on another.
    fn command(&self, program: &Path) -> Result<Command> {
        self.command_in(program, self.directory.as_deref())
    }

    /// The same on the C half.
    fn command_c(&self, program: &Path) -> Result<Command> {
        self.command_in(program, self.c_half.as_deref())
    }

    fn command_in(&self, program: &Path, directory: Option<&Path>) -> Result<Command> {
        let mut command = Command::new(program);
        match directory {
            Some(directory) => command.env("LD_LIBRARY_PATH", directory),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
        let mut tracer = Command::new(program);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => tracer.env(name, value),
                None => tracer.env_remove(name),
            };
        }
        // The loader then tells what it would load, and runs nothing.
        let loaded = output(tracer.env("LD_TRACE_LOADED_OBJECTS", "1"))?;
        let line = loaded.lines().find(|line| line.contains("libleveldb.so.1d"));
        let line = line.ok_or_else(|| format!("{} loads no LevelDB", program.display()))?;
        let right = match directory {
            Some(directory) => line.contains(&*directory.to_string_lossy()),
            None => !line.contains("leveldb-dropin"),
        };
        if right { Ok(command) } else { Err(format!("the wrong library: {line}")) }
    }
}

fn tool(bench: &Bench, library: &Library) -> Result<usize> {
    let program = bench.c_program("tool")?;
    let directory = bench.fresh()?.join("db");
    let step = |name: &str, arguments: &[&str]| {
        output(library.command(&program)?.arg(name).arg(&directory).args(arguments))
    };
    step("fill", &["1000"])?;
    step("put", &["key", "value"])?;
    if step("get", &["key"])? != "value\n" {
        return Err("a value that was put is not found".to_owned());
    }
    let dump = step("dump", &[])?;
    step("destroy", &[])?;
    if directory.exists() {
        return Err("something is left after the database was destroyed".to_owned());
    }
    step("put", &["key", "value"])?;
    step("repair", &[])?;
    if step("dump", &[])? != "key = value\n" {
        return Err("the repair lost something".to_owned());
    }
    Ok(dump.lines().count())
}

fn plyvel(bench: &Bench, library: &Library) -> Result<usize> {
    let mut command = Command::new(PYTHON);
    match &library.directory {
        Some(directory) => command.env("LD_LIBRARY_PATH", directory),
        None => command.env_remove("LD_LIBRARY_PATH"),
    };
    let text = output(command.arg(bench.source("plyvel_all.py")).arg(bench.fresh()?))?;
    // It says itself on which library it ran.
    let ours = text.contains("leveldb-dropin/libleveldb.so.1d");
    if ours != library.directory.is_some() {
        return Err(format!("the wrong library:\n{text}"));
    }
    checks_in(&text)
}

fn levigo(bench: &Bench, library: &Library) -> Result<usize> {
    let program = bench.target.join(format!("levigo-{}", library.name));
    let mut build = Command::new("go");
    build.current_dir(bench.source("levigo")).args(["test", "-c", "-o"]).arg(&program);
    if let Some(directory) = &library.c_half {
        let mut flags = OsString::from("-L");
        flags.push(directory);
        build.env("CGO_LDFLAGS", flags);
        let headers = bench.workspace.join("crates/esker-leveldb/include");
        build.env("CGO_CFLAGS", format!("-I{}", headers.display()));
    }
    call(build.arg("github.com/jmhodges/levigo"))?;
    let text = output(library.command_c(&program)?.args(["-test.v"]))?;
    Ok(text.lines().filter(|line| line.starts_with("--- PASS: ")).count())
}

fn leveldb_rs(bench: &Bench, library: &Library) -> Result<usize> {
    let source = fetched(bench)?;
    // Tests run only in a package of one's own, so it is copied out of the registry's directory,
    // to where no workspace is above it.
    let copy = bench.fresh()?;
    copy_all(&source, &copy)?;
    let lock = bench.source("leveldb-rs/tests.lock");
    fs::copy(&lock, copy.join("Cargo.lock")).map_err(|e| format!("cannot copy {lock:?}: {e}"))?;
    let mut build = cargo();
    build.current_dir(&copy).args(["test", "--quiet", "--locked", "--no-run", "--test", "tests"]);
    build.arg("--message-format=json-render-diagnostics").env("RUSTFLAGS", "-Awarnings");
    build.env("CARGO_TARGET_DIR", bench.target.join(format!("leveldb-rs-{}", library.name)));
    let directory = library.c_half.clone().unwrap_or_else(|| PathBuf::from("/usr/lib"));
    let config = copy.join("as-printed.toml");
    fs::write(&config, link_config(&bench.workspace, &host()?, &directory)?)
        .map_err(|e| format!("cannot write {config:?}: {e}"))?;
    build.arg("--config").arg(&config);
    let messages = output(&mut build)?;
    let program =
        messages.split("\"executable\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let program = program.ok_or("cargo named no program of the tests")?;
    let text = output(&mut library.command_c(Path::new(program))?)?;
    let result = text.split("test result: ok. ").nth(1).unwrap_or_default();
    let passed = result.split(" passed; 0 failed;").next().and_then(|count| count.parse().ok());
    passed.ok_or_else(|| format!("it did not end well:\n{text}"))
}

/// What `docs/leveldb.md` tells users of the crate to tell cargo, for this target and this library: it stands in place of the
/// build script of `leveldb-sys`, which compiles a LevelDB of its own.
fn link_config(workspace: &Path, host: &str, directory: &Path) -> Result<String> {
    let page = workspace.join("docs/leveldb.md");
    let page = fs::read_to_string(&page).map_err(|e| format!("cannot read {page:?}: {e}"))?;
    let block = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.ok_or("docs/leveldb.md has no configuration of cargo")?;
    let printed = ["x86_64-unknown-linux-gnu", "/home/me/esker/target/leveldb-dropin/c"];
    if let Some(missing) = printed.iter().find(|part| !block.contains(*part)) {
        return Err(format!("the configuration in docs/leveldb.md does not name {missing}"));
    }
    Ok(block.replace(printed[0], host).replace(printed[1], &directory.to_string_lossy()))
}

fn cargo() -> Command {
    let mut command = programs::cargo();
    // What cargo tells this program about this workspace is not for that one.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") {
            command.env_remove(name);
        }
    }
    command
}

/// Where the registry's copy of the crate is.
fn fetched(bench: &Bench) -> Result<PathBuf> {
    let pin = bench.source("leveldb-rs/Cargo.toml");
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]);
    let text = output(metadata.arg(pin))?;
    let end = "/leveldb-0.8.6/Cargo.toml";
    let path = text.split('"').find(|part| part.ends_with(end));
    let path = path.ok_or("cargo did not fetch leveldb 0.8.6")?;
    Ok(PathBuf::from(path.trim_end_matches("/Cargo.toml")))
}

/// The target that this machine is.
fn host() -> Result<String> {
    let text = output(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not name its host".to_owned())
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    let failed = |error: std::io::Error| format!("cannot copy {}: {error}", from.display());
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            fs::create_dir_all(&target).map_err(failed)?;
            copy_all(&path, &target)?;
        } else {
            fs::copy(&path, &target).map_err(failed)?;
        }
    }
    Ok(())
}

/// Compares the names that both libraries show: what ours leaves out is listed and explained.
fn symbols(bench: &Bench, ours: &Library) -> Result<()> {
    let names = |library: &Path| -> Result<BTreeSet<String>> {
        let mut nm = Command::new("nm");
        let text = output(nm.args(["-D", "--defined-only", "-C"]).arg(library))?;
        let name = |line: &str| line.splitn(3, ' ').nth(2).map(str::to_owned);
        let of_leveldb = |name: &String| {
            name.starts_with("leveldb")
                || (name.contains("leveldb::") && !name.contains("std::vec"))
        };
        Ok(text.lines().filter_map(name).filter(of_leveldb).collect())
    };
    let linked = output(Command::new(cc()).arg("-print-file-name=libleveldb.so.1d"))?;
    let stock = fs::canonicalize(linked.trim())
        .map_err(|e| format!("cannot find LevelDB's library ({}): {e}", linked.trim()))?;
    let directory = ours.directory.as_deref().ok_or("our library has no directory")?;
    let (stock, ours) = (names(&stock)?, names(&directory.join("libleveldb.so.1d"))?);
    let list = bench.source("left-out.txt");
    let known = fs::read_to_string(&list).map_err(|e| format!("cannot read {list:?}: {e}"))?;
    let known = known.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    let left_out: BTreeSet<String> = stock.difference(&ours).cloned().collect();
    println!("{} names of LevelDB's, {} of them left out", stock.len(), left_out.len());
    let differ: Vec<&String> = left_out.symmetric_difference(&known).collect();
    if differ.is_empty() {
        return Ok(());
    }
    Err(format!("{} and what is left out differ: {differ:#?}", list.display()))
}
