//! From the files of a database to its state in memory, and to the first files of a new one.
//!
//! 1. [`consistency`] compares superblocks, manifest and log with what is known of them.
//! 2. [`description`] turns the edits of the manifest into the catalog and the trees.
//! 3. [`replay`] puts the batches of the log into memtables, on a thread to which [`relay`] passes
//!    them; [`log`] checks where the log ends.
//! 4. [`manifest`] begins the manifest of a new life, and removes files to which nothing refers.
//! 5. [`create`] makes the files of a new database.
//!
//! Nothing here keeps state, and no thread outlives the call that starts it: `db` builds the database
//! from the results.

pub mod consistency;
pub mod create;
pub mod description;
pub mod log;
pub mod manifest;
mod relay;
pub mod replay;
