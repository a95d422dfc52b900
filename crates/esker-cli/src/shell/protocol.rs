//! The grammar of the shell: one command per line, words between spaces.
//!
//! Every command line gets exactly one closing answer line, `ok …` or `err KIND message`, after
//! any lines of data; blank lines get none. Data lines cannot be mistaken for closing lines (see
//! `Encoding::first_word`). Parsing knows nothing of databases, so a refused line has no effect.

use crate::flags::time_to_live;
use esker::{Durability, ErrorKind};
use esker_port::token::TokenError;
use esker_port::word;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// One parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `put K V [class] [ttl=time]`
    Put { key: Vec<u8>, value: Vec<u8>, class: Option<Durability>, ttl: Option<Duration> },
    /// `del K [class]`
    Del { key: Vec<u8>, class: Option<Durability> },
    /// `delrange A B [class]`
    DelRange { range: Range, class: Option<Durability> },
    /// `get K [@S]`
    Get { key: Vec<u8>, snapshot: Option<Vec<u8>> },
    /// `scan [A B [LIMIT]] [rev] [@S]`
    Scan { range: Range, limit: Limit, reverse: bool, snapshot: Option<Vec<u8>> },
    /// `snap S`
    Snap(Vec<u8>),
    /// `unsnap S`
    Unsnap(Vec<u8>),
    /// `begin`
    Begin,
    /// `commit [class]`
    Commit(Option<Durability>),
    /// `abort`
    Abort,
    /// `use KEYSPACE`
    Use(String),
    /// `keyspaces`
    Keyspaces,
    /// `drop KEYSPACE`
    Drop(String),
    /// `flush`
    Flush,
    /// `compact [A B]`
    Compact(Option<Range>),
    /// `sync`
    Sync,
    /// `verify`
    Verify,
    /// `stats`
    Stats,
    /// `help`
    Help,
    /// `close`
    Close,
}

/// At most how many entries a scan prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Nothing was said: all of them, but on a terminal no more than a person can look at.
    Unsaid,
    /// `-`: all of them.
    All,
    /// So many.
    Most(u64),
}

/// The keys from the first bound up to, but not including, the second; `None` is no bound.
pub type Range = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Why a line was refused: the kind and the message of the `err` answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One word for scripts.
    pub kind: &'static str,
    /// The rest of the line, for people.
    pub message: String,
}

impl Refusal {
    /// The line is not in the grammar, or makes no sense where it stands.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: "usage", message: message.into() }
    }
}

impl From<esker::Error> for Refusal {
    fn from(error: esker::Error) -> Self {
        Self { kind: error.kind().as_str(), message: error.to_string() }
    }
}

impl From<TokenError> for Refusal {
    fn from(error: TokenError) -> Self {
        let kind = match error {
            TokenError::Malformed(_) => "usage",
            TokenError::TooLarge { .. } => ErrorKind::ValueTooLarge.as_str(),
        };
        Self { kind, message: error.to_string() }
    }
}

/// The commands and what they do, in the order in which `help` shows them.
pub const HELP: &[(&str, &str)] = &[
    (
        "put K V [CLASS] [ttl=TIME]",
        "sets K to V; CLASS is buffered, process or disk; TIME, such as 90s, is when it expires",
    ),
    ("del K [CLASS]", "removes K"),
    ("delrange A B [CLASS]", "removes the keys from A up to, but not including, B"),
    ("get K [@S]", "prints the value of K, at snapshot S if given"),
    (
        "scan [A B [LIMIT]] [rev] [@S]",
        "prints at most LIMIT entries from A up to, not including, B",
    ),
    ("snap S", "takes a snapshot called S"),
    ("unsnap S", "gives snapshot S up"),
    ("begin", "starts an atomic batch: put, del and delrange now go to it"),
    ("commit [CLASS]", "writes the batch, whole or not at all"),
    ("abort", "forgets the batch"),
    ("use KEYSPACE", "goes to a keyspace, making it if needed; the first one is `default`"),
    ("keyspaces", "prints the names of all keyspaces"),
    ("drop KEYSPACE", "removes a keyspace and all it holds"),
    ("flush", "writes what is in memory to files of runs"),
    ("compact [A B]", "compacts everything, or the keys from A to B of this keyspace"),
    ("sync", "makes everything written so far survive power loss"),
    ("verify", "reads all files and checks them"),
    ("stats", "prints the statistics"),
    (
        "help",
        "prints this list; - is no bound, \"…\" is text with spaces, 0x… is hexadecimal, #N as a value \
         makes up N bytes",
    ),
    ("close", "closes the database and leaves; exit and quit are the same"),
];

/// Reads one line, without its line break; `None` for a blank one.
pub fn parse(line: &[u8]) -> Result<Option<Command>, Refusal> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words = word::split(line)?;
    let Some((name, arguments)) = words.split_first() else { return Ok(None) };
    command(name, arguments).map(Some)
}

