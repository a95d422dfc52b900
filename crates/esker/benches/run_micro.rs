//! Micro benchmark of runs: what a lookup, a cursor step and a written entry cost, and what a lookup that reads a block
//! costs beside a plain read of its bytes.
//!
//! `cargo bench -p esker --bench run_micro -- [entries]`; 16-byte keys, 100-byte values
//! of which half compresses. Figures are nanoseconds of processor time per operation
//! on one thread.

use esker::Result;
use esker::fs;
use esker::internals::base::codec::hash_key;
use esker::internals::base::{Bytewise, Cursor, Kind};
use esker::internals::block::Codec;
use esker::internals::cache::BlockCache;
use esker::internals::run::{
    Access, Probe, Role, Run, RunCursor, RunFile, RunWriter, Segment, SegmentMeta, Wanted,
    WriterOptions,
};
use esker::internals::trace::{Plain, Purpose};
use esker_testkit::mix;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

fn value(i: u64) -> [u8; 100] {
    let mut value = [b' '; 100];
    for (j, chunk) in value[..50].chunks_mut(8).enumerate() {
        let word = mix(i * 8 + j as u64).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    value
}

/// Processor time of this thread where the system tells it, else time.
struct Clock {
    wall: std::time::Instant,
    cpu: Option<u64>,
}

fn cpu_nanos() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().next()?.parse().ok()
}

impl Clock {
    fn now() -> Self {
        Self { wall: std::time::Instant::now(), cpu: cpu_nanos() }
    }

    fn nanos(&self) -> f64 {
        match (self.cpu, cpu_nanos()) {
            (Some(before), Some(now)) => (now - before) as f64,
            _ => self.wall.elapsed().as_nanos() as f64,
        }
    }
}

fn report(what: &str, start: Clock, count: u64) {
    println!("{what:<44} {:>8.1} ns", start.nanos() / count as f64);
}

fn write(
    fs: &Arc<dyn fs::Fs>,
    dir: &Path,
    id: u64,
    codec: Codec,
    keys: &[[u8; 16]],
) -> Result<Vec<SegmentMeta>> {
    let options = WriterOptions { codec, ..WriterOptions::default() };
    let values: Vec<[u8; 100]> = (0..256).map(value).collect();
    let start = Clock::now();
    let mut writer = RunWriter::create(fs, dir, id, options)?;
    for (i, key) in keys.iter().enumerate() {
        writer.add(&Bytewise, key, 0, Kind::Put, &values[i & 255])?;
    }
    let metas: Vec<_> = writer.finish()?.into_iter().map(|written| written.meta).collect();
    report(&format!("write, {codec:?}, with sync"), start, keys.len() as u64);
    let len: u64 = metas.iter().map(|meta| meta.len).sum();
    println!("{:<44} {:>8.3}", "  space amplification", len as f64 / (keys.len() * 116) as f64);
    Ok(metas)
}

fn open(fs: &Arc<dyn fs::Fs>, dir: &Path, id: u64, metas: &[SegmentMeta]) -> Arc<Run> {
    let file = RunFile::new(fs, dir, id, None, None);
    let segments = metas.iter().map(|meta| Segment::new(meta.clone(), Arc::clone(&file)));
    Arc::new(Run::new(Role::Base, segments.collect(), Vec::new()))
}

fn gets(run: &Run, cache: &Arc<BlockCache>, keys: &[[u8; 16]], what: &str) -> Result<()> {
    let count = 2_000_000;
    let (mut found, mut sum) = (0, 0);
    let start = Clock::now();
    for i in 0..count {
        let key = &keys[(mix(i) % keys.len() as u64) as usize];
        let guard = crossbeam_epoch::pin();
        let access = Access::Cached(&guard);
        let wanted = Wanted { key, hash: hash_key(key), below: 1, doubtful: false };
        match run.get(&Bytewise, wanted, access, cache, &mut Plain)? {
            Probe::Found(entry) => {
                sum += u64::from(entry.value()[0]);
                found += 1;
            }
            Probe::Absent => {}
            Probe::NeedsIo => panic!("everything is cached"),
        }
    }
    black_box(sum);
    report(&format!("get cached, {what} ({found} found)"), start, count);
    Ok(())
}

