//! A thread that does a part of another thread's work, at another priority.
//!
//! A thread cannot always raise its priority again once it has lowered it. So what is to run at low priority runs
//! on a thread of its own, which its owner hands one job at a time and waits for.

use super::{contain, spawn};
use crate::error::{Error, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

type Job<C> = Box<dyn FnOnce(&C) + Send>;

/// Where a part of the owner's work is done.
#[derive(Debug)]
pub struct Aside<C> {
    /// `None`: on the owner's thread.
    jobs: Option<Sender<Job<C>>>,
}

impl<C: Send + Sync + 'static> Aside<C> {
    /// No thread: the owner does everything.
    pub fn none() -> Self {
        Self { jobs: None }
    }

    /// Starts a thread of the database in `directory`, which calls `begin` first and ends when this is
    /// dropped.
    pub fn start(
        context: Arc<C>,
        name: &str,
        directory: &Path,
        begin: fn(),
    ) -> Result<(Self, JoinHandle<()>)> {
        let (jobs, due): (Sender<Job<C>>, Receiver<Job<C>>) = channel();
        let thread = spawn(name, directory, move || {
            begin();
            due.into_iter().for_each(|job| job(&context));
        })?;
        Ok((Self { jobs: Some(jobs) }, thread))
    }

    /// Does the work and returns its result. A panic in it becomes an error.
    pub fn run<R: Send + 'static>(
        &self,
        context: &C,
        work: impl FnOnce(&C) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let Some(jobs) = &self.jobs else { return contain(|| work(context)) };
        let (answer, answered) = sync_channel(1);
        let job: Job<C> = Box::new(move |context| {
            // The owner waits for it.
            answer.send(contain(|| work(context))).ok();
        });
        let sent = jobs.send(job).ok();
        // The thread ends only with its owner, so there always is an answer.
        sent.and_then(|()| answered.recv().ok()).unwrap_or(Err(Error::Closed))
    }
}
