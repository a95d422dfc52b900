//! What Esker costs a program that uses it, beside two other stores written in Rust: crates to
//! compile, the time of a first build, and the size of the program.
//!
//! Each store gets a project outside the workspace with the program of `tests/footprint` and the
//! release profile of cargo. What is to be downloaded is there before a build begins.

#[cfg(test)]
mod tests;

use crate::dropin;
use crate::leveldb_bench::median;
use crate::programs::{call, cargo};
use crate::workspace::{Result, target};
use clap::Args;
use comfy_table::Table;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A store: its name, and how a project depends on it. The versions are those of the benchmark.
const STORES: [(&str, &str); 4] =
    [("nothing", ""), ("esker", ""), ("redb", "redb = \"4.5\""), ("fjall", "fjall = \"3\"")];

#[derive(Debug, Args)]
pub(crate) struct Footprint {
    /// How often each project is built from nothing; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Processes that a build may use; all processors if not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Prints JSON in place of the table.
    #[arg(long)]
    json: bool,
    /// Also makes LevelDB's drop-in library, and says how large it is without debug information.
    #[arg(long)]
    dropin: bool,
}

/// What a store costs.
struct Cost {
    store: &'static str,
    version: String,
    /// Packages that a build compiles, without the program itself.
    packages: usize,
    /// Seconds of each build from nothing.
    builds: Vec<f64>,
    /// Bytes of the program, without symbols.
    size: u64,
}

/// Measures and prints.
pub(crate) fn run(workspace: &Path, asked: &Footprint) -> Result<()> {
    let place = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let mut costs = Vec::new();
    for (store, dependency) in STORES {
        let directory = place.path().join(store);
        make(workspace, store, dependency, &directory)?;
        costs.push(prepare(store, &directory)?);
    }
    // In turns, so that a machine that gets slower is slower for all.
    for _ in 0..asked.rounds.max(1) {
        for cost in &mut costs {
            build(&place.path().join(cost.store), asked.jobs, cost)?;
        }
    }
    let library = if asked.dropin { Some(library(workspace)?) } else { None };
    if asked.json {
        println!("{}", report(&costs, library));
    } else {
        print(&costs, library);
    }
    Ok(())
}

/// Writes the project.
fn make(workspace: &Path, store: &str, dependency: &str, directory: &Path) -> Result<()> {
    let esker = workspace.join("crates/esker");
    let dependency = match store {
        // A literal string of TOML, in which nothing has to be escaped.
        "esker" => format!("esker = {{ path = '{}' }}", esker.display()),
        _ => dependency.to_owned(),
    };
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{dependency}\n\n[profile.release]\nstrip = true\n\n[workspace]\n"
    );
    let failed = |e| format!("cannot make the project in {}: {e}", directory.display());
    fs::create_dir_all(directory.join("src")).map_err(failed)?;
    fs::write(directory.join("Cargo.toml"), manifest).map_err(failed)?;
    let program = workspace.join(format!("tests/footprint/{store}.rs"));
    fs::copy(&program, directory.join("src/main.rs")).map_err(failed)?;
    Ok(())
}

/// Downloads what the project needs, and looks at what that is.
fn prepare(store: &'static str, directory: &Path) -> Result<Cost> {
    call(cargo().current_dir(directory).args(["fetch", "--quiet"]))?;
    let mut tree = cargo();
    tree.current_dir(directory).args(["tree", "--offline", "--prefix", "none", "--no-dedupe"]);
    let output = tree
        .args(["--edges", "normal,build", "--format", "{p}"])
        .output()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let (version, packages) = packages(store, &listed);
    if packages == 0 && store != "nothing" {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(Cost { store, version, packages, builds: Vec::new(), size: 0 })
}

/// The version of the store, and how many packages there are besides the program: from the lines
/// of `cargo tree`, the first of which is the program.
fn packages(store: &str, listed: &str) -> (String, usize) {
    let mut names: Vec<&str> = listed.lines().skip(1).filter(|line| !line.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let version = names.iter().find_map(|name| name.strip_prefix(&format!("{store} v")));
    let version = version.and_then(|rest| rest.split(' ').next()).unwrap_or("–");
    (version.to_owned(), names.len())
}

/// Builds the project from nothing, runs it, and notes what it cost.
fn build(directory: &Path, jobs: Option<usize>, cost: &mut Cost) -> Result<()> {
    let made = directory.join("target");
    if made.exists() {
        fs::remove_dir_all(&made).map_err(|e| format!("cannot remove {}: {e}", made.display()))?;
    }
    let mut command = cargo();
    command.current_dir(directory).args(["build", "--release", "--quiet", "--offline"]);
    command.arg("--target-dir").arg(&made);
    if let Some(jobs) = jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    // The settings of the workspace are not those of the project.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PROFILE_") || text == "RUSTFLAGS" {
            command.env_remove(&name);
        }
    }
    let start = Instant::now();
    call(&mut command)?;
    cost.builds.push(start.elapsed().as_secs_f64());
    let program = made.join("release").join(format!("program{}", std::env::consts::EXE_SUFFIX));
    cost.size = size(&program)?;
    let mut used = Command::new(&program);
    let output = used
        .arg(directory.join("data"))
        .output()
        .map_err(|e| format!("cannot run {}: {e}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the program of {}: {}: {said}", cost.store, output.status));
    }
    Ok(())
}

fn size(path: &Path) -> Result<u64> {
    let found = fs::metadata(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    Ok(found.len())
}

/// The bytes of LevelDB's drop-in library without what only debuggers read.
fn library(workspace: &Path) -> Result<u64> {
    let directory = dropin::run(workspace, false)?;
    let stripped = target(workspace).join("leveldb-dropin/stripped.so");
    let mut strip = Command::new("strip");
    strip.arg("--strip-unneeded").arg("-o").arg(&stripped);
    call(strip.arg(directory.join("libleveldb.so")))?;
    size(&stripped)
}

fn report(costs: &[Cost], library: Option<u64>) -> Value {
    let stores: Vec<Value> = costs
        .iter()
        .map(|cost| {
            json!({
                "store": cost.store,
                "version": cost.version,
                "packages": cost.packages,
                "build_seconds": cost.builds,
                "build_seconds_median": median(cost.builds.iter().copied()),
                "program_bytes": cost.size,
            })
        })
        .collect();
    json!({ "stores": stores, "leveldb_dropin_bytes": library })
}

fn print(costs: &[Cost], library: Option<u64>) {
    let mut table = Table::new();
    table.set_header(["store", "version", "packages", "first build, s", "all builds", "KiB"]);
    for cost in costs {
        let builds: Vec<String> = cost.builds.iter().map(|took| format!("{took:.1}")).collect();
        table.add_row([
            cost.store.to_owned(),
            cost.version.clone(),
            cost.packages.to_string(),
            format!("{:.1}", median(cost.builds.iter().copied())),
            builds.join(" "),
            (cost.size / 1024).to_string(),
        ]);
    }
    println!("{table}");
    if let Some(bytes) = library {
        println!("LevelDB's drop-in library, without symbols: {} KiB", bytes / 1024);
    }
}
