//! What a database tells about itself while it is open, outside of its calls.
//!
//! [`statistics`] is a file by which other processes see the statistics. Nothing here is needed to
//! read or write data, and nothing here can make a call fail.

pub mod statistics;
