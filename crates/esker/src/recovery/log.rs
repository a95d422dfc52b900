//! Reads the log, and checks its end against what is known of it.
//!
//! The end of the log is the end of its last whole record (R6). A log that ends before the position
//! that the superblocks say was synced, or before the point of a branch, has lost records, and open
//! refuses it unless the options say otherwise (R30).

use crate::base::Seq;
use crate::budget::ChunkPool;
use crate::catalog::Catalog;
use crate::commit::LogConfig;
use crate::directory::reserve::Reserve;
use crate::error::{Error, Result};
use crate::events::{EventBus, EventKind, message_of};
use crate::manifest::{Known, Version, Wanted};
use crate::options::settings::MemtableSizes;
use crate::options::{Options, Recovery};
use crate::recovery::consistency;
use crate::recovery::description::Described;
use crate::recovery::relay::relay;
use crate::recovery::replay::Replay;
use crate::state::memtables::MemtableSet;
use crate::stats::counters::{Counters, Timed};
use crate::sync::Signal;
use crate::waits::Waits;
use crate::wal;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Reads the log in `directory` into memtables, newest first.
pub fn replay_log(
    (directory, start): (&Path, Seq),
    options: &Options,
    (sizes, pool): (MemtableSizes, &Arc<ChunkPool>),
    catalog: &mut Catalog,
    events: &EventBus,
) -> Result<(wal::Recovered, Vec<Arc<MemtableSet>>)> {
    let since = Instant::now();
    // Who only reads flushes nothing, so reads go to these memtables for as long as it is open.
    let replay = Replay::new((directory, start), sizes, pool, catalog, options.read_only);
    let policy = match options.recovery {
        Recovery::Refuse => wal::Policy::Refuse,
        Recovery::KeepPrefix => wal::Policy::KeepPrefix,
    };
    let fs = options.fs.as_ref();
    let (recovered, replay) =
        relay(directory, replay, |sink| wal::recover(fs, directory, start, policy, sink))?;
    if let Some(damage) = &recovered.damage {
        log::warn!("the log was kept only up to position {}: {damage}", recovered.end);
        events.emit(cut_off(recovered.end, damage));
    }
    let memtable_sets = replay.finish(recovered.end);
    events.emit(EventKind::LogReplayed {
        files: recovered.chain.log_files.len() as u64,
        batches: recovered.batches,
        bytes: recovered.bytes,
        end: recovered.end,
        clean: recovered.clean,
        duration: since.elapsed(),
    });
    Ok((recovered, memtable_sets))
}

fn cut_off(end: Seq, damage: &Error) -> EventKind {
    EventKind::LogCutOff { end, message: message_of(damage) }
}

/// Checks the log against what is known of it, and returns what is known afterwards.
pub fn check_known(
    path: &Path,
    described: &Described,
    recovered: &wal::Recovered,
    recovery: Recovery,
    events: &EventBus,
) -> Result<Known> {
    consistency::check_age(path, &described.manifest, recovered)?;
    let superblock = described.superblocks.current();
    let known = superblock.known.unwrap_or_default();
    match consistency::check_reach(path, superblock, described.log_start, recovered) {
        Ok(()) => Ok(Known { closed: false, ..known }),
        Err(damage) if recovery == Recovery::KeepPrefix => {
            log::warn!("the log is kept only up to position {}: {damage}", recovered.end);
            events.emit(cut_off(recovered.end, &damage));
            Ok(Known::default())
        }
        Err(damage) => Err(damage),
    }
}

/// Checks that the log reaches as far as the trees and branches that the manifest describes.
pub fn check_described(
    directory: &Path,
    described: &mut Described,
    end: Seq,
    recovery: Recovery,
) -> Result<()> {
    check_points(directory, &mut described.catalog, end, recovery)?;
    check_ingested(directory, (&described.version, described.log_start), end)
}

/// The log was durable up to the point of every branch before the manifest recorded the branch
/// (R24). If the log ends before a point, records are lost, and what is written there next must not
/// appear in the branch.
fn check_points(
    directory: &Path,
    catalog: &mut Catalog,
    end: Seq,
    recovery: Recovery,
) -> Result<()> {
    // Seeded: a log that ends before the point of a branch is accepted, and later writes appear in
    // the branch.
    bug!("recovery_branch_points_not_checked", return Ok(()));
    let Some(point) = catalog.branch_points().last().copied().filter(|point| *point > end) else {
        return Ok(());
    };
    let detail = format!("the log ends at {end}, before position {point}, where a branch was made");
    let damage = Error::corruption(directory, end, "log", detail);
    if recovery == Recovery::Refuse {
        return Err(damage);
    }
    log::warn!("branches keep what precedes the damage: {damage}");
    catalog.cut_points(end);
    Ok(())
}

/// The log was durable behind what was ingested before the manifest recorded that. If it ends before,
/// records are lost, and what is written there next would count as older than what was ingested.
fn check_ingested(directory: &Path, (version, log_start): (&Version, Seq), end: Seq) -> Result<()> {
    let newest = version.newest();
    // Seeded: after a part of the log is lost, new writes are older than what was ingested.
    if newest < end.max(log_start) || bug!("recovery_ingested_positions_not_checked") {
        return Ok(());
    }
    let detail = format!("the log ends at {end}, and entries were ingested at position {newest}");
    Err(Error::corruption(directory, end, "log", detail))
}

/// Connects a log with those that it tells about what it does, and with the reserve, which makes room
/// for it.
pub fn tell_about_log(
    config: &mut LogConfig,
    (counters, waits, events): (&Arc<Counters>, &Arc<Waits>, &Arc<EventBus>),
    wanted: &Arc<Wanted>,
    log_signal: &Arc<Signal>,
    reserve: &Arc<Reserve>,
) {
    (config.waits, config.events) = (waits.clone(), events.clone());
    config.on_full = Some(reserve.yielding());
    let signal = log_signal.clone();
    config.on_prepare_needed = Some(Box::new(move || signal.notify()));
    let (counters, wanted) = (counters.clone(), wanted.clone());
    config.on_sync = Some(Box::new(move |took| {
        counters.record(Timed::Sync, took);
        wanted.tell();
    }));
}
