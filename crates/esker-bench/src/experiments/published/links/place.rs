//! Where a phase of LinkBench takes place: the open database, the sizes, and the name of the step.
//!
//! An engine without transactions has no tables for LinkBench, which is an error of the command line.

use crate::engines::Engine;
use crate::engines::links::LinkStore;
use crate::harness::settings::Settings;
use crate::{Error, Result};

/// Where a phase takes place.
pub struct Place<'a> {
    /// The open database.
    pub engine: &'a dyn Engine,
    /// The sizes.
    pub settings: &'a Settings,
    /// The name of the step.
    pub name: &'a str,
}

impl<'a> Place<'a> {
    /// The tables of the engine.
    pub fn store(&self) -> Result<&'a dyn LinkStore> {
        let none = || Error::usage(format!("{} has no transactions here", self.engine.version()));
        self.engine.link_store().ok_or_else(none)
    }
}
