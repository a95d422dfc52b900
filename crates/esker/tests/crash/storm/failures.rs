//! What fails, what the database may make of it, and how it is opened nevertheless.

use esker::{Db, ErrorKind, LogKind, Options, Recovery};
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::harness::{SMALL_CACHE, tiny_options, with_tiers};
use esker_testkit::{FaultFs, Rng};
use std::io;
use std::time::Duration;

pub(super) const PATH: &str = "/db";

pub(super) fn options(faults: &FaultFs, rng: &mut Rng) -> Options {
    let mut options = tiny_options();
    options.separate_values_from = Some(40);
    if rng.percent(35) {
        with_tiers(&mut options, rng);
    }
    options.small_cache = rng.percent(35).then_some(SMALL_CACHE);
    options.fs = faults.as_fs();
    options.log = if rng.percent(50) { LogKind::Plain } else { LogKind::Mapped };
    options.sync_interval = rng.percent(50).then_some(Duration::from_millis(1));
    options
}

/// Opens what is known to be whole, or, if the cache dropped part of the log, its prefix.
pub(super) fn reopen(mut options: Options, dropped: bool) -> esker::Result<Db> {
    match Db::open_with(PATH, options.clone()) {
        Err(error) if dropped && error.kind() == ErrorKind::Corruption => {
            options.recovery = Recovery::KeepPrefix;
            Db::open_with(PATH, options)
        }
        other => other,
    }
}

/// What a device that fails may make of a call.
pub(super) fn is_expected(error: &esker::Error) -> bool {
    match error {
        esker::Error::Poisoned { cause } => is_expected(cause),
        error => matches!(error.kind(), ErrorKind::Io | ErrorKind::DiskFull | ErrorKind::Closed),
    }
}

/// A call that will fail, and whether it drops what is in the cache.
pub(super) fn fault(rng: &mut Rng) -> (Rule, bool) {
    let likely = [Op::Write, Op::SyncData, Op::SyncDir, Op::Create, Op::Allocate];
    let op = match rng.percent(70) {
        true => likely[rng.below(likely.len() as u64) as usize],
        false => Op::ALL[rng.below(Op::ALL.len() as u64) as usize],
    };
    let effect = match (op, rng.below(4)) {
        (Op::SyncData, 0) => Effect::FailSync { revert: true },
        (Op::SyncData, 1 | 2) => Effect::FailSync { revert: false },
        (Op::Write, 0 | 1) => Effect::ShortWrite(rng.below(600) as usize, io::ErrorKind::Other),
        (_, 2) => Effect::Error(io::ErrorKind::StorageFull),
        _ => Effect::Error(io::ErrorKind::Other),
    };
    let drops = matches!(effect, Effect::FailSync { revert: true });
    let rule = Rule::new(op, effect).after(rng.below(12));
    (if rng.percent(20) { rule.persistent() } else { rule }, drops)
}
