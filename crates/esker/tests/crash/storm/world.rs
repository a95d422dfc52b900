//! What a database and its branches should hold: the world, what steps do to it, and the history of one life.

use esker::Db;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const SPACES: [&str; 2] = ["default", "other"];

/// By keyspace and key.
pub(super) type Map = BTreeMap<(usize, Vec<u8>), Vec<u8>>;
/// The database itself has the empty name; named snapshots begin with `s`.
pub(super) type World = BTreeMap<String, Map>;

/// What a step does to the world.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Nothing,
    /// Entries of a root, removed where there is no value; the first one is its mark.
    Write(String, Vec<(usize, Vec<u8>, Option<Vec<u8>>)>),
    /// A range of the first keyspace, and the mark.
    RemoveRange(String, Vec<u8>, Vec<u8>, Vec<u8>),
    Ingest(Ingested),
    Copy(String, String),
    Drop(String),
    /// The removal of the mark of an earlier write, which is in one root only.
    Unmark(String, Vec<u8>),
}

/// What is ingested to a root: in the first keyspace a mark, ranges that are removed, and entries in the order of
/// their keys, removed where there is no value.
#[derive(Debug, Clone)]
pub(super) struct Ingested {
    pub(super) root: String,
    pub(super) mark: Vec<u8>,
    pub(super) ranges: Vec<(usize, Vec<u8>, Vec<u8>)>,
    pub(super) entries: BTreeMap<(usize, Vec<u8>), Option<Vec<u8>>>,
}

impl Ingested {
    fn apply(&self, world: &mut World) {
        let Some(map) = world.get_mut(&self.root) else { return };
        for (space, low, high) in &self.ranges {
            map.retain(|(of, key), _| of != space || key < low || key >= high);
        }
        for (place, value) in &self.entries {
            match value {
                Some(value) => map.insert(place.clone(), value.clone()),
                None => map.remove(place),
            };
        }
    }
}

impl Change {
    pub(super) fn apply(&self, world: &mut World) {
        match self {
            Self::Nothing => {}
            Self::Write(root, entries) => {
                let Some(map) = world.get_mut(root) else { return };
                for (space, key, value) in entries {
                    match value {
                        Some(value) => map.insert((*space, key.clone()), value.clone()),
                        None => map.remove(&(*space, key.clone())),
                    };
                }
            }
            Self::RemoveRange(root, low, high, mark) => {
                let Some(map) = world.get_mut(root) else { return };
                map.retain(|(space, key), _| *space != 0 || key < low || key >= high);
                map.insert((0, mark.clone()), b"removed".to_vec());
            }
            Self::Ingest(ingested) => ingested.apply(world),
            Self::Copy(from, to) => {
                let Some(map) = world.get(from).cloned() else { return };
                world.insert(to.clone(), map);
            }
            Self::Drop(name) => drop(world.remove(name)),
            Self::Unmark(root, mark) => {
                let Some(map) = world.get_mut(root) else { return };
                map.remove(&(0, mark.clone()));
            }
        }
    }

    /// Whether a world shows that it happened, if that was not certain.
    fn shows_in(&self, found: &World) -> bool {
        let marked =
            |mark: &Vec<u8>| found.values().any(|map| map.contains_key(&(0, mark.clone())));
        match self {
            Self::Nothing => false,
            Self::Write(_, entries) => marked(&entries[0].1),
            Self::RemoveRange(.., mark) => marked(mark),
            Self::Ingest(ingested) => marked(&ingested.mark),
            Self::Copy(_, to) => found.contains_key(to),
            Self::Drop(name) => !found.contains_key(name),
            Self::Unmark(root, mark) => {
                found.get(root).is_some_and(|map| !map.contains_key(&(0, mark.clone())))
            }
        }
    }
}

/// The steps of one life.
#[derive(Default)]
pub(super) struct History {
    pub(super) base: World,
    /// What each did, and whether it returned without an error.
    pub(super) steps: Vec<(Change, bool)>,
}

impl History {
    /// After how many steps the world was as `found`, of those between `low` and `high`.
    pub(super) fn locate(&self, found: &World, low: usize, high: usize) -> Result<usize, String> {
        let mut world = self.base.clone();
        let mut first = None;
        for number in 0..=high.min(self.steps.len()) {
            if number >= low {
                if world == *found {
                    return Ok(number);
                }
                first.get_or_insert_with(|| difference(found, &world));
            }
            if let Some((change, certain)) = self.steps.get(number)
                && (*certain || change.shows_in(found))
            {
                change.apply(&mut world);
            }
        }
        let first = first.unwrap_or_default();
        Err(format!("not what stood after any of the steps {low} to {high}; after {low}: {first}"))
    }
}

pub(super) fn difference(found: &World, expected: &World) -> String {
    let mut text = String::new();
    let names: BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    for name in names {
        match (found.get(name), expected.get(name)) {
            (Some(found), Some(expected)) if found != expected => {
                let show =
                    |(space, key): &(usize, Vec<u8>)| format!("{space}/{}", key.escape_ascii());
                let more = found.iter().filter(|(key, value)| expected.get(*key) != Some(value));
                let more: Vec<_> = more.map(|(key, _)| show(key)).take(12).collect();
                let lost = expected.keys().filter(|key| !found.contains_key(*key));
                let lost: Vec<_> = lost.map(show).take(12).collect();
                text += &format!("[{name:?}: more or other {more:?}, lost {lost:?}] ");
            }
            (Some(_), Some(_)) => {}
            (found, _) => text += &format!("[{name:?} is there: {}] ", found.is_some()),
        }
    }
    text
}

pub(super) fn root(db: &Db, name: &str) -> esker::Result<Db> {
    if name.is_empty() { Ok(db.clone()) } else { db.open_branch(name) }
}

pub(super) fn read_root(db: &Db) -> esker::Result<Map> {
    let mut map = Map::new();
    let names = db.keyspaces()?;
    for (space, name) in
        SPACES.iter().enumerate().filter(|(_, name)| names.iter().any(|n| n == *name))
    {
        for entry in db.keyspace(name)?.iter()? {
            let (key, value) = entry?;
            map.insert((space, key), value);
        }
    }
    Ok(map)
}

pub(super) fn read(db: &Db) -> esker::Result<World> {
    let mut world = World::from([(String::new(), read_root(db)?)]);
    for name in db.branches()? {
        world.insert(name.clone(), read_root(&db.open_branch(&name)?)?);
    }
    for name in db.named_snapshots()? {
        world.insert(name.clone(), read_root(&db.open_named_snapshot(&name)?)?);
    }
    Ok(world)
}
