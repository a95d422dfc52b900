//! Loading dumps.
//!
//! One thread reads the stream and proves each frame by its checksum, the calling thread stores
//! it. A load that was cut off, with its stream or with the process, goes on when the same dump
//! is loaded again: what was stored is read over, and proved again on the way.

use crate::dump::QUEUE;
use crate::loader::Loader;
use crate::stream::{Frame, Reader};
use crate::{Error, Progress, Result, Step, Summary};
use esker::{Comparator, Db};
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

/// How a dump is loaded.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Load into a database that holds something already; entries of the dump replace those with
    /// the same keys. Without this, such a database is refused.
    pub existing: bool,
    /// Orders of keyspaces, found by their names.
    pub comparators: Vec<Arc<dyn Comparator>>,
    /// At the end, read what is stored and compare it with the stream. Not with `existing`.
    pub read_back: bool,
    /// The length of the stream in bytes, if it is known, to tell how much is done.
    pub stream_bytes: Option<u64>,
}

impl std::fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let comparators: Vec<&str> = self.comparators.iter().map(|order| order.name()).collect();
        f.debug_struct("LoadOptions")
            .field("existing", &self.existing)
            .field("comparators", &comparators)
            .field("read_back", &self.read_back)
            .field("stream_bytes", &self.stream_bytes)
            .finish()
    }
}

/// Loads a dump of either form. When this returns, all of it is there and durable, and the
/// stream's checksums and totals were right.
///
/// # Errors
/// Those of reading the stream: [`Error::NotADump`], [`Error::UnknownVersion`],
/// [`Error::Damaged`], [`Error::CutOff`], [`Error::Io`]; then the database is marked as
/// unfinished, holds only what was proved, and the same dump can be loaded again.
/// [`Error::NotEmpty`], [`Error::Unfinished`]; [`Error::Differs`]; [`Error::Engine`]:
/// [`esker::Error::ComparatorMissing`] if the order of a keyspace was not given.
///
/// # Example
/// See [`crate::dump`].
pub fn load(
    db: &Db,
    input: impl Read + Send,
    what: &str,
    options: &LoadOptions,
    progress: &mut dyn Progress,
) -> Result<Summary> {
    let started = Instant::now();
    let mut reader = Reader::new(input, what)?;
    let mut loader = Loader::new(db, &options.comparators, reader.header().dump, options.existing)?;
    let (sender, frames) = sync_channel::<Result<(Frame, u64)>>(QUEUE);
    let mut end = None;
    let stored = std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let frame = match reader.next_frame() {
                    Ok(None) => return,
                    Ok(Some(frame)) => Ok((frame, reader.offset())),
                    Err(error) => Err(error),
                };
                let failed = frame.is_err();
                if sender.send(frame).is_err() || failed {
                    return;
                }
            }
        });
        // By value, so that the other thread ends when this one fails.
        let frames = frames;
        let mut done = Step::default();
        for frame in &frames {
            let (frame, offset) = frame?;
            match frame {
                Frame::Keyspace(info) => loader.keyspace(&info)?,
                Frame::Entries(entries) => {
                    loader.entries(&entries)?;
                    done.entries += entries.len();
                    done.bytes += entries.bytes();
                    let part = |all: u64| (offset as f64 / all.max(1) as f64).min(1.0);
                    done.fraction = options.stream_bytes.map(part);
                    progress.step(done);
                }
                Frame::End(totals) => end = Some((totals, offset)),
            }
        }
        Ok(())
    });
    let resumed = loader.resumed();
    let (totals, stream_bytes) = match (stored, end) {
        (Ok(()), Some(end)) => end,
        (Err(error), _) => {
            // What was proved is kept; that the stream failed is what is reported.
            loader.stop().ok();
            return Err(error);
        }
        // The reader ends with an end frame or an error, so it must have been lost with its thread.
        (Ok(()), None) => return Err(Error::CutOff { what: what.to_owned(), offset: 0 }),
    };
    if options.read_back && !options.existing {
        loader.settle()?;
        loader.read_back(&totals)?;
    }
    loader.finish()?;
    Ok(Summary {
        keyspaces: totals.keyspaces,
        entries: totals.entries,
        bytes: totals.bytes,
        resumed,
        content: totals.content,
        stream_bytes,
        elapsed: started.elapsed(),
    })
}
