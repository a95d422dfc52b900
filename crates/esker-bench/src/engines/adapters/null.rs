//! The engine that does nothing and stores nothing.
//!
//! The cost of a workload on it is the cost of the harness itself: keys, values, the clock, the
//! histogram and the counters. Subtract it before you compare nanoseconds with other harnesses.

use crate::Result;
use crate::engines::Durability;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use std::hint::black_box;

/// Nothing.
pub struct NullEngine;

/// The registry's opener.
pub fn open(_: &EngineSpec, _: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    Ok(Box::new(NullEngine))
}

impl Engine for NullEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Self))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn version(&self) -> String {
        "nothing".into()
    }

    fn settings(&self) -> Vec<(String, String)> {
        vec![("structure".into(), "none: every call returns at once".into())]
    }

    fn stats(&self) -> String {
        "nothing".into()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Session for NullEngine {
    fn put(&mut self, key: &[u8], value: &[u8], _: Durability) -> Result<()> {
        black_box((key, value));
        Ok(())
    }

    fn delete(&mut self, key: &[u8], _: Durability) -> Result<()> {
        black_box(key);
        Ok(())
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], _: Durability) -> Result<()> {
        black_box((start, end));
        Ok(())
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        black_box((key, value));
    }

    fn batch_delete(&mut self, key: &[u8]) {
        black_box(key);
    }

    fn batch_commit(&mut self, _: Durability) -> Result<()> {
        Ok(())
    }

    fn get(&mut self, key: &[u8], _: &mut dyn FnMut(&[u8])) -> Result<bool> {
        black_box(key);
        Ok(false)
    }

    fn multi_get(&mut self, keys: &[Vec<u8>], _: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        black_box(keys);
        Ok(())
    }

    fn cursor(&mut self, from: Option<&[u8]>, _: Direction) -> Result<Box<dyn Cursor + '_>> {
        black_box(from);
        Ok(Box::new(Self))
    }
}

impl Cursor for NullEngine {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(None)
    }
}
