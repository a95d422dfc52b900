//! An experiment over several engines, which may be stopped at any time and continued.
//!
//! Every finished step of an engine is written to a journal in the directory of the campaign before the
//! next one starts (`journal`). When the same command is given again, engines that are done are not run
//! again, and a stopped one continues with its database after the last step that is known to be
//! completely in it. The report is made from all journals, whichever process wrote them.
//!
//! Invariants:
//! 1. A directory belongs to one experiment with one group of settings; another is refused.
//! 2. A step counts as finished only if what it wrote survives the end of the process: in the class
//!    `buffered` that needs a flush after it, and engines without files start again.
//! 3. The database of an unfinished engine is kept; that of a finished one is removed unless the
//!    settings keep it.
//! 4. A report has every run that the directory has results of, also those of engines and rounds that the
//!    command did not name.
//! 5. Runs of one campaign follow the rules of [`crate::experiments::compare`]: the same operations for
//!    all, a process for each run, results that agree.

mod estimate;
mod folder;
mod journal;
mod report;
mod run;
mod samples;
mod stored;
mod wanted;

pub use estimate::Left;
pub use report::{CampaignReport, StepAbout, StepFigures};
pub use run::{Watcher, run};
pub use samples::Unfinished;
pub use wanted::{Campaign, check};

#[cfg(test)]
mod tests;
