//! Every engine that answers for LinkBench's tables, against a naive model.

use crate::Error;
use crate::engines::Durability;
use crate::engines::links::{Count, Link, LinkSession, keys};
use crate::engines::registry::REGISTRY;
use crate::engines::{Direction, Engine, EngineSpec, OpenOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::path::Path;

const KINDS: [u64; 2] = [123, 124];
const ALL: (u64, u64) = (0, i64::MAX as u64);
const CLASSES: [Durability; 3] = [Durability::Buffered, Durability::Process, Durability::Disk];

/// The tables as two maps.
#[derive(Default)]
struct Model {
    links: BTreeMap<(u64, u64, u64), Link>,
    counts: BTreeMap<(u64, u64), Count>,
}

impl Model {
    fn recount(&mut self, link: &Link, more: bool) {
        let first = Count {
            id: link.id1,
            kind: link.kind,
            count: u64::from(more),
            time: link.time,
            version: link.version,
        };
        let known = |count: &mut Count| {
            count.count = if more { count.count + 1 } else { count.count.saturating_sub(1) };
            count.version += 1;
        };
        self.counts.entry((link.kind, link.id1)).and_modify(known).or_insert(first);
    }

    fn add(&mut self, link: &Link) -> bool {
        let before = self.links.insert((link.kind, link.id1, link.id2), link.clone());
        let was_visible = before.as_ref().is_some_and(|before| before.visible);
        if was_visible != link.visible {
            self.recount(link, link.visible);
        }
        before.is_none()
    }

    fn delete(&mut self, kind: u64, id1: u64, id2: u64) -> bool {
        let Some(link) = self.links.get_mut(&(kind, id1, id2)) else { return false };
        let was_visible = std::mem::replace(&mut link.visible, false);
        if was_visible {
            let link = link.clone();
            self.recount(&link, false);
        }
        was_visible
    }

    fn list(&self, kind: u64, id1: u64, times: (u64, u64)) -> Vec<Link> {
        let seen = |link: &&Link| {
            (link.kind, link.id1) == (kind, id1)
                && link.visible
                && (times.0..=times.1).contains(&link.time)
        };
        let mut links: Vec<Link> = self.links.values().filter(seen).cloned().collect();
        links.sort_by_key(|link| std::cmp::Reverse(link.time));
        links
    }

    fn count(&self, kind: u64, id: u64) -> u64 {
        self.counts.get(&(kind, id)).map_or(0, |count| count.count)
    }

    /// Everything that lies in an ordered map.
    fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let rows = self.links.values().flat_map(|link| {
            let key = keys::row_key(link.kind, link.id1, link.id2);
            [(key, keys::row_value(link)), (keys::index_key(link), Vec::new())]
        });
        let counts = self.counts.values();
        let counts =
            counts.map(|count| (keys::count_key(count.kind, count.id), keys::count_value(count)));
        let mut all: Vec<_> = rows.chain(counts).collect();
        all.sort_unstable();
        all
    }
}

fn link(rng: &mut SmallRng, time: u64) -> Link {
    let data = (0..rng.random_range(0..40)).map(|_| rng.random()).collect();
    let kind = KINDS[rng.random_range(0..2)];
    let (id1, id2) = (rng.random_range(1..4), rng.random_range(1..8));
    let (visible, version) = (rng.random_bool(0.85), rng.random_range(0..3));
    Link { kind, id1, id2, visible, time, version, data }
}

fn listed(
    session: &mut dyn LinkSession,
    kind: u64,
    id1: u64,
    times: (u64, u64),
    limit: usize,
) -> Vec<Link> {
    let mut found = Vec::new();
    session.link_list(kind, id1, times, limit, &mut |link| found.push(link.clone())).unwrap();
    found
}

fn rows(session: &mut dyn LinkSession, kind: u64, id1: u64, id2s: &[u64]) -> Vec<Link> {
    let mut found = Vec::new();
    session.multiget(kind, id1, id2s, &mut |link| found.push(link.clone())).unwrap();
    found.sort_by_key(|link: &Link| link.id2);
    found
}

/// One step that changes something, and its answers.
fn change(session: &mut dyn LinkSession, model: &mut Model, rng: &mut SmallRng, time: u64) {
    let link = link(rng, time);
    let Link { kind, id1, id2, .. } = link;
    match rng.random_range(0..4) {
        0 => assert_eq!(session.delete_link(kind, id1, id2).unwrap(), model.delete(kind, id1, id2)),
        1 => assert_eq!(session.update_link(&link).unwrap(), !model.add(&link)),
        _ => assert_eq!(session.add_link(&link).unwrap(), model.add(&link)),
    }
}

/// Everything that can be asked.
fn compare(session: &mut dyn LinkSession, model: &Model, rng: &mut SmallRng, newest: u64) {
    for kind in KINDS {
        for id1 in 1..5 {
            assert_eq!(session.count(kind, id1).unwrap(), model.count(kind, id1));
            let all = model.list(kind, id1, ALL);
            assert_eq!(
                session.count(kind, id1).unwrap(),
                all.len() as u64,
                "counts are of visible links"
            );
            assert_eq!(listed(session, kind, id1, ALL, 1_000), all);
            let limit = rng.random_range(0..5);
            assert_eq!(listed(session, kind, id1, ALL, limit), all[..limit.min(all.len())]);
            let from = rng.random_range(0..=newest);
            let times = (from, rng.random_range(from..=newest));
            assert_eq!(listed(session, kind, id1, times, 1_000), model.list(kind, id1, times));
            let id2s: Vec<u64> = (1..9).filter(|_| rng.random_bool(0.6)).collect();
            let there = id2s.iter().filter_map(|id2| model.links.get(&(kind, id1, *id2)).cloned());
            assert_eq!(rows(session, kind, id1, &id2s), there.collect::<Vec<Link>>());
        }
    }
}

