//! How fast `esker import` imports a LevelDB directory: LevelDB makes one, the program imports it
//! several times into new databases.

use crate::programs::{call, cargo, cc};
use crate::workspace::{Result, target};
use std::path::Path;
use std::process::Command;

/// Measures and prints.
pub(crate) fn run(workspace: &Path, entries: u64, rounds: usize) -> Result<()> {
    let target = target(workspace);
    let place =
        tempfile::tempdir_in(&target).map_err(|e| format!("cannot make a directory: {e}"))?;
    let (program, source) = (place.path().join("import_source"), place.path().join("leveldb"));
    let mut compiler = Command::new(cc());
    compiler.args(["-std=gnu11", "-O2"]).arg(workspace.join("tests/clients/import_source.c"));
    call(compiler.arg("-lleveldb").arg("-o").arg(&program))?;
    let mut build = cargo();
    call(build.current_dir(workspace).args(["build", "--quiet", "--release", "-p", "esker-cli"]))?;
    call(Command::new(&program).arg(&source).arg(entries.to_string()))?;
    let mut rates = Vec::new();
    for round in 1..=rounds.max(1) {
        let to = place.path().join("db");
        let mut import = Command::new(target.join("release/esker"));
        import.args(["import", "--json", "--from", "leveldb"]).arg(&source).arg("--to").arg(&to);
        let output = import.output().map_err(|e| format!("cannot run esker: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let read = number(&text, "entries").zip(number(&text, "seconds"));
        let Some((read, seconds)) = read.filter(|(read, _)| *read == entries as f64) else {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the import failed: {text}{errors}"));
        };
        rates.push(read / seconds);
        println!("round {round}: {seconds:.2} s, {:.0} entries/s", read / seconds);
        std::fs::remove_dir_all(&to).map_err(|e| format!("cannot remove {}: {e}", to.display()))?;
    }
    rates.sort_by(f64::total_cmp);
    let (least, most) = (rates.first(), rates.last());
    let median = rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN);
    println!(
        "median {median:.0} entries/s ({:.0} to {:.0}), read back included",
        least.copied().unwrap_or(f64::NAN),
        most.copied().unwrap_or(f64::NAN)
    );
    Ok(())
}

/// A number of the program's report, which is one object of plain fields.
fn number(report: &str, field: &str) -> Option<f64> {
    let rest = report.split_once(&format!("\"{field}\":"))?.1;
    rest.split([',', '}']).next()?.trim().parse().ok()
}
