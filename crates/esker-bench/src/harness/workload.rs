//! The workloads by name, and the language of `--workloads`.
//!
//! A list is names separated by commas; `name:T` gives one workload its own number of threads
//! (`readrandom,readrandom:16`). Names are those of `db_bench` wherever it has the workload. The
//! list is executed in order on one database, so a list that reads has to write first, unless it
//! opens an existing database.

use crate::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the table below describes each in the words that users see")]
pub enum Kind {
    FillSeq,
    FillRandom,
    FillUniqueRandom,
    Overwrite,
    DeleteRandom,
    DeleteSeq,
    UpdateRandom,
    ReadRandom,
    ReadMissing,
    ReadHot,
    ReadSeq,
    ReadReverse,
    MultiReadRandom,
    SeekRandom,
    ReadWhileWriting,
    SeekRandomWhileWriting,
    FillSync,
    Fill100K,
    YcsbLoad,
    YcsbA,
    YcsbB,
    YcsbC,
    YcsbD,
    YcsbE,
    YcsbF,
    Flush,
    Compact,
    WaitForIdle,
    Stats,
}

/// Every workload: its name and what it does, in one line.
pub const ALL: &[(Kind, &str, &str)] = &[
    (Kind::FillSeq, "fillseq", "write --num keys in key order"),
    (Kind::FillRandom, "fillrandom", "write --num keys drawn at random, with repetition"),
    (Kind::FillUniqueRandom, "filluniquerandom", "write each of --num keys once, in random order"),
    (Kind::Overwrite, "overwrite", "write --num random keys over present ones"),
    (Kind::DeleteRandom, "deleterandom", "delete --num random keys"),
    (Kind::DeleteSeq, "deleteseq", "delete --num keys in key order"),
    (Kind::UpdateRandom, "updaterandom", "read a random key, then write it"),
    (Kind::ReadRandom, "readrandom", "read --reads random keys"),
    (Kind::ReadMissing, "readmissing", "read keys that do not exist but sort among present ones"),
    (Kind::ReadHot, "readhot", "read random keys of the first 1 % of the key space"),
    (Kind::ReadSeq, "readseq", "iterate forward over --reads entries"),
    (Kind::ReadReverse, "readreverse", "iterate backward over --reads entries"),
    (Kind::MultiReadRandom, "multireadrandom", "read random keys, --batch-size (else 10) a call"),
    (Kind::SeekRandom, "seekrandom", "seek a random key, then read --scan-length entries"),
    (Kind::ReadWhileWriting, "readwhilewriting", "readrandom beside a writer of --write-rate"),
    (
        Kind::SeekRandomWhileWriting,
        "seekrandomwhilewriting",
        "seekrandom beside a writer of --write-rate",
    ),
    (Kind::FillSync, "fillsync", "write --num / 1000 random keys, each durable on disk"),
    (
        Kind::Fill100K,
        "fill100K",
        "write --num / 1000 values of 100,000 bytes, keys behind all others",
    ),
    (Kind::YcsbLoad, "ycsb-load", "YCSB: write --num records in random order"),
    (Kind::YcsbA, "ycsb-a", "YCSB A: 50 % reads, 50 % updates, zipfian; --reads operations"),
    (Kind::YcsbB, "ycsb-b", "YCSB B: 95 % reads, 5 % updates, zipfian"),
    (Kind::YcsbC, "ycsb-c", "YCSB C: reads, zipfian"),
    (Kind::YcsbD, "ycsb-d", "YCSB D: 95 % reads of the latest records, 5 % inserts"),
    (Kind::YcsbE, "ycsb-e", "YCSB E: 95 % scans of 1 to 100 records, zipfian, 5 % inserts"),
    (Kind::YcsbF, "ycsb-f", "YCSB F: 50 % reads, 50 % reads followed by a write, zipfian"),
    (Kind::Flush, "flush", "write memory out to files"),
    (Kind::Compact, "compact", "bring the whole tree into its final shape"),
    (Kind::WaitForIdle, "waitforidle", "wait until background work is done"),
    (Kind::Stats, "stats", "print the engine's own statistics"),
];

/// The list that runs when none is given.
pub const STANDARD: &str = "fillseq,overwrite,readrandom,readrandom:16,readmissing,seekrandom,\
                            readwhilewriting,readwhilewriting:16,overwrite:16";

impl Kind {
    /// The name that users write.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    /// Whether its operations are single calls on the database rather than loops over keys.
    pub fn is_maintenance(self) -> bool {
        matches!(self, Self::Flush | Self::Compact | Self::WaitForIdle | Self::Stats)
    }

    /// Whether it writes from the threads that are measured.
    pub fn writes(self) -> bool {
        use Kind::*;
        matches!(
            self,
            FillSeq
                | FillRandom
                | FillUniqueRandom
                | Overwrite
                | DeleteRandom
                | DeleteSeq
                | UpdateRandom
                | FillSync
                | Fill100K
                | YcsbLoad
                | YcsbA
                | YcsbB
                | YcsbD
                | YcsbE
                | YcsbF
        )
    }

    /// Whether it is one of YCSB's, which read and write.
    pub fn is_mix(self) -> bool {
        use Kind::*;
        matches!(self, YcsbA | YcsbB | YcsbC | YcsbD | YcsbE | YcsbF)
    }

    /// Whether it is one of YCSB's, the load included.
    pub fn is_ycsb(self) -> bool {
        self.is_mix() || self == Self::YcsbLoad
    }

    /// Whether it can be an open loop: every operation is one that a user might ask for at any time.
    pub fn can_be_paced(self) -> bool {
        self.can_repeat()
    }

