//! The rules of the house, checked on the source tree itself: the order of the layers, circles
//! between files, the size of files and functions, where unsafe code lives, what is never written
//! outside tests or twice, what stands at the root, and that the documents point at things that
//! exist and show programs and commands that work.
//!
//! Nothing here understands Rust in full. Comments and strings are blanked out first, items under
//! `#[cfg(test)]` after that, and what is left is searched as text. Every check gathers all of
//! its findings before it fails, so that one run shows everything there is to mend.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod circles;
mod code;
mod commands;
mod documents;
mod layers;
mod lexer;
mod source;
mod tree;
mod twins;
