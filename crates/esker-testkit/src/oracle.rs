//! Knows what a crash may take and what it may not (contract C1).
//!
//! The history is the list of writes in commit order. What a crash leaves is told by two numbers:
//! *logged*, how many writes at the front of the history survive if they were logged, and
//! *flushed*, how many survive although they were not (class `Buffered`, R13). A flush carries
//! every class, so logged is never less than flushed. Everything else is a lost or a changed
//! write.
//!
//! Writes that carry a counter make the search short: the counters that are found say where the
//! prefix ends, up to the next write that carries one.

use crate::model::{Model, Op};
use crate::ops::{BUFFERED, LOGGED, counted};

/// A write of the history.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it did, as a whole.
    pub ops: Vec<Op>,
    /// Whether it was logged.
    pub logged: bool,
}

/// Writes in commit order, on top of what was known to be durable.
#[derive(Debug, Clone, Default)]
pub struct History {
    base: Model,
    before: u64,
    entries: Vec<Entry>,
}

/// What must have survived: the writes before this number, of the whole history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Floor {
    /// Of those that were logged.
    pub logged: u64,
    /// Of all.
    pub all: u64,
}

/// What survived.
#[derive(Debug, Clone)]
pub struct Survived {
    /// The end of the prefix of logged writes.
    pub logged: u64,
    /// The end of the prefix of writes of any class.
    pub flushed: u64,
    /// What is there.
    pub model: Model,
}

impl History {
    /// A history that begins with this content. `before` writes came earlier.
    pub fn new(base: Model, before: u64) -> Self {
        Self { base, before, entries: Vec::new() }
    }

    /// The number of the next write.
    pub fn end(&self) -> u64 {
        self.before + self.entries.len() as u64
    }

    /// Notes a write.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Forgets the last write, which is known to have left nothing behind.
    pub fn pop(&mut self) -> Option<Entry> {
        self.entries.pop()
    }

    /// The writes since the base.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What is there if logged writes before `logged` and all before `flushed` survive.
    pub fn at(&self, logged: u64, flushed: u64) -> Model {
        let mut model = self.base.clone();
        for (number, entry) in (self.before..).zip(&self.entries) {
            if number < flushed || entry.logged && number < logged {
                model.apply_all(&entry.ops);
            }
        }
        model
    }

    /// Finds which prefix `found` is, or says what is wrong with it.
    pub fn locate(&self, found: &Model, floor: Floor) -> Result<Survived, String> {
        // Counters hold numbers from 1, so that 0 stands for none.
        let flushed = counted(found, BUFFERED).max(floor.all).max(self.before);
        let logged = counted(found, LOGGED).max(floor.logged).max(flushed).max(self.before);
        let mut model = self.at(logged, flushed);
        let first = model.difference(found);
        let Some(first) = first else { return Ok(Survived { logged, flushed, model }) };
        for number in logged..self.end() {
            let entry = &self.entries[(number - self.before) as usize];
            if !entry.logged {
                continue;
            }
            model.apply_all(&entry.ops);
            if model.difference(found).is_none() {
                return Ok(Survived { logged: number + 1, flushed, model });
            }
        }
        if std::env::var_os("ESKER_HISTORY").is_some() {
            for (number, entry) in (self.before..).zip(&self.entries).take(logged as usize + 5) {
                eprintln!("{number} logged {}: {:.400}", entry.logged, format!("{:?}", entry.ops));
            }
        }
        Err(format!(
            "no prefix: counters say logged {} and flushed {}, {floor:?}, writes {}..{}; \
             at logged {logged} and flushed {flushed}: {first}",
            counted(found, LOGGED),
            counted(found, BUFFERED),
            self.before,
            self.end(),
        ))
    }

    /// Makes what survived the base of what comes.
    pub fn rebase(&mut self, survived: &Survived) {
        *self = Self::new(survived.model.clone(), self.end());
    }
}
