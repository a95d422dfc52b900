//! A step of an experiment that is a workload of `esker bench`.
//!
//! The catalogues of LevelDB's and SplinterDB's experiments consist of such steps.

use crate::experiments::published::experiment::{Action, Step};
use crate::{Kind, Workload};

/// A step that is a workload.
pub fn workload(name: &str, about: &'static str, kind: Kind, threads: usize) -> Step {
    let threads = (!kind.is_maintenance()).then_some(threads);
    Step { name: name.into(), about, action: Action::Workload(Workload { kind, threads }) }
}
