//! The cost of LevelDB's C interface on Esker: one C program over `leveldb/c.h`, on LevelDB and on
//! Esker, and the same work in Rust through Esker's own interface, in turns.

use crate::dropin;
use crate::programs::{call, cargo, cc};
use crate::workspace::{Result, target};
use std::path::Path;
use std::process::Command;

const WORK: [&str; 3] = ["put", "get", "seek+10"];

/// Who does the work, in this order in each round.
const RUNNERS: [&str; 3] = ["LevelDB, C", "Esker, C", "Esker, Rust"];

/// Nanoseconds per operation: of each runner, of each kind of work, one for each round.
type Times = [[Vec<f64>; WORK.len()]; RUNNERS.len()];

/// Measures and prints.
pub(crate) fn run(workspace: &Path, entries: u64, reads: u64, rounds: usize) -> Result<()> {
    let library = dropin::run(workspace, true)?;
    let target = target(workspace);
    let program = target.join("leveldb-dropin/bench");
    let mut compiler = Command::new(cc());
    compiler.args(["-std=c11", "-O2"]).arg(workspace.join("tests/clients/bench.c"));
    call(compiler.arg("-lleveldb").arg("-o").arg(&program))?;
    call(&mut twin(workspace, "--no-run"))?;
    let mut times = Times::default();
    for round in 1..=rounds.max(1) {
        for (runner, of_runner) in times.iter_mut().enumerate() {
            let place = tempfile::tempdir_in(&target)
                .map_err(|e| format!("cannot make a directory: {e}"))?;
            let mut command = match runner {
                2 => twin(workspace, "--"),
                _ => Command::new(&program),
            };
            command.arg(place.path().join("db"));
            command.args([entries, reads, reads].map(|count| count.to_string()));
            match runner {
                1 => command.env("LD_LIBRARY_PATH", &library),
                _ => command.env_remove("LD_LIBRARY_PATH"),
            };
            let found = measure(&mut command)?;
            println!("round {round}, {:12} {found:?} ns", RUNNERS[runner]);
            for (all, one) in of_runner.iter_mut().zip(found) {
                all.push(one);
            }
        }
    }
    print(&times);
    Ok(())
}

/// The same work in Rust: cargo builds it (`--no-run`), or runs it with what follows (`--`).
fn twin(workspace: &Path, last: &str) -> Command {
    let mut bench = cargo();
    bench.current_dir(workspace).args(["bench", "--quiet", "--package", "esker-leveldb"]);
    bench.args(["--bench", "puts_gets_seeks", last]);
    bench
}

/// What a runner prints, in the order of the kinds of work.
fn measure(command: &mut Command) -> Result<[f64; WORK.len()]> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let of = |work: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(work));
        line.and_then(|rest| rest.trim().parse().ok())
    };
    match WORK.map(of) {
        [Some(put), Some(get), Some(seek)] if output.status.success() => Ok([put, get, seek]),
        _ => Err(format!("{name}: {}\n{text}{errors}", output.status)),
    }
}

/// The one in the middle, of an even number the upper of two; not a number if there is none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The medians, and the medians of the ratios of runs that stood side by side.
fn print(times: &Times) {
    println!(
        "\n{:8} {:>12} {:>12} {:>12}   C / Rust   LevelDB / Esker",
        "ns", RUNNERS[0], RUNNERS[1], RUNNERS[2]
    );
    for (at, work) in WORK.iter().enumerate() {
        let of = |runner: usize| times[runner][at].iter().copied();
        let ratio = |a: usize, b: usize| median(of(a).zip(of(b)).map(|(a, b)| a / b));
        println!(
            "{work:8} {:12.1} {:12.1} {:12.1} {:10.3} {:17.3}",
            median(of(0)),
            median(of(1)),
            median(of(2)),
            ratio(1, 2),
            ratio(0, 1)
        );
    }
}
