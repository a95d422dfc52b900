//! What a file system with faults and its open files share: the rules, and the counters.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::fs::Fs;
use parking_lot::Mutex;

use super::rule::{Fired, Op, Rule};
use super::verdict::{Verdict, io_error};
use crate::CrashFs;

/// The rules, and what was counted and noted.
#[derive(Default)]
pub(super) struct State {
    pub(super) rules: Vec<Rule>,
    pub(super) counts: BTreeMap<Op, u64>,
    pub(super) fired: Vec<Fired>,
    /// Files, by identity, whose sync has failed.
    pub(super) failed_syncs: BTreeSet<String>,
    pub(super) violations: Vec<String>,
    pub(super) hide_incarnations: bool,
    pub(super) bytes_read: u64,
    /// Ranges of files, by name, that were asked for ahead, if that is watched.
    pub(super) asked_ahead: Option<Vec<(PathBuf, Range<u64>)>>,
    /// Reads that begin in such a range.
    pub(super) reads_asked_ahead: u64,
}

/// What a file system and its open files share.
pub(super) struct Shared {
    pub(super) inner: Arc<dyn Fs>,
    /// The same disk, if it can act out what a failed sync does to the cache.
    pub(super) disk: Option<CrashFs>,
    pub(super) state: Arc<Mutex<State>>,
}

impl Shared {
    pub(super) fn note_read(&self, path: &Path, offset: u64, bytes: usize) {
        let mut state = self.state.lock();
        state.bytes_read += bytes as u64;
        let asked = |(file, range): &(PathBuf, Range<u64>)| file == path && range.contains(&offset);
        if state.asked_ahead.as_ref().is_some_and(|ranges| ranges.iter().any(asked)) {
            state.reads_asked_ahead += 1;
        }
    }

    /// Counts a call and asks the rules about it.
    pub(super) fn ask(&self, op: Op, paths: &[&Path]) -> Verdict {
        let mut state = self.state.lock();
        *state.counts.entry(op).or_default() += 1;
        let mut verdict = Verdict::Pass;
        let mut calls = Vec::new();
        let State { rules, fired, .. } = &mut *state;
        for (number, rule) in rules.iter_mut().enumerate() {
            let Some(occurrence) = rule.meets(op, paths) else { continue };
            let path = paths.first().map(|path| (*path).to_owned()).unwrap_or_default();
            fired.push(Fired { rule: number, op, path, occurrence });
            match rule.verdict() {
                Ok(decided) => {
                    verdict = decided;
                    break;
                }
                Err(call) => calls.push(call),
            }
        }
        drop(state);
        // Not under the lock: a callback may wait for another thread's call.
        calls.into_iter().for_each(|call| call());
        verdict
    }

    /// For calls that pass, fail or are skipped.
    pub(super) fn admit<T>(
        &self,
        op: Op,
        paths: &[&Path],
        skipped: T,
        call: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.ask(op, paths) {
            Verdict::Pass | Verdict::Flip(_) => call(),
            Verdict::Skip => Ok(skipped),
            Verdict::Fail(error) | Verdict::Short(_, error) => Err(error),
            Verdict::FailSync(_) => Err(io_error()),
        }
    }

    /// For calls whose result cannot be made up: they cannot be skipped.
    pub(super) fn allow(&self, op: Op, paths: &[&Path]) -> io::Result<()> {
        self.admit(op, paths, (), || Ok(()))
    }
}
