//! Every engine that can be named, in the order in which lists show them.
//!
//! An adapter is added by its module in `engine/mod.rs`, its feature in `Cargo.toml`, and an entry
//! here. `built!` leaves the opener out where the feature is off, so that the entry still says which
//! feature brings the engine.

use super::spec::Entry;
use super::{esker, faulty, mem, null};

#[cfg(feature = "peer-fjall")]
use super::fjall;

/// The opener, if the feature is on.
macro_rules! built {
    ($feature:literal, $open:expr) => {{
        #[cfg(feature = $feature)]
        let open: Option<super::spec::Opener> = Some($open);
        #[cfg(not(feature = $feature))]
        let open: Option<super::spec::Opener> = None;
        open
    }};
}

/// All engines.
pub static REGISTRY: &[Entry] = &[
    Entry {
        kind: "esker",
        label: "Esker",
        about: "Esker, through its public interface",
        open: Some(esker::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "mem",
        label: "BTreeMap",
        about: "a BTreeMap under a lock, without files",
        has_files: false,
        offers: mem::offers,
        open: Some(mem::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "null",
        label: "nothing",
        about: "nothing at all: what the harness itself costs",
        has_files: false,
        note: Some("the harness's own cost"),
        answers: false,
        open: Some(null::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "fjall",
        label: "fjall",
        about: "fjall 3, an LSM tree in Rust",
        feature: Some("peer-fjall"),
        open: built!("peer-fjall", fjall::open),
        ..Entry::PLAIN
    },
    faulty("forgets"),
    faulty("aborts"),
    faulty("full"),
];

/// An engine with a fault.
const fn faulty(variant: &'static str) -> Entry {
    Entry {
        kind: "faulty",
        variant: Some(variant),
        label: "faulty",
        about: "an engine with a fault",
        has_files: false,
        hidden: true,
        offers: faulty::offers,
        open: Some(faulty::open),
        ..Entry::PLAIN
    }
}