/// What an ordered map holds is what the model has, and nothing else.
fn holds(engine: &dyn Engine, spec: &EngineSpec, model: &Model) {
    if spec.only_links() {
        return;
    }
    let mut session = engine.session().unwrap();
    let mut cursor = session.cursor(None, Direction::Forward).unwrap();
    let mut all = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        all.push((key.to_vec(), value.to_vec()));
    }
    assert_eq!(all, model.entries());
}

fn sequence(engine: &dyn Engine, spec: &EngineSpec, seed: u64, steps: u64) -> Model {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut model = Model::default();
    let mut session = engine.link_store().unwrap().links().unwrap();
    let loaded: Vec<Link> = (1..6)
        .map(|id2| Link { kind: KINDS[0], id1: 1, id2, visible: true, ..link(&mut rng, id2) })
        .collect();
    let count = Count { id: 1, kind: KINDS[0], count: 5, time: 5, version: 0 };
    session.load_links(&loaded).unwrap();
    session.load_counts(&[count]).unwrap();
    session.load_links(&[]).unwrap();
    loaded.iter().for_each(|link| drop(model.links.insert((link.kind, 1, link.id2), link.clone())));
    model.counts.insert((KINDS[0], 1), count);
    compare(&mut *session, &model, &mut rng, 10);
    for step in 0..steps {
        change(&mut *session, &mut model, &mut rng, 10 + step);
        if step % 20 == 0 {
            compare(&mut *session, &model, &mut rng, 10 + step);
        }
    }
    compare(&mut *session, &model, &mut rng, 10 + steps);
    drop(session);
    holds(engine, spec, &model);
    model
}

/// Threads that change the same links at once: what each added and hid adds up.
fn threads(engine: &dyn Engine, seed: u64) {
    const ID: u64 = 100;
    let store = engine.link_store().unwrap();
    let run = |thread: u64| {
        let mut rng = SmallRng::seed_from_u64(seed ^ thread);
        let mut session = store.links().unwrap();
        let mut change = 0;
        for step in 0..60 {
            let id2 = rng.random_range(1..6);
            if rng.random_bool(0.5) {
                let (time, data) = (1 + step * 4 + thread, vec![thread as u8]);
                let link = Link { kind: 9, id1: ID, id2, visible: true, time, version: 0, data };
                session.add_link(&link).unwrap();
            } else {
                change -= i64::from(session.delete_link(9, ID, id2).unwrap());
            }
        }
        change
    };
    let run = &run;
    let changes: Vec<i64> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|thread| scope.spawn(move || run(thread))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(changes.iter().sum::<i64>() < 0, "somebody hid a link");
    let mut session = store.links().unwrap();
    let mut visible = rows(&mut *session, 9, ID, &[1, 2, 3, 4, 5]);
    visible.retain(|link| link.visible);
    let mut listed = listed(&mut *session, 9, ID, ALL, 1_000);
    assert!(listed.is_sorted_by(|a, b| a.time >= b.time));
    listed.sort_by_key(|link| link.id2);
    assert_eq!(listed, visible);
    assert_eq!(session.count(9, ID).unwrap(), visible.len() as u64);
}

fn opened(spec: &EngineSpec, dir: &Path, durability: Durability) -> Option<Box<dyn Engine>> {
    let options = OpenOptions {
        dir,
        memory: Some(32 << 20),
        write_buffer_bytes: None,
        durability,
        transactions: true,
    };
    match spec.open(&options) {
        Ok(engine) => Some(engine),
        Err(Error::Usage(why)) => {
            let required = std::env::var_os("ESKER_PEERS_REQUIRED").is_some();
            assert!(!required, "ESKER_PEERS_REQUIRED is set, and {why}");
            println!("SKIPPED {spec}: {why}");
            None
        }
        Err(error) => panic!("{spec}: {error}"),
    }
}

#[test]
fn every_engine_with_links_does_what_linkbench_asks() {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("ESKER_SEED={seed}");
    let here = |entry: &&crate::engines::spec::Entry| entry.links && entry.open.is_some();
    let mut tested = 0;
    for entry in REGISTRY.iter().filter(here) {
        let spec = EngineSpec::parse(&entry.name()).unwrap();
        for class in CLASSES.into_iter().filter(|class| spec.offers(*class).is_ok()) {
            // A sync for each of many small transactions takes its time.
            let steps = if class == Durability::Disk { 40 } else { 400 };
            let parent = tempfile::tempdir().unwrap();
            let dir = parent.path().join("db");
            let Some(engine) = opened(&spec, &dir, class) else { continue };
            let told = engine.settings();
            let says = told.iter().any(|(name, _)| name == "transactions");
            assert!(says || spec.only_links(), "{spec}: {told:?}");
            let model = sequence(&*engine, &spec, seed, steps);
            if spec.has_files() {
                engine.close().unwrap();
                let engine = opened(&spec, &dir, class).unwrap();
                holds(&*engine, &spec, &model);
                let mut session = engine.link_store().unwrap().links().unwrap();
                compare(&mut *session, &model, &mut SmallRng::seed_from_u64(seed), 10 + steps);
                drop(session);
                engine.close().unwrap();
            }
            if class != Durability::Disk {
                let dir = parent.path().join("threads");
                let engine = opened(&spec, &dir, class).unwrap();
                threads(&*engine, seed);
                engine.close().unwrap();
            }
            println!("{spec} {class:?}: {} links", model.links.len());
            tested += 1;
        }
    }
    assert!(tested >= 3, "Esker alone offers three classes");
}
