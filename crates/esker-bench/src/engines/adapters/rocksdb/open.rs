//! Opens RocksDB with or without transactions.
//!
//! LinkBench needs transactions; everything else is measured on the plain database, which is what most
//! users have.

use super::options::configured;
use super::plain::RocksEngine;
use super::transactions::LockingEngine;
use crate::Result;
use crate::engines::{Engine, EngineSpec, OpenOptions};

/// Opens or makes the database in the way that the variant says.
pub fn open(spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let (set, counted, settings) = configured(spec, options);
    if options.transactions {
        return Ok(Box::new(LockingEngine::open(set, counted, options, settings)?));
    }
    Ok(Box::new(RocksEngine::open(set, counted, options, settings)?))
}
