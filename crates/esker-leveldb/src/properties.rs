//! Properties: LevelDB's questions about a database, answered by Esker.
//!
//! Esker has no levels. Level 0 stands for the deltas, which are new and overlap, and level 1 for
//! the bases, which hold most data; a "file" is a run segment of about 1 MiB.

use crate::handles::leveldb_t;
use crate::status::Result;
use esker::SegmentShape;
use std::fmt::Write;

/// Levels of LevelDB.
const LEVELS: usize = 7;
/// Those that are not always empty.
const LEVELS_USED: usize = 2;

/// The value of a property; `None` if there is none of that name.
pub(crate) fn value(db: &leveldb_t, name: &str) -> Result<Option<String>> {
    let Some(name) = name.strip_prefix("leveldb.") else { return Ok(None) };
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let digits = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
        let level = level.parse().ok().filter(|level: &usize| digits && *level < LEVELS);
        let Some(level) = level else { return Ok(None) };
        let segments = db.entries.segments()?;
        let count = segments.iter().filter(|segment| level_of(segment) == level).count();
        return Ok(Some(count.to_string()));
    }
    match name {
        "stats" => stats(db).map(Some),
        "sstables" => Ok(Some(sstables(&db.entries.segments()?))),
        "approximate-memory-usage" => {
            let memory = db.db.stats().memory;
            Ok(Some(memory.total().to_string()))
        }
        _ => Ok(None),
    }
}

fn level_of(segment: &SegmentShape) -> usize {
    usize::from(segment.age == 0)
}

/// LevelDB's table of levels, and Esker's own counters.
fn stats(db: &leveldb_t) -> Result<String> {
    let segments = db.entries.segments()?;
    let stats = db.db.stats();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut text = String::from(
        "                               Compactions\n\
         Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
         --------------------------------------------------\n",
    );
    for level in 0..LEVELS_USED {
        let of_level = || segments.iter().filter(|segment| level_of(segment) == level);
        let bytes: u64 = of_level().map(|segment| segment.bytes).sum();
        let written = if level == 0 { stats.written.flush } else { stats.written.compaction };
        if bytes > 0 || written > 0 {
            let (files, size, written) = (of_level().count(), mib(bytes), mib(written));
            // Esker does not time its compactions.
            let _ = writeln!(
                text,
                "{level:3} {files:8} {size:8.0} {:9.0} {:8.0} {written:9.0}",
                0.0, 0.0
            );
        }
    }
    let _ = writeln!(
        text,
        "Esker {}: {} puts, {} deletes, {} gets ({} found), {} flushes, {} compactions; {:.1} MiB \
         in files of runs, {:.1} MiB in the log",
        env!("CARGO_PKG_VERSION"),
        stats.puts,
        stats.deletes,
        stats.gets,
        stats.gets_found,
        stats.flushes,
        stats.compactions,
        mib(stats.data_file_bytes),
        mib(stats.log_file_bytes)
    );
    Ok(text)
}

/// The run segments by level, in LevelDB's format for files: number, size, first and last key.
fn sstables(segments: &[SegmentShape]) -> String {
    let mut text = String::new();
    for level in 0..LEVELS {
        let _ = writeln!(text, "--- level {level} ---");
        for segment in segments.iter().filter(|segment| level_of(segment) == level) {
            let (smallest, largest) =
                (segment.smallest.escape_ascii(), segment.largest.escape_ascii());
            let SegmentShape { file, bytes, .. } = segment;
            let _ = writeln!(text, " {file}:{bytes}['{smallest}' .. '{largest}']");
        }
    }
    text
}
