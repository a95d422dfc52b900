//! Verify: read everything and check it against everything else.
//!
//! Verify reads every segment of the present version directly, without the cache. It checks the
//! checksums against their referrers, the order of keys, filters and counts. It also reads the log
//! before the last sync, and both superblocks again. It changes nothing, and damage in one place
//! does not end the search (C3).

use crate::base::Bytewise;
use crate::catalog::Order;
use crate::db::core::Core;
use crate::directory::LOG_DIRECTORY;
use crate::error::{Error, Problem, Result, VerifyReport};
use crate::manifest::Superblock;
use crate::sync::Interruption;
use crate::wal;
use std::collections::HashSet;

impl Core {
    /// Reads everything, unless the caller ends that, and reports what is wrong. An error means that the
    /// search itself failed.
    pub fn verify(&self, interruption: Interruption<'_>) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        match self.read_everything(&mut report, interruption) {
            // Seeded: an interrupted search passes for one of everything.
            Err(Error::Interrupted) => report.interrupted = !bug!("db_verify_seems_whole"),
            read => read?,
        }
        report.problems.iter().for_each(|problem| self.monitor.damage(&problem.error));
        Ok(report)
    }

    fn read_everything(&self, report: &mut VerifyReport, until: Interruption<'_>) -> Result<()> {
        self.check_open()?;
        let state = self.state_now();
        let mut files = HashSet::new();
        let mut seen = HashSet::new();
        for (id, tree) in state.version.trees() {
            let keyspace = self.catalog.lock().by_id(*id).cloned();
            let Some(keyspace) = keyspace else { continue };
            for segment in tree.all().flat_map(|partition| partition.segments()) {
                self.check_open()?;
                until.check()?;
                if !seen.insert(segment.meta().place()) {
                    continue;
                }
                report.files += u64::from(files.insert(segment.meta().file));
                let checked = match &keyspace.order {
                    Order::Bytewise => segment.verify(&Bytewise),
                    Order::Custom(order) => segment.verify(order),
                    Order::Missing(_) => segment.verify_unordered(),
                };
                segment.note_verified(&keyspace.name, checked, report);
            }
        }
        self.verify_small_files(report);
        until.check()?;
        let log_start = || self.store.lock().log_start;
        let directory = self.path.join(LOG_DIRECTORY);
        wal::verify(self.fs.as_ref(), &directory, (&log_start, self.visible()), report)
    }

    fn verify_small_files(&self, report: &mut VerifyReport) {
        // The locks prevent the manifest from growing or being replaced during the read, and the
        // superblocks from being written.
        let store = self.store.lock();
        let superblocks = self.record.hold();
        // A superblock whose last write found no space is not damaged: the next write repairs it.
        for name in superblocks.whole() {
            let path = self.path.join(name);
            report.files += 1;
            let read = Superblock::read_file(self.fs.as_ref(), &path);
            let missing = || Error::corruption(&path, 0, "superblock", "it is missing or empty");
            if let Err(error) = read.and_then(|found| found.ok_or_else(missing)) {
                report.problems.push(Problem { path: path.clone(), error });
            }
        }
        report.files += 1;
        let (number, reach) = (store.manifest.number(), Some(store.manifest.reach()));
        if let Err(error) = crate::manifest::read(self.fs.as_ref(), &self.path, number, reach) {
            let path = self.path.join(crate::manifest::manifest_name(number));
            report.problems.push(Problem { path, error });
        }
    }
}
