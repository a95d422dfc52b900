//! A checkpoint that another thread makes, held between its stages.

use crate::model::Model;
use esker::Result;
use esker::internals::sync::Point;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// A checkpoint that is being made.
pub(super) struct Checkpoint {
    pub(super) path: PathBuf,
    pub(super) thread: JoinHandle<Result<()>>,
    pub(super) at: Point,
    /// What the database held after each step since it was begun: one of these must be in it.
    pub(super) models: Vec<Model>,
}