    /// Whether it reads, seeks or iterates from the threads that are measured.
    pub fn reads(self) -> bool {
        !self.is_maintenance() && (!self.writes() || self == Self::UpdateRandom || self.is_mix())
    }

    /// Whether its writes can be grouped in batches. The others are durable each, or read and written
    /// each.
    pub fn can_batch(self) -> bool {
        use Kind::*;
        matches!(
            self,
            FillSeq
                | FillRandom
                | FillUniqueRandom
                | Overwrite
                | DeleteRandom
                | DeleteSeq
                | YcsbLoad
        )
    }

    /// Whether a writer of `--write-rate` runs beside the threads that are measured.
    pub fn has_background_writer(self) -> bool {
        matches!(self, Self::ReadWhileWriting | Self::SeekRandomWhileWriting)
    }

    /// Whether `--duration` alone sets its length. The others have a natural end, which a duration
    /// can only bring forward.
    pub fn can_repeat(self) -> bool {
        use Kind::*;
        !self.is_maintenance()
            && !matches!(
                self,
                FillSeq
                    | FillRandom
                    | FillUniqueRandom
                    | DeleteRandom
                    | DeleteSeq
                    | Fill100K
                    | YcsbLoad
                    | ReadSeq
                    | ReadReverse
            )
    }
}

/// One entry of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// What it does.
    pub kind: Kind,
    /// Its own number of threads, if it has one.
    pub threads: Option<usize>,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.threads {
            Some(threads) => write!(f, ":{threads}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Workload {
    /// Parses a comma list.
    pub fn parse_list(list: &str) -> Result<Vec<Self>> {
        let parsed: Vec<Self> = list
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(Self::parse)
            .collect::<Result<_>>()?;
        if parsed.is_empty() {
            return Err(Error::usage(
                "--workloads is empty: name at least one, fillseq for instance",
            ));
        }
        Ok(parsed)
    }

    /// Parses one entry, `name` or `name:threads`.
    pub fn parse(entry: &str) -> Result<Self> {
        let (name, threads) = match entry.split_once(':') {
            Some((name, threads)) => (name, Some(parse_threads(entry, threads)?)),
            None => (entry, None),
        };
        let (kind, canonical, _) = ALL
            .iter()
            .find(|(_, known, _)| known.eq_ignore_ascii_case(name))
            .ok_or_else(|| unknown(name))?;
        let alone = kind.is_maintenance() || matches!(kind, Kind::ReadSeq | Kind::ReadReverse);
        if alone && threads.is_some_and(|threads| threads > 1) {
            return Err(Error::usage(format!(
                "{canonical} runs on one thread: write `{canonical}` without `:{}`",
                threads.unwrap_or(1)
            )));
        }
        Ok(Self { kind: *kind, threads })
    }
}

fn parse_threads(entry: &str, threads: &str) -> Result<usize> {
    match threads.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err(Error::usage(format!(
            "`{entry}`: the number of threads after the colon must be 1 to 1024"
        ))),
    }
}

/// Names the workload that was probably meant, or all of them.
fn unknown(name: &str) -> Error {
    let wanted = name.to_ascii_lowercase();
    let near = ALL.iter().map(|(_, known, _)| *known).min_by_key(|known| distance(&wanted, known));
    match near {
        Some(near) if distance(&wanted, near) <= 3 => {
            Error::usage(format!("there is no workload `{name}`: did you mean `{near}`?"))
        }
        _ => {
            let names: Vec<&str> = ALL.iter().map(|(_, known, _)| *known).collect();
            Error::usage(format!("there is no workload `{name}`: choose from {}", names.join(", ")))
        }
    }
}

/// Levenshtein's edit distance, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_parse() {
        type Parsed = &'static [(Kind, Option<usize>)];
        let cases: &[(&str, Parsed)] = &[
            ("fillseq", &[(Kind::FillSeq, None)]),
            ("readrandom:16", &[(Kind::ReadRandom, Some(16))]),
            (" fillseq , ,compact,", &[(Kind::FillSeq, None), (Kind::Compact, None)]),
            ("fill100k,FILLSYNC:2", &[(Kind::Fill100K, None), (Kind::FillSync, Some(2))]),
            ("flush:1", &[(Kind::Flush, Some(1))]),
        ];
        for (text, expected) in cases {
            let parsed: Vec<_> = Workload::parse_list(text)
                .unwrap()
                .into_iter()
                .map(|workload| (workload.kind, workload.threads))
                .collect();
            assert_eq!(&parsed, expected, "{text}");
        }
    }

    #[test]
    fn mistakes_are_answered_with_a_remedy() {
        let cases = [
            ("", "empty"),
            ("fillsqe", "did you mean `fillseq`"),
            ("frobnicate-everything", "choose from fillseq, "),
            ("readrandom:0", "1 to 1024"),
            ("readrandom:many", "1 to 1024"),
            ("readseq:2", "one thread"),
            ("compact:2", "one thread"),
        ];
        for (text, expected) in cases {
            let error = Workload::parse_list(text).unwrap_err();
            assert!(matches!(error, Error::Usage(_)));
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_table_names_every_workload_once() {
        for (i, (kind, name, about)) in ALL.iter().enumerate() {
            assert_eq!(kind.name(), *name);
            assert!(!about.is_empty());
            assert!(
                ALL[i + 1..]
                    .iter()
                    .all(|(other, other_name, _)| other != kind && other_name != name)
            );
        }
        assert_eq!(Workload::parse_list(STANDARD).unwrap().len(), 9);
    }

    #[test]
    fn edit_distance() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
