//! Whether a history of transactions is serializable: the dependency graph, and cycles in it.
//!
//! Every write of a history writes a value that no other write has, so a read names the
//! transaction whose write it saw. The universe of keys is small and known: a range that was read
//! is a read of every key in it, those that were absent included, so predicates need no edges of
//! their own. After Adya ("Weak consistency", 1999), with the edges
//!
//! - *ww*: from the writer of a version to the writer of the next version of the key,
//! - *wr*: from the writer of a version to each reader of it,
//! - *rw*: from each reader of a version to the writer of the next one,
//!
//! a history is serializable exactly if the graph of its committed transactions has no cycle. The
//! order of the versions of a key is that of the positions that the commits returned. That a read
//! found a value that no committed transaction left behind is an anomaly as well.
//!
//! Where a read found nothing, its key may have been absent several times. A transaction that
//! wrote has read, if all is well, what was there before its position. One that only read has read
//! at some moment not before the newest value that it saw: the first such moment at which all
//! that it found absent was absent is taken. A right history is never blamed for that choice:
//! if there is such a moment at all, none before the first one will do.

pub mod driver;

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A key: its keyspace, and its rank among the keys of the universe.
pub type Key = (usize, usize);

/// What a committed transaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The position that the commit returned; `None`: it wrote nothing.
    pub position: Option<u64>,
    /// Keys that it read from others, and the values it found.
    pub reads: Vec<(Key, Option<u64>)>,
    /// Keys that it wrote, each once, and the values it left; `None`: it removed the key.
    pub writes: Vec<(Key, Option<u64>)>,
}

/// How one transaction depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// Its version came next.
    WriteWrite,
    /// It read the version.
    WriteRead,
    /// It replaced the version that was read.
    ReadWrite,
}

/// What is wrong with a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anomaly {
    /// A transaction read a value that no committed transaction left behind.
    UnknownValue {
        /// Which transaction.
        reader: usize,
        /// What it read.
        key: Key,
        /// The value.
        value: u64,
    },
    /// Transactions that cannot stand in any order: each depends on the one before, and the first
    /// on the last.
    Cycle(Vec<(usize, Edge, Key)>),
}

/// The versions of one key, by position, each with its writer and its value.
type Versions = BTreeMap<u64, (usize, Option<u64>)>;

/// A history, made ready for the search.
struct Graph<'h> {
    history: &'h [Record],
    versions: HashMap<Key, Versions>,
    /// Who left a value, and at which position.
    writers: HashMap<(Key, u64), (usize, u64)>,
    edges: Vec<BTreeMap<usize, (Edge, Key)>>,
}

/// Looks for an anomaly in what committed.
pub fn check(history: &[Record]) -> Result<(), Anomaly> {
    let mut graph = Graph {
        history,
        versions: HashMap::new(),
        writers: HashMap::new(),
        edges: vec![BTreeMap::new(); history.len()],
    };
    graph.collect();
    graph.connect_writers();
    for reader in 0..history.len() {
        graph.connect_reader(reader)?;
    }
    graph.cycle().map_or(Ok(()), |cycle| Err(Anomaly::Cycle(cycle)))
}

