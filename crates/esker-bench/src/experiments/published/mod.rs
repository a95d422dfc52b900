//! The published experiments: what each consists of, and one engine's part of it.
//!
//! `catalog` lists the experiments; `experiment` says what one is: steps on one database, fixed sizes,
//! and figures that others published (`figure`). `perform` carries out the steps in one process, for
//! one engine. Which engines take their turns, what was finished before, and what is written to files
//! is decided by [`super::campaign`]. The stages with loops of their own are `influx` (time series),
//! `inserts` (random inserts) and `links` (LinkBench).
//!
//! Only ratios and shapes may be compared with published figures: they come from other machines.

mod catalog;
mod experiment;
mod figure;
mod figures;
mod influx;
mod inserts;
mod links;
mod perform;

pub use catalog::{ALL, find};
pub use experiment::{Action, Experiment, Step};
pub use figure::Published;
pub use figures::Figures;
pub use inserts::HEAD as SAMPLES_HEAD;
pub use perform::{Assignment, Finished, Listener, perform};

#[cfg(test)]
mod tests;
