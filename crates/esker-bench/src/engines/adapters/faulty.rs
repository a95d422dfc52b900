//! Engines that fail on purpose, to test that the harness notices.
//!
//! Each is the reference engine `mem` with one fault. They can be named on the command line, but no
//! list shows them.

use super::mem::{self, MemEngine};
use crate::engines::Durability;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// One write in ten thousand is not made.
    Forgets,
    /// The process dies.
    Aborts,
    /// There is no room on the device.
    Full,
}

/// One write in so many is forgotten.
const FORGOTTEN: u64 = 10_000;
/// The other faults happen at this write.
const FATAL: u64 = 700;

/// The reference engine with a fault.
pub struct FaultyEngine {
    inner: MemEngine,
    fault: Fault,
    writes: AtomicU64,
}

/// The registry's opener.
pub fn open(spec: &EngineSpec, _: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let fault = match spec.variant() {
        Some("aborts") => Fault::Aborts,
        Some("full") => Fault::Full,
        _ => Fault::Forgets,
    };
    Ok(Box::new(FaultyEngine { inner: MemEngine::default(), fault, writes: AtomicU64::new(0) }))
}

/// As the reference engine.
pub fn offers(class: Durability) -> Result<(), &'static str> {
    mem::offers(class)
}

impl FaultyEngine {
    /// Counts a write; false if it is not to be made.
    fn write(&self) -> Result<bool> {
        let count = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        match self.fault {
            Fault::Forgets => Ok(!count.is_multiple_of(FORGOTTEN)),
            Fault::Aborts if count == FATAL => std::process::abort(),
            Fault::Full if count >= FATAL => {
                Err(Error::engine("faulty", "write", "No space left on device (os error 28)"))
            }
            Fault::Aborts | Fault::Full => Ok(true),
        }
    }
}

impl Engine for FaultyEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FaultySession { engine: self, inner: self.inner.session()? }))
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }

    fn wait_idle(&self) -> Result<()> {
        self.inner.wait_idle()
    }

    fn version(&self) -> String {
        format!("{}, with a fault", self.inner.version())
    }

    fn settings(&self) -> Vec<(String, String)> {
        vec![("fault".into(), format!("{:?}", self.fault).to_lowercase())]
    }

    fn stats(&self) -> String {
        self.inner.stats()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct FaultySession<'a> {
    engine: &'a FaultyEngine,
    inner: Box<dyn Session + 'a>,
}

impl Session for FaultySession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        if self.engine.write()? { self.inner.put(key, value, durability) } else { Ok(()) }
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.inner.delete(key, durability)
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        self.inner.delete_range(start, end, durability)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        // A batch cannot fail before its commit; only the first fault applies to one.
        if !matches!(self.engine.write(), Ok(false)) {
            self.inner.batch_put(key, value);
        }
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.inner.batch_delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        self.inner.batch_commit(durability)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.inner.get(key, found)
    }

    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        self.inner.multi_get(keys, found)
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        self.inner.cursor(from, direction)
    }
}
