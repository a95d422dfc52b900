//! What reading a manifest gives, and whether it is what the database is known to have.
//!
//! The superblock and the end mark of the log state how far the manifest was durable. A manifest
//! that does not reach so far, or that has other records there, is damaged or an older file. A log
//! that was written under a later manifest also proves that an older manifest was put back.

use crate::error::{Error, Result};
use crate::manifest::{Edit, EndMark, Reach, manifest_name};
use crate::wal;
use std::path::Path;

/// What reading a manifest gives.
#[derive(Debug)]
pub struct Recovered {
    /// The number of the manifest that was read (after following successors).
    pub number: u64,
    /// Its edits; the first holds the whole state of its beginning.
    pub edits: Vec<Edit>,
    /// Its last whole record ends here.
    pub reach: Reach,
    /// Where each of its records ends.
    pub steps: Vec<Reach>,
    /// Whether bytes of a torn record follow the end.
    pub torn: bool,
}

impl Recovered {
    /// Compares the manifest that was read with what is known of it.
    ///
    /// # Errors
    /// [`Error::Corruption`] if it is shorter than that, or another one.
    pub fn check_reach(&self, directory: &Path, known: Reach) -> Result<()> {
        // Seeded: an edit that was damaged, or an older manifest, passes for what there is.
        bug!("manifest_reach_not_checked", return Ok(()));
        let path = directory.join(manifest_name(self.number));
        let refuse =
            |offset, detail: String| Err(Error::corruption(&path, offset, "manifest edit", detail));
        if self.reach.nonce != known.nonce {
            let detail = "it is another manifest than the superblock knows under this number";
            return refuse(0, detail.to_owned());
        }
        if self.reach.len < known.len {
            let detail = format!(
                "no whole record stands here, but {} bytes of the manifest were durable: its end \
                 is damaged, or it is an older file",
                known.len
            );
            return refuse(self.reach.len, detail);
        }
        let is_it = |reach: &Reach| reach.len == known.len && reach.hash == known.hash;
        if !self.steps.iter().any(is_it) {
            let detail = "its edits are others than the superblock knows";
            return refuse(known.len, detail.to_owned());
        }
        Ok(())
    }

    /// Compares the manifest with the log that was read: a log that was begun, or closed, under a
    /// later manifest proves that an older manifest was put back.
    ///
    /// # Errors
    /// [`Error::Corruption`] if it is older than the log.
    pub fn check_log(&self, directory: &Path, log: &wal::Recovered) -> Result<()> {
        // Seeded: superblocks and manifest may be older than the log.
        bug!("manifest_age_not_checked", return Ok(()));
        let older = |than: u64| {
            let detail = format!(
                "the log was written under {}: superblocks and manifest were replaced by older \
                 ones",
                manifest_name(than)
            );
            let path = directory.join(manifest_name(self.number));
            Err(Error::corruption(&path, 0, "manifest", detail))
        };
        if let Some(life) = log.latest_life().filter(|life| *life > self.number) {
            return older(life);
        }
        let Some(mark) = EndMark::decode(&log.mark).filter(|_| log.clean) else { return Ok(()) };
        match mark.number.cmp(&self.number) {
            std::cmp::Ordering::Greater => older(mark.number),
            std::cmp::Ordering::Equal => self.check_reach(directory, mark.reach),
            // A later opening began a manifest of its own and got no further.
            std::cmp::Ordering::Less => Ok(()),
        }
    }
}
