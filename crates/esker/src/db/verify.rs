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
use crate::run::Segment;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Core {
    /// Reads everything and reports what is wrong. An error means that the search itself failed.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.check_open()?;
        let mut report = VerifyReport::default();
        let state = self.state_now();
        let mut files = HashSet::new();
        let mut seen = HashSet::new();
        for (id, tree) in state.version.trees() {
            let keyspace = self.catalog.lock().by_id(*id).cloned();
            let Some(keyspace) = keyspace else { continue };
            for segment in tree.all().flat_map(|partition| partition.segments()) {
                self.check_open()?;
                if !seen.insert((segment.meta().file, segment.meta().offset)) {
                    continue;
                }
                files.insert(segment.meta().file);
                let checked = match &keyspace.order {
                    Order::Bytewise => segment.verify(&Bytewise),
                    Order::Custom(order) => segment.verify(order),
                    Order::Missing(_) => segment.verify_unordered(),
                };
                report.note(segment, &keyspace.name, checked);
            }
        }
        report.files = files.len() as u64;
        self.verify_small_files(&mut report);
        self.verify_log(&mut report)?;
        report.problems.iter().for_each(|problem| self.monitor.damage(&problem.error));
        Ok(report)
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

    /// Checks the log up to what is published now; writers may continue after that position.
    fn verify_log(&self, report: &mut VerifyReport) -> Result<()> {
        let directory = self.path.join(LOG_DIRECTORY);
        let start = self.store.lock().log_start;
        let visible = self.visible();
        let mut bad = HashMap::new();
        crate::wal::inspect(self.fs.as_ref(), &directory, start, |found| {
            use crate::wal::Inspected;
            match found {
                Inspected::LogFile { .. } => report.files += 1,
                Inspected::Record(record) => {
                    report.entries += u64::from(record.operations);
                    report.bytes += u64::from(record.payload_len);
                }
                Inspected::BadRecord(record) if record.position < visible => {
                    bad.insert(record.position, "the payload of a record does not match");
                }
                Inspected::Gap { start: at, .. } if (start..visible).contains(&at) => {
                    bad.insert(at, "there is no whole record where one was published");
                }
                _ => {}
            }
            Ok(())
        })?;
        for (position, detail) in bad {
            let error = Error::corruption(&directory, position, "log record", detail);
            report.problems.push(Problem { path: directory.clone(), error });
        }
        Ok(())
    }
}

impl VerifyReport {
    fn note(
        &mut self,
        segment: &Arc<Segment>,
        keyspace: &str,
        checked: Result<crate::run::SegmentCounts>,
    ) {
        match checked {
            Ok(verified) => {
                self.blocks += verified.blocks;
                self.entries += verified.entries;
                self.bytes += segment.meta().len;
            }
            Err(error) => {
                let bounds = (segment.meta().min_key.as_slice(), segment.meta().max_key.as_slice());
                let error = error.in_keyspace(keyspace, Some(bounds));
                self.problems.push(Problem { path: segment.file().path().to_owned(), error });
            }
        }
    }
}
