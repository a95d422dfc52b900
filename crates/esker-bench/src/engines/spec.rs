//! What the harness has to know of an engine before it opens it.
//!
//! Everything that decides whether two engines may stand in one table is known here, without opening
//! anything: the durability classes that an engine offers, whether it is opened with its defaults or
//! tuned, and whether single writes are cheap for it. An [`Entry`] is a line of the registry; an
//! [`EngineSpec`] is an entry that a user chose, with the path of the library if it takes one.

use super::durability::Durability;
use super::interface::{Engine, OpenOptions};
use crate::{Error, Result};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// How much was set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tuning {
    /// The engine's own defaults, except for memory and durability.
    Default,
    /// What the engine's documentation recommends for speed.
    Tuned,
}

/// Opens or makes a database in the directory of the options.
pub type Opener = fn(&EngineSpec, &OpenOptions<'_>) -> Result<Box<dyn Engine>>;

/// What the registry says of an engine. [`Entry::PLAIN`] has the usual answers.
#[derive(Debug)]
pub struct Entry {
    /// The engine: all its variants have the same.
    pub kind: &'static str,
    /// Which way of opening it this is, if there are several. Its name is `kind-variant`.
    pub variant: Option<&'static str>,
    /// How tables name it.
    pub label: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The cargo feature that brings it; none if it is always there.
    pub feature: Option<&'static str>,
    /// The command that installs what it needs beside the feature.
    pub install: Option<&'static str>,
    /// Whether its name is followed by a colon and the path of a library.
    pub takes_library: bool,
    /// Whether it keeps files.
    pub has_files: bool,
    /// How much was set by hand.
    pub tuning: Tuning,
    /// The variant of the same kind that `--tuning tuned` takes instead.
    pub tuned: Option<&'static str>,
    /// Whether single writes are cheap. If they are not (each is a transaction), workloads that write one
    /// by one write in batches, and their rows say so.
    pub cheap_single_writes: bool,
    /// What a reader has to know, shown behind the label: "no recovery".
    pub note: Option<&'static str>,
    /// Whether what it returns is worth comparing with what others return.
    pub answers: bool,
    /// Whether it answers for LinkBench's tables.
    pub links: bool,
    /// Whether it answers for nothing else.
    pub only_links: bool,
    /// The write buffers that it can be given, in bytes; none if its adapter sets none.
    pub write_buffers: Option<RangeInclusive<u64>>,
    /// Whether it is kept out of lists: faulty engines, for the harness's own tests.
    pub hidden: bool,
    /// Whether a finished write can be of this class, or why not.
    pub offers: fn(Durability) -> Result<(), &'static str>,
    /// How it is opened; none if this build left it out.
    pub open: Option<Opener>,
}

impl Entry {
    /// An engine with files, defaults, cheap writes and every durability class, always there.
    pub const PLAIN: Self = Self {
        kind: "",
        variant: None,
        label: "",
        about: "",
        feature: None,
        install: None,
        takes_library: false,
        has_files: true,
        tuning: Tuning::Default,
        tuned: None,
        cheap_single_writes: true,
        note: None,
        answers: true,
        links: false,
        only_links: false,
        write_buffers: None,
        hidden: false,
        offers: |_| Ok(()),
        open: None,
    };

    /// The name that users write, without a library.
    pub fn name(&self) -> String {
        match self.variant {
            Some(variant) => format!("{}-{variant}", self.kind),
            None => self.kind.to_owned(),
        }
    }

    /// How a list of what exists shows it.
    pub(super) fn usage(&self) -> String {
        if self.takes_library { format!("{}:PATH", self.name()) } else { self.name() }
    }
}

/// What a report names that this version does not know.
static UNKNOWN: Entry = Entry { label: "an engine unknown here", ..Entry::PLAIN };

/// An engine that a user named.
#[derive(Clone)]
pub struct EngineSpec {
    entry: &'static Entry,
    name: String,
    library: Option<PathBuf>,
}

impl EngineSpec {
    /// The engine of this entry, with the library to load if it takes one.
    pub(super) fn of(entry: &'static Entry, library: Option<PathBuf>) -> Self {
        let name = match &library {
            Some(path) => format!("{}:{}", entry.name(), path.display()),
            None => entry.name(),
        };
        Self { entry, name, library }
    }

    /// An engine that a report names and this version does not know. It cannot be opened.
    pub(super) fn unknown(name: String) -> Self {
        Self { entry: &UNKNOWN, name, library: None }
    }

    /// The same engine in the way of opening that `entry` describes.
    pub(super) fn with_entry(&self, entry: &'static Entry) -> Self {
        Self::of(entry, self.library.clone())
    }

    /// The registry's entry.
    pub(super) fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The name that users write, with the library if there is one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name for files and directories.
    pub fn file_name(&self) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.name.chars().map(safe).collect()
    }

    /// How tables name it.
    pub fn label(&self) -> String {
        let file = self.library.as_deref().and_then(Path::file_name);
        let label = match file {
            Some(file) => format!("{} {}", self.entry.label, file.to_string_lossy()),
            None => self.entry.label.to_owned(),
        };
        match self.entry.note {
            Some(note) => format!("{label} ({note})"),
            None => label,
        }
    }

    /// The engine that this is a variant of.
    pub fn kind(&self) -> &'static str {
        self.entry.kind
    }

    /// Which variant of it.
    pub fn variant(&self) -> Option<&'static str> {
        self.entry.variant
    }

    /// The library to load.
    pub fn library(&self) -> Option<&Path> {
        self.library.as_deref()
    }

    /// What a reader has to know.
    pub fn note(&self) -> Option<&'static str> {
        self.entry.note
    }

    /// How much is set by hand.
    pub fn tuning(&self) -> Tuning {
        self.entry.tuning
    }

    /// Whether there is a tuned variant of it, or it is one.
    pub fn can_be_tuned(&self) -> bool {
        self.entry.tuned.is_some() || self.entry.tuning == Tuning::Tuned
    }

    /// Whether the engine keeps files.
    pub fn has_files(&self) -> bool {
        self.entry.has_files
    }

    /// Whether single writes are cheap.
    pub fn cheap_single_writes(&self) -> bool {
        self.entry.cheap_single_writes
    }

    /// Whether what it returns is worth comparing.
    pub fn answers(&self) -> bool {
        self.entry.answers
    }

    /// Whether it answers for LinkBench's tables.
    pub fn links(&self) -> bool {
        self.entry.links
    }

    /// Whether it answers for nothing else.
    pub fn only_links(&self) -> bool {
        self.entry.only_links
    }

    /// Refuses to be asked for keys and values, if it answers LinkBench only.
    pub fn answers_keys(&self) -> Result<()> {
        if !self.entry.only_links {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{self} answers LinkBench only, not for keys and values: name it in \
             `esker bench experiment linkbench-load`"
        )))
    }

    /// Whether a finished write can be of this class, or why not.
    pub fn offers(&self, class: Durability) -> Result<(), &'static str> {
        (self.entry.offers)(class)
    }

    /// Fails if this build left the engine out or its library is not there.
    pub fn available(&self) -> Result<()> {
        if self.entry.open.is_none() {
            let feature = self.entry.feature.unwrap_or("peers");
            let install = installing(self.entry.install);
            return Err(Error::usage(format!(
                "this build has no {self}: build again with `--features {feature}`{install}"
            )));
        }
        match &self.library {
            Some(path) if !path.is_file() => {
                Err(self.missing_library(path, "there is no such file"))
            }
            _ => Ok(()),
        }
    }

    /// The error of an adapter that cannot load what it needs from `path`.
    pub fn missing_library(&self, path: &Path, cause: impl fmt::Display) -> Error {
        let install = match self.entry.install {
            Some(install) => format!("install it with `{install}`"),
            None => "give the path of the shared library".into(),
        };
        let name = self.entry.name();
        Error::usage(format!("{name}: cannot load {}: {cause}: {install}", path.display()))
    }

    /// The error of an adapter that needs a program which is not there.
    pub fn missing_program(&self, program: &str) -> Error {
        let install = installing(self.entry.install);
        Error::usage(format!("{self}: this system has no {program}{install}"))
    }

    /// Opens a database in `options.dir`, making it if it is not there.
    pub fn open(&self, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
        self.available()?;
        match self.entry.open {
            Some(open) => open(self, options),
            None => Err(Error::usage(format!("this build has no {self}"))),
        }
    }
}

/// What an error message says of the command that installs what an engine needs.
pub(super) fn installing(line: Option<&str>) -> String {
    line.map_or(String::new(), |line| format!(" (it needs `{line}`)"))
}

impl PartialEq for EngineSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for EngineSpec {}

impl Hash for EngineSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for EngineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EngineSpec({})", self.name)
    }
}

impl fmt::Display for EngineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Serialize for EngineSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}
