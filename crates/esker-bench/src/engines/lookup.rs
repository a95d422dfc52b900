//! Finds the engine that a name means.
//!
//! A name is one of the registry's (`rocksdb`, `rocksdb-tuned`), or one of those that take a library
//! followed by its path (`capi:/usr/lib/libleveldb.so`). An unknown name is answered with a list of the
//! engines that there are and of the cargo features that bring the rest.

use super::registry::REGISTRY;
use super::spec::{EngineSpec, Entry, Tuning, installing};
use crate::{Error, Result};
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

impl EngineSpec {
    /// Parses a comma list of names.
    pub fn parse_list(list: &str) -> Result<Vec<Self>> {
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(Self::parse).collect()
    }

    /// Parses one name. [`Self::available`] says whether this build has the engine.
    pub fn parse(text: &str) -> Result<Self> {
        let (head, library) = match text.split_once(':') {
            Some((head, path)) => (head, Some(path)),
            None => (text, None),
        };
        let known = |entry: &&Entry| entry.name().eq_ignore_ascii_case(head);
        let entry = REGISTRY.iter().find(known).ok_or_else(|| unknown(head))?;
        match library {
            Some("") | None if entry.takes_library => Err(Error::usage(format!(
                "{head} needs a library: write `{}`, with the path of a shared library{}",
                entry.usage(),
                installing(entry.install),
            ))),
            Some(_) if !entry.takes_library => {
                Err(Error::usage(format!("{head} takes no library: write `{}`", entry.usage())))
            }
            library => Ok(Self::of(entry, library.map(PathBuf::from))),
        }
    }

    /// The engine that a report names. A name that is unknown here is kept, and cannot be opened.
    pub fn named(name: String) -> Self {
        Self::parse(&name).unwrap_or_else(|_| Self::unknown(name))
    }

    /// The same engine as `--tuning` wants it. An engine without a tuned variant stays what it is;
    /// a variant that was named and is of the other kind is refused.
    pub fn tuned(self, tuning: Tuning) -> Result<Self> {
        if self.tuning() == tuning {
            return Ok(self);
        }
        match (tuning, self.entry().tuned) {
            (Tuning::Tuned, Some(variant)) => {
                let wanted =
                    |entry: &&Entry| entry.kind == self.kind() && entry.variant == Some(variant);
                let entry = REGISTRY.iter().find(wanted);
                Ok(entry.map_or_else(|| self.clone(), |entry| self.with_entry(entry)))
            }
            (Tuning::Tuned, None) => Ok(self),
            (Tuning::Default, _) => Err(Error::usage(format!(
                "{self} is tuned and `--tuning default` was asked for: name `{}`",
                self.kind()
            ))),
        }
    }
}

/// Refuses a write buffer that this engine cannot be given: what is not set must not be measured as if
/// it were.
pub fn check_write_buffer(engine: &EngineSpec, bytes: u64) -> Result<()> {
    let Some(range) = &engine.entry().write_buffers else {
        let takes = |entry: &&Entry| entry.write_buffers.is_some();
        let names: Vec<String> = REGISTRY.iter().filter(takes).map(Entry::usage).collect();
        return Err(Error::usage(format!(
            "{engine} takes no --write-buffer: leave one of them out; it is for {}",
            names.join(", ")
        )));
    };
    if range.contains(&bytes) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{engine} has no --write-buffer of {bytes} bytes: give it {} to {}",
        range.start(),
        range.end()
    )))
}

/// Says what there is, and what brings the rest.
fn unknown(name: &str) -> Error {
    let shown = || REGISTRY.iter().filter(|entry| !entry.hidden);
    let here: Vec<String> =
        shown().filter(|entry| entry.open.is_some()).map(Entry::usage).collect();
    let absent: Vec<String> = shown()
        .filter(|entry| entry.open.is_none())
        .map(|entry| format!("{} by `{}`", entry.usage(), entry.feature.unwrap_or("peers")))
        .collect();
    let mut message = format!("there is no engine `{name}`: choose from {}", here.join(", "));
    if !absent.is_empty() {
        message += &format!("; `--features` brings {}", absent.join(", "));
    }
    Error::usage(message)
}

/// The names of the engines of this build that answer for LinkBench's tables.
pub fn with_links() -> Vec<String> {
    let shown = REGISTRY.iter().filter(|entry| entry.links && !entry.hidden);
    shown.filter(|entry| entry.open.is_some()).map(Entry::usage).collect()
}

/// A line for every engine that a user may name: its name, what it is, and what brings it.
pub fn describe_all() -> Vec<(String, String)> {
    let line = |entry: &Entry| {
        let about = match (entry.feature, &entry.open) {
            (Some(feature), None) => format!("{} (needs --features {feature})", entry.about),
            _ => entry.about.to_owned(),
        };
        (entry.usage(), about)
    };
    REGISTRY.iter().filter(|entry| !entry.hidden).map(line).collect()
}

/// Esker.
impl Default for EngineSpec {
    fn default() -> Self {
        Self::of(&REGISTRY[0], None)
    }
}

/// Reports outlive the versions that wrote them.
impl<'de> Deserialize<'de> for EngineSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::named(String::deserialize(deserializer)?))
    }
}

/// The engine of this name.
#[cfg(test)]
pub(crate) fn spec(name: &str) -> EngineSpec {
    EngineSpec::parse(name).unwrap()
}
