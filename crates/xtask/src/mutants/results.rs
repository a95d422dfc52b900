//! The results so far, in a file with one line for each defect.

use super::sites::Site;
use crate::workspace::Result;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The result for one defect.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// The tests that noticed it.
    pub part: Option<String>,
    /// The first test of them that failed; `None` if nobody noticed anything.
    pub test: Option<String>,
    /// How long it took, with the tests before.
    pub seconds: f64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.part, &self.test) {
            (Some(part), Some(test)) => write!(f, "caught by {part}: {test}")?,
            _ => write!(f, "NOT CAUGHT")?,
        }
        write!(f, " ({:.1} s)", self.seconds)
    }
}

/// The file, and what it says.
pub(crate) struct Results {
    path: PathBuf,
    known: BTreeMap<String, Outcome>,
}

impl Results {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let text = if path.exists() {
            fs::read_to_string(path).map_err(|e| format!("read {}: {e}", path.display()))?
        } else {
            String::new()
        };
        // A line that an interruption cut off is as good as none.
        let known = text.split_inclusive('\n').filter_map(parse).collect();
        Ok(Self { path: path.to_owned(), known })
    }

    pub(crate) fn of(&self, name: &str) -> Option<&Outcome> {
        self.known.get(name)
    }

    /// Adds what was found about a defect, on disk first.
    pub(crate) fn note(&mut self, name: &str, outcome: Outcome) -> Result<()> {
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let written = file.and_then(|mut file| file.write_all(line(name, &outcome).as_bytes()));
        written.map_err(|e| format!("write {}: {e}", self.path.display()))?;
        self.known.insert(name.to_owned(), outcome);
        Ok(())
    }

    /// Drops what is known about these, and how long the tests take without any.
    pub(crate) fn forget(&mut self, sites: &[Site]) -> Result<()> {
        let gone = |name: &str| sites.iter().any(|site| site.name == name);
        self.known.retain(|name, _| !name.starts_with("none, ") && !gone(name));
        let text: String = self.known.iter().map(|(name, outcome)| line(name, outcome)).collect();
        fs::write(&self.path, text).map_err(|e| format!("write {}: {e}", self.path.display()))
    }
}

fn line(name: &str, outcome: &Outcome) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{name}\t{}\t{}\t{:.1}\n", text(&outcome.part), text(&outcome.test), outcome.seconds)
}

fn parse(line: &str) -> Option<(String, Outcome)> {
    let mut fields = line.strip_suffix('\n')?.split('\t');
    let name = fields.next()?.to_owned();
    let mut text = || fields.next().map(|field| Some(field.to_owned()).filter(|f| !f.is_empty()));
    let (part, test) = (text()?, text()?);
    Some((name, Outcome { part, test, seconds: fields.next()?.parse().ok()? }))
}

/// One row of the table as an object.
pub(crate) fn json(site: &Site, outcome: &Outcome) -> String {
    let text = |text: Option<&str>| match text {
        Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        None => "null".to_owned(),
    };
    format!(
        "{{\"bug\": {}, \"what\": {}, \"caught_by\": {}, \"test\": {}, \"seconds\": {:.1}}}",
        text(Some(&site.name)),
        text(Some(&site.what)),
        text(outcome.part.as_deref()),
        text(outcome.test.as_deref()),
        outcome.seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_cut_line_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("results.tsv");
        let mut results = Results::open(&path).expect("no file is no results");
        let caught = Outcome {
            part: Some("api".to_owned()),
            test: Some("reads::a_b".to_owned()),
            seconds: 1.5,
        };
        let missed = Outcome { part: None, test: None, seconds: 30.0 };
        results.note("one", caught.clone()).expect("written");
        results.note("two", missed.clone()).expect("written");
        let mut text = fs::read_to_string(&path).expect("read");
        text.push_str("three\tapi\tx");
        fs::write(&path, text).expect("write");
        let mut again = Results::open(&path).expect("read");
        assert_eq!(again.of("one"), Some(&caught));
        assert_eq!(again.of("two"), Some(&missed));
        assert_eq!(again.of("three"), None);
        let one = Site { name: "one".into(), what: "x".into(), module: "wal".into() };
        again.forget(&[one]).expect("written");
        let again = Results::open(&path).expect("read");
        assert_eq!((again.of("one"), again.of("two")), (None, Some(&missed)));
    }
}
