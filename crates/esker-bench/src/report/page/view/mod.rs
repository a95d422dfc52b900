//! The page itself: one HTML document that needs no other file.
//!
//! The template library escapes every text that is put into it; only pictures, the style sheet and
//! the script are inserted as markup, and texts of pictures are escaped by the plotting library.
//!
//! `document` puts the page together. `choice` offers engines to show, `overview` and `summary` say
//! who is ahead, `change` what is different from a baseline; `workload` shows the figures,
//! `published` those of others beside them, `conditions` what they hold for; `parts` is what they
//! share.

mod change;
mod choice;
mod conditions;
mod document;
mod overview;
mod parts;
mod published;
mod summary;
mod workload;

pub use document::page;
