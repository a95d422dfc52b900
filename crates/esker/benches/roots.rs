//! What a checkpoint, a branch and a named snapshot of a large database cost: time, and bytes on
//! disk.
//!
//! `cargo bench -p esker --bench roots -- DIR [GIB]` fills DIR (which must not exist) with
//! so many GiB of entries of 16 + 400 bytes that do not compress, and prints a line for each.

use esker_testkit::files::disk_bytes;
use esker_testkit::mix;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn insert(db: &esker::Db, number: u64) -> esker::Result<()> {
    let key = [mix(number).to_be_bytes(), number.to_be_bytes()].concat();
    let value: Vec<u8> = (0..50).flat_map(|i| mix(number * 50 + i).to_le_bytes()).collect();
    db.insert(key, value)
}

fn measure(
    what: &str,
    path: &Path,
    run: impl FnOnce() -> esker::Result<()>,
) -> Result<(), Box<dyn std::error::Error>> {
    let before = disk_bytes(path)?;
    let begun = Instant::now();
    run()?;
    let took = begun.elapsed();
    let grown = disk_bytes(path)?.saturating_sub(before);
    println!("{what}: {:.1} ms, {grown} bytes more on disk", took.as_secs_f64() * 1000.0);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let directory = PathBuf::from(arguments.next().ok_or("usage: roots DIR [GIB]")?);
    let gib: f64 = arguments.next().map_or(Ok(1.0), |gib| gib.parse())?;
    let mut options = esker::Options::default();
    options.error_if_exists = true;
    let db = esker::Db::open_with(&directory, options)?;
    let entries = (gib * f64::from(1 << 30) / 416.0) as u64;
    for number in 0..entries {
        insert(&db, number)?;
    }
    db.flush()?;
    db.wait_until_idle()?;
    println!("{entries} entries, {} bytes on disk", disk_bytes(&directory)?);
    // Some of it in memory, as it is in life.
    for number in entries..entries + 20_000 {
        insert(&db, number)?;
    }
    let mut branch = None;
    measure("branch", &directory, || {
        branch = Some(db.branch("trial")?);
        Ok(())
    })?;
    measure("branch again, with nothing in memory", &directory, || db.branch("again").map(drop))?;
    for number in 0..20_000 {
        insert(&db, number)?;
    }
    measure("named snapshot", &directory, || db.snapshot_named("kept"))?;
    measure("drop of a branch", &directory, || db.drop_branch("again").map(drop))?;
    let checkpoint = directory.with_extension("checkpoint");
    db.wait_until_idle()?;
    measure("checkpoint, with nothing in memory", &directory, || db.checkpoint(&checkpoint))?;
    println!(
        "run files of the checkpoint: {}",
        std::fs::read_dir(checkpoint.join("data"))?.count()
    );
    std::fs::remove_dir_all(&checkpoint)?;
    for number in 0..20_000 {
        insert(&db, number)?;
    }
    measure("checkpoint, with a flush", &directory, || db.checkpoint(&checkpoint))?;
    drop(branch);
    db.close()?;
    let begun = Instant::now();
    drop(esker::Db::open(&directory)?);
    println!("open and close: {:.1} ms", begun.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}
