//! The page itself: one HTML document that needs no other file.
//!
//! The template library escapes every text that is put into it; only pictures are inserted as
//! markup, and their texts are escaped by the plotting library. The page has no script, and its
//! content security policy allows none, nor anything from a network.
//!
//! `document` puts the page together. `summary` says who is ahead, `workload` shows the figures,
//! `published` those of others beside them, `conditions` what they hold for; `parts` is what they
//! share.

mod conditions;
mod document;
mod parts;
mod published;
mod summary;
mod workload;

pub use document::page;
