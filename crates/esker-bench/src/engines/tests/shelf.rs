//! The code that `docs/peers.md` shows to whoever adds an engine, compiled. The engine is made up.
#![allow(unexpected_cfgs, reason = "there is no feature of this name")]

use super::super::registry::built;
use super::super::spec::Entry;
use super::*;

/// Its adapter, and what that calls.
mod adapter {
    use super::super::super::*;
    use crate::{Error, Result};

    mod shelf {
        pub struct Builder;

        impl Builder {
            pub fn new() -> Self {
                Self
            }

            pub fn cache(&mut self, _: u64) {}

            pub fn sync_every_write(&mut self, _: bool) {}
        }
    }

    pub fn open(_spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
        let mut settings = Vec::new();
        let mut builder = shelf::Builder::new();
        if let Some(bytes) = options.memory {
            builder.cache(bytes);
            settings.push(("cache".into(), format!("{bytes} bytes")));
        }
        builder.sync_every_write(options.durability == Durability::Disk);
        let settings: Vec<(String, String)> = settings;
        Err(Error::usage(format!("{settings:?}")))
    }
}
use adapter as shelf;

fn shelf_offers(class: Durability) -> Result<(), &'static str> {
    if class == Durability::Process {
        return Err("it writes to the device or not at all");
    }
    Ok(())
}

static ENTRY: Entry = Entry {
    kind: "shelf",
    label: "Shelf",
    about: "Shelf, a B-tree in Rust",
    feature: Some("peer-shelf"),
    offers: shelf_offers,
    open: built!("peer-shelf", shelf::open),
    ..Entry::PLAIN
};

/// The lines of the page's block that begins so, without those that stand for more.
fn shown<'a>(page: &'a str, begins: &str) -> Vec<&'a str> {
    let lines = page.lines().skip_while(|line| !line.trim().starts_with(begins));
    let lines = lines.take_while(|line| !line.is_empty()).map(str::trim);
    lines.filter(|line| *line != "…").collect()
}

#[test]
fn the_page_shows_what_is_compiled_here() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/peers.md")).unwrap();
    let own: Vec<&str> = include_str!("shelf.rs").lines().map(str::trim).collect();
    for begins in ["fn shelf_offers(", "pub fn open(", "Entry {"] {
        let shown = shown(&page, begins);
        assert!(shown.len() > 5, "{begins}: {shown:?}");
        let mut rest = own.iter();
        for line in &shown {
            // An entry of the registry stands in a list there, and alone here.
            let line = line.trim_end_matches([',', ';']);
            let is_it = |own: &&str| own.trim_end_matches([',', ';']).ends_with(line);
            assert!(rest.any(is_it), "{line} is not here, or out of order");
        }
    }
    // The builds without an engine and with it answer alike.
    assert!((ENTRY.offers)(Durability::Process).is_err() && ENTRY.open.is_none());
    let options = OpenOptions {
        dir: &root,
        memory: Some(1),
        write_buffer_bytes: None,
        durability: Durability::Disk,
        transactions: false,
    };
    let engine = EngineSpec::parse("mem").unwrap();
    assert!(
        shelf::open(&engine, &options).is_err_and(|error| error.to_string().contains("1 bytes"))
    );
}