fn command(name: &[u8], arguments: &[&[u8]]) -> Result<Command, Refusal> {
    Ok(match (name, arguments) {
        (b"put", [key, value, rest @ ..]) => put(key, value, rest)?,
        (b"del", [key, class @ ..]) => {
            Command::Del { key: word::decode(key)?, class: optional_class("del", class)? }
        }
        (b"delrange", [low, high, class @ ..]) => Command::DelRange {
            range: range(low, high)?,
            class: optional_class("delrange", class)?,
        },
        (b"get", [key]) => Command::Get { key: word::decode(key)?, snapshot: None },
        (b"get", [key, at]) => {
            Command::Get { key: word::decode(key)?, snapshot: Some(snapshot("get", at)?) }
        }
        (b"scan", arguments) => scan(arguments)?,
        (b"snap", [name]) => Command::Snap(word::decode(name)?),
        (b"unsnap", [name]) => Command::Unsnap(word::decode(name)?),
        (b"begin", []) => Command::Begin,
        (b"commit", class) => Command::Commit(optional_class("commit", class)?),
        (b"abort", []) => Command::Abort,
        (b"use", [name]) => Command::Use(text(name)?),
        (b"keyspaces", []) => Command::Keyspaces,
        (b"drop", [name]) => Command::Drop(text(name)?),
        (b"flush", []) => Command::Flush,
        (b"compact", []) => Command::Compact(None),
        (b"compact", [low, high]) => Command::Compact(Some(range(low, high)?)),
        (b"sync", []) => Command::Sync,
        (b"verify", []) => Command::Verify,
        (b"stats", []) => Command::Stats,
        (b"help", []) => Command::Help,
        (b"close" | b"exit" | b"quit", []) => Command::Close,
        _ => return Err(misused(name)),
    })
}

/// Reads a put. Behind the value stand, in any order, a class and a time to live.
fn put(key: &[u8], value: &[u8], rest: &[&[u8]]) -> Result<Command, Refusal> {
    let key = word::decode(key)?;
    let value = word::decode_value(value, &key)?;
    let (times, classes): (Vec<&[u8]>, Vec<&[u8]>) =
        rest.iter().copied().partition(|word| word.starts_with(TTL));
    let ttl = match times[..] {
        [] => None,
        [time] => {
            let time = String::from_utf8_lossy(&time[TTL.len()..]).into_owned();
            Some(time_to_live(&time).map_err(Refusal::usage)?)
        }
        _ => return Err(misused(b"put")),
    };
    Ok(Command::Put { key, value, class: optional_class("put", &classes)?, ttl })
}

/// What stands before a time to live.
const TTL: &[u8] = b"ttl=";

fn scan(arguments: &[&[u8]]) -> Result<Command, Refusal> {
    let (arguments, snapshot) = match arguments {
        [before @ .., at] if at.starts_with(b"@") => (before, Some(self::snapshot("scan", at)?)),
        all => (all, None),
    };
    let (arguments, reverse) = match arguments {
        [before @ .., b"rev"] => (before, true),
        all => (all, false),
    };
    let (range, limit) = match arguments {
        [] => ((None, None), Limit::Unsaid),
        [low, high] => (range(low, high)?, Limit::Unsaid),
        [low, high, limit] => (range(low, high)?, self::limit(limit)?),
        _ => return Err(misused(b"scan")),
    };
    Ok(Command::Scan { range, limit, reverse, snapshot })
}

fn limit(word: &[u8]) -> Result<Limit, Refusal> {
    if word == b"-" {
        return Ok(Limit::All);
    }
    let number = std::str::from_utf8(word).ok().and_then(|digits| digits.parse().ok());
    number.map(Limit::Most).ok_or_else(|| {
        Refusal::usage(format!("LIMIT of scan is a number or -, not {}", shown(word)))
    })
}

fn range(low: &[u8], high: &[u8]) -> Result<Range, Refusal> {
    Ok((word::decode_bound(low)?, word::decode_bound(high)?))
}

fn optional_class(name: &str, words: &[&[u8]]) -> Result<Option<Durability>, Refusal> {
    match words {
        [] => Ok(None),
        [class] => match std::str::from_utf8(class).ok().and_then(|class| class.parse().ok()) {
            Some(class) => Ok(Some(class)),
            None => Err(Refusal::usage(format!(
                "{name} takes buffered, process or disk at its end, not {}",
                shown(class)
            ))),
        },
        _ => Err(misused(name.as_bytes())),
    }
}

fn snapshot(name: &str, word: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Some(snapshot) = word.strip_prefix(b"@") else {
        return Err(Refusal::usage(format!(
            "{name} takes @ and a snapshot's name at its end, not {}",
            shown(word)
        )));
    };
    Ok(word::decode(snapshot)?)
}

fn text(word: &[u8]) -> Result<String, Refusal> {
    String::from_utf8(word::decode(word)?)
        .map_err(|_| Refusal::usage("names of keyspaces are UTF-8: give another one"))
}

/// The command exists and its arguments do not fit, or it does not exist.
fn misused(name: &[u8]) -> Refusal {
    let name = if matches!(name, b"exit" | b"quit") { &b"close"[..] } else { name };
    let known =
        HELP.iter().find(|(usage, _)| usage.split(' ').next().map(str::as_bytes) == Some(name));
    Refusal::usage(match known {
        Some((usage, _)) => format!("the command is used as: {usage}"),
        None => format!("there is no command {}: help lists them", shown(name)),
    })
}

/// The start of a word, fit for a message.
fn shown(word: &[u8]) -> String {
    word[..word.len().min(32)].escape_ascii().to_string()
}