/// Gets of which nearly all read a block from the system's page cache, beside plain reads of as many bytes in the same
/// file.
fn misses(run: &Run, file: &Path, keys: &[[u8; 16]]) -> Result<()> {
    let count = 300_000;
    // Room for indexes and few blocks.
    let cache = Arc::new(BlockCache::new(keys.len() as u64 * 116 / 16));
    for segment in run.segments() {
        segment.load(&cache)?;
    }
    let start = Clock::now();
    for i in 0..count {
        let key = &keys[(mix(i) % keys.len() as u64) as usize];
        let wanted = Wanted { key, hash: hash_key(key), below: 1, doubtful: false };
        let probe = run.get(&Bytewise, wanted, Access::Read, &cache, &mut Plain)?;
        assert!(matches!(probe, Probe::Found(_)), "every key is there");
    }
    let missed = start.nanos() / count as f64;
    let stats = cache.stats();
    let reads = stats.reads.page_cache + stats.reads.device;
    let bytes = stats.reads.bytes_for(Purpose::Get) / reads.max(1);
    let plain = plain_reads(file, bytes, count)?;
    let share = reads * 100 / count;
    println!("{:<44} {missed:>8.1} ns", format!("get, {share} % read a block"));
    let what = format!("  a plain read of {bytes} bytes; ratio");
    println!("{what:<44} {plain:>8.1} ns {:>5.2}", missed / plain);
    Ok(())
}

fn plain_reads(path: &Path, bytes: u64, count: u64) -> Result<f64> {
    let failed = |e| esker::Error::io("read", path, e);
    let file = fs::os().open(path, fs::OpenMode::Read).map_err(failed)?;
    let places = file.len().map_err(failed)? - bytes;
    let mut buffer = vec![0; bytes as usize];
    let start = Clock::now();
    for i in 0..count {
        file.read_at(&mut buffer, mix(i) % places).map_err(failed)?;
        black_box(&buffer);
    }
    Ok(start.nanos() / count as f64)
}

fn scans(run: &Arc<Run>, cache: &Arc<BlockCache>, keys: &[[u8; 16]]) -> Result<()> {
    for (what, fill) in [("cached", true), ("streaming", false)] {
        for forward in [true, false] {
            let mut cursor = RunCursor::new(Arc::clone(run), Bytewise, Arc::clone(cache), fill);
            let start = Clock::now();
            if forward {
                cursor.seek_to_first()?
            } else {
                cursor.seek_to_last()?
            }
            let (mut count, mut sum) = (0, 0);
            while cursor.valid() {
                sum += u64::from(cursor.key()[0]) ^ u64::from(cursor.value()[0]);
                count += 1;
                if forward { cursor.next()? } else { cursor.prev()? }
            }
            black_box(sum);
            assert_eq!(count, keys.len() as u64);
            let direction = if forward { "next" } else { "prev" };
            report(&format!("cursor {direction}, {what}"), start, count);
        }
    }
    let count = 500_000;
    let mut cursor = RunCursor::new(Arc::clone(run), Bytewise, Arc::clone(cache), true);
    let start = Clock::now();
    for i in 0..count {
        cursor.seek(&keys[(mix(i) % keys.len() as u64) as usize], 1)?;
        black_box(cursor.value());
    }
    report("cursor seek, cached", start, count);
    Ok(())
}

fn main() -> Result<()> {
    let entries = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(550_000u64);
    let dir = std::env::temp_dir().join(format!("esker-run-micro-{}", std::process::id()));
    let fs = fs::os();
    std::fs::create_dir_all(&dir).map_err(|e| esker::Error::io("create", &dir, e))?;
    let cache = Arc::new(BlockCache::new(4 << 30));
    let dense = (0..entries).map(|i| *format!("{i:016}").as_bytes().first_chunk().expect("16"));
    let dense: Vec<[u8; 16]> = dense.collect();
    let mut random: Vec<[u8; 16]> = (0..entries)
        .map(|i| (u128::from(mix(i)) << 64 | u128::from(mix(!i))).to_be_bytes())
        .collect();
    random.sort_unstable();
    for (name, keys) in [("dense keys", &dense), ("random keys", &random)] {
        println!("-- {name}, {entries} entries");
        for (id, codec) in [(1, Codec::Raw), (2, Codec::Lz4), (3, Codec::Zstd)] {
            let metas = write(&fs, &dir, id, codec, keys)?;
            let run = open(&fs, &dir, id, &metas);
            for segment in run.segments() {
                segment.load(&cache)?;
            }
            scans(&run, &cache, keys)?;
            gets(&run, &cache, keys, "random")?;
            if codec == Codec::Raw {
                gets(&run, &cache, &keys[..1000], "hot 1000")?;
                let absent: Vec<[u8; 16]> = keys.iter().map(|k| swap_last(*k)).collect();
                gets(&run, &cache, &absent, "mostly absent")?;
            }
            let file = dir.join(esker::internals::run::file_name(id));
            misses(&open(&fs, &dir, id, &metas), &file, keys)?;
            std::fs::remove_file(file).ok();
        }
    }
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}

fn swap_last(mut key: [u8; 16]) -> [u8; 16] {
    key[15] ^= 0x80;
    key
}
