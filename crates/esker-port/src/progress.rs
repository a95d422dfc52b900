//! The progress reports of a long run, and its summary.

use crate::stream::Totals;
use std::time::{Duration, Instant};

/// How far a run has come.
///
/// # Example
/// ```
/// fn percent(step: esker_port::Step) -> String {
///     match step.fraction {
///         Some(fraction) => format!("{:.0} %", 100.0 * fraction),
///         None => format!("{} entries", step.entries),
///     }
/// }
/// let mut step = esker_port::Step::default();
/// step.fraction = Some(0.25);
/// assert_eq!(percent(step), "25 %");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Step {
    /// Entries that are done.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// The part of the whole that is done, from 0 to 1, where it can be told.
    pub fraction: Option<f64>,
}

/// Receives progress, about every few hundred KiB, on the thread that runs the work.
///
/// # Example
/// ```
/// use esker_port::{Progress, Step};
/// struct Dots;
/// impl Progress for Dots {
///     fn step(&mut self, _: Step) { eprint!("."); }
/// }
/// // A closure will do, too.
/// fn run(progress: &mut dyn Progress) { progress.step(Step::default()) }
/// let mut steps = 0;
/// run(&mut |_: Step| steps += 1);
/// run(&mut Dots);
/// assert_eq!(steps, 1);
/// ```
pub trait Progress {
    /// The run came this far.
    fn step(&mut self, step: Step);
}

/// Ignores progress.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, Quiet};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// esker_port::dump(&db, Vec::new(), "memory", &DumpOptions::default(), &mut Quiet)?;
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn step(&mut self, _: Step) {}
}

impl<F: FnMut(Step)> Progress for F {
    fn step(&mut self, step: Step) {
        self(step);
    }
}

/// The summary of a run.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, Form, Quiet};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("k", "v")?;
/// let binary = DumpOptions::default();
/// let mut text = DumpOptions::default();
/// text.form = Form::Text;
/// let one = esker_port::dump(&db, Vec::new(), "memory", &binary, &mut Quiet)?;
/// let other = esker_port::dump(&db, Vec::new(), "memory", &text, &mut Quiet)?;
/// // The entries are the same, the bytes are not.
/// assert_eq!(one.content, other.content);
/// assert_ne!(one.stream_bytes, other.stream_bytes);
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Keyspaces in the stream.
    pub keyspaces: u64,
    /// Entries in the stream.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// How many of these entries come from an earlier, interrupted run.
    pub resumed: u64,
    /// The checksum over all keyspaces, keys and values: the same in every form of the dump, and
    /// the same for every database with the same contents.
    pub content: u64,
    /// Bytes of the stream, or of the files that an import read.
    pub stream_bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Summary {
    /// Of a run that ends now: what its stream held, how many entries were there before, the length
    /// of the stream, and when the run began.
    pub(crate) fn of(totals: &Totals, resumed: u64, stream_bytes: u64, started: Instant) -> Self {
        let Totals { keyspaces, entries, bytes, content } = *totals;
        let elapsed = started.elapsed();
        Self { keyspaces, entries, bytes, resumed, content, stream_bytes, elapsed }
    }
}