impl Graph<'_> {
    fn collect(&mut self) {
        for (number, record) in self.history.iter().enumerate() {
            let Some(position) = record.position else { continue };
            for (key, value) in &record.writes {
                self.versions.entry(*key).or_default().insert(position, (number, *value));
                if let Some(value) = value {
                    self.writers.insert((*key, *value), (number, position));
                }
            }
        }
    }

    fn connect(&mut self, from: usize, to: usize, edge: Edge, key: Key) {
        if from != to {
            self.edges[from].entry(to).or_insert((edge, key));
        }
    }

    fn connect_writers(&mut self) {
        let mut pairs = Vec::new();
        for (key, versions) in &self.versions {
            let writers: Vec<usize> = versions.values().map(|(writer, _)| *writer).collect();
            pairs.extend(writers.windows(2).map(|pair| (pair[0], pair[1], *key)));
        }
        for (from, to, key) in pairs {
            self.connect(from, to, Edge::WriteWrite, key);
        }
    }

    /// The newest version of a key before a position; `None`: the key was never written.
    fn version_before(&self, key: Key, position: u64) -> Option<(u64, Option<u64>)> {
        let (position, (_, value)) = self.versions.get(&key)?.range(..position).next_back()?;
        Some((*position, *value))
    }

    /// Whether a key was absent right before a position.
    fn is_absent(&self, key: Key, position: u64) -> bool {
        self.version_before(key, position).is_none_or(|(_, value)| value.is_none())
    }

    /// The moment at which a transaction found what it found absent: see the head of the module.
    fn moment(&self, record: &Record) -> u64 {
        if let Some(position) = record.position {
            return position;
        }
        let seen = record.reads.iter().filter_map(|(key, value)| {
            self.writers.get(&(*key, (*value)?)).map(|(_, position)| position + 1)
        });
        let mut moment = seen.max().unwrap_or(0);
        let absent = || record.reads.iter().filter(|(_, value)| value.is_none());
        // Each round goes on to a later removal, of which there are finitely many.
        while let Some((key, _)) = absent().find(|(key, _)| !self.is_absent(*key, moment)) {
            let later = self.versions.get(key).into_iter().flat_map(|all| all.range(moment..));
            let mut removals = later.filter(|(_, (_, value))| value.is_none());
            let Some((position, _)) = removals.next() else { break };
            moment = position + 1;
        }
        moment
    }

    fn connect_reader(&mut self, reader: usize) -> Result<(), Anomaly> {
        let record = &self.history[reader];
        let moment = self.moment(record);
        for (key, value) in &record.reads {
            let version = match value {
                Some(value) => {
                    let writer = self.writers.get(&(*key, *value));
                    let (_, position) =
                        writer.ok_or(Anomaly::UnknownValue { reader, key: *key, value: *value })?;
                    Some(*position)
                }
                None => {
                    let before = self.versions.get(key).into_iter();
                    let mut before = before.flat_map(|all| all.range(..moment)).rev();
                    let removal = before.find(|(_, (_, value))| value.is_none());
                    removal.map(|(position, _)| *position)
                }
            };
            let Some(versions) = self.versions.get(key) else { continue };
            let writer = version.and_then(|at| versions.get(&at)).map(|(writer, _)| *writer);
            let from = version.map_or(0, |at| at + 1);
            // The reader itself may have written the next version: that is no dependency.
            let next = versions.range(from..).next().map(|(_, (writer, _))| *writer);
            if let Some(writer) = writer {
                self.connect(writer, reader, Edge::WriteRead, *key);
            }
            if let Some(next) = next {
                self.connect(reader, next, Edge::ReadWrite, *key);
            }
        }
        Ok(())
    }

    /// A shortest cycle through some transaction that lies on one.
    fn cycle(&self) -> Option<Vec<(usize, Edge, Key)>> {
        // What has no way in is on no cycle, and neither is what then has none (Kahn).
        let mut ways_in = vec![0_usize; self.edges.len()];
        self.edges.iter().flat_map(BTreeMap::keys).for_each(|to| ways_in[*to] += 1);
        let mut free: Vec<usize> = (0..ways_in.len()).filter(|at| ways_in[*at] == 0).collect();
        let mut left: BTreeSet<usize> = (0..ways_in.len()).collect();
        while let Some(at) = free.pop() {
            left.remove(&at);
            for to in self.edges[at].keys() {
                ways_in[*to] -= 1;
                if ways_in[*to] == 0 {
                    free.push(*to);
                }
            }
        }
        // What is left may lie behind a cycle only: try until one leads back.
        left.iter().find_map(|start| self.way_back(*start, &left))
    }

    /// A shortest way from a transaction to itself (breadth first).
    fn way_back(&self, start: usize, within: &BTreeSet<usize>) -> Option<Vec<(usize, Edge, Key)>> {
        let mut came_from: HashMap<usize, usize> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for to in self.edges[at].keys().filter(|to| within.contains(to)) {
                if *to == start {
                    let mut way = vec![(at, self.edges[at][to])];
                    let mut node = at;
                    while let Some(before) = came_from.get(&node) {
                        way.push((*before, self.edges[*before][&node]));
                        node = *before;
                    }
                    way.reverse();
                    let steps = way.into_iter().map(|(at, (edge, key))| (at, edge, key));
                    return Some(steps.collect());
                }
                if *to != start && !came_from.contains_key(to) {
                    came_from.insert(*to, at);
                    queue.push_back(*to);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
