//! Where a report comes from: which command made it, when, and with which build.
//!
//! A table that outlives its machine must say how it is made again. The machine and the settings are in
//! the report anyway; these are the facts that only the program around the benchmark knows.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::time::SystemTime;

/// When a report was made, by which command and by which build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// When the command began, in UTC, as RFC 3339 writes it.
    pub date: Option<String>,
    /// The command, as one line for a shell. The program is called by its name alone.
    pub command_line: Option<String>,
    /// The commit that the program was built from, followed by ` with changes` if files differed from it.
    pub commit: Option<String>,
    /// The compiler, its target and what it was told to optimise.
    pub compiler: Option<String>,
}

/// What a program knows of its own build.
#[derive(Debug, Clone, Copy, Default)]
pub struct Build {
    /// As in [`Origin::commit`].
    pub commit: Option<&'static str>,
    /// As in [`Origin::compiler`].
    pub compiler: Option<&'static str>,
}

impl Origin {
    /// Of a command that begins now; `arguments` begin with the name of the program.
    pub fn now(build: Build, arguments: impl IntoIterator<Item = OsString>) -> Self {
        let words: Vec<String> =
            arguments.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let known = |fact: &'static str| Some(fact.to_owned()).filter(|fact| !fact.is_empty());
        Self {
            date: Some(humantime::format_rfc3339_seconds(SystemTime::now()).to_string()),
            command_line: command_line(&words),
            commit: build.commit.and_then(known),
            compiler: build.compiler.and_then(known),
        }
    }

    /// The day of the date.
    pub fn day(&self) -> Option<&str> {
        self.date.as_deref()?.split('T').next()
    }
}

/// The words as one line that a shell reads as the same words; none without words.
fn command_line(words: &[String]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let words = std::iter::once(name).chain(arguments.iter().map(String::as_str));
    Some(words.map(quoted).collect::<Vec<_>>().join(" "))
}

/// A word of a line for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<String> {
        Origin::now(Build::default(), words.iter().map(OsString::from)).command_line
    }

    #[test]
    fn a_shell_reads_the_command_line_as_the_same_words() {
        let line = of(&["/opt/bin/esker", "bench", "--dir", "a b", "it's", "", "--num=1M"]);
        assert_eq!(line.unwrap(), r"esker bench --dir 'a b' 'it'\''s' '' --num=1M");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let build = Build { commit: Some(""), compiler: Some("rustc 1") };
        let origin = Origin::now(build, []);
        assert_eq!((origin.commit.as_deref(), origin.compiler.as_deref()), (None, Some("rustc 1")));
        let date = origin.date.as_deref().unwrap();
        assert!(date.len() == 20 && date.ends_with('Z'), "{date}");
        assert_eq!(origin.day().unwrap(), &date[..10]);
    }
}
