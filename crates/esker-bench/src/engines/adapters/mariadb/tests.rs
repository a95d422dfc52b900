//! LinkBench's tables on both engines, against a model; and servers that end when they should.

use super::server;
use crate::Error;
use crate::engines::links::{Count, Link, LinkSession};
use crate::engines::lookup::spec;
use crate::engines::{Durability, Engine, OpenOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::path::Path;

const MEMORY: u64 = 16 << 20;
const ENGINES: [&str; 2] = ["mariadb-innodb", "mariadb-myrocks"];

/// Opens it, unless this machine lacks what it needs and nobody requires it.
fn opened(name: &str, dir: &Path, durability: Durability) -> Option<Box<dyn Engine>> {
    let options = OpenOptions {
        dir,
        memory: Some(MEMORY),
        write_buffer_bytes: None,
        durability,
        transactions: true,
    };
    match spec(name).open(&options) {
        Ok(engine) => Some(engine),
        Err(Error::Usage(why)) => {
            assert!(why.contains("apt-get install mariadb-server"), "{why}");
            let required = std::env::var_os("ESKER_PEERS_REQUIRED").is_some();
            assert!(!required, "ESKER_PEERS_REQUIRED is set, and {why}");
            println!("SKIPPED {name}: {why}");
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Whether a process of this number is there.
fn lives(pid: u32) -> bool {
    nix::sys::signal::kill(process(pid), None).is_ok()
}

fn process(pid: u32) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap())
}

/// What the tables should hold.
#[derive(Default)]
struct Model {
    links: BTreeMap<(u64, u64, u64), Link>,
    counts: BTreeMap<(u64, u64), u64>,
}

impl Model {
    fn change(&mut self, kind: u64, id: u64, by: i64) {
        let count = self.counts.entry((id, kind)).or_default();
        *count = count.saturating_add_signed(by);
    }

    fn add(&mut self, link: &Link) -> bool {
        let before = self.links.insert((link.kind, link.id1, link.id2), link.clone());
        match (before.as_ref().is_some_and(|before| before.visible), link.visible) {
            (false, true) => self.change(link.kind, link.id1, 1),
            (true, false) => self.change(link.kind, link.id1, -1),
            _ => (),
        }
        before.is_none()
    }

    fn delete(&mut self, kind: u64, id1: u64, id2: u64) -> bool {
        let Some(link) = self.links.get_mut(&(kind, id1, id2)).filter(|link| link.visible) else {
            return false;
        };
        link.visible = false;
        self.change(kind, id1, -1);
        true
    }

    fn list(&self, kind: u64, id1: u64, times: (u64, u64), limit: usize) -> Vec<Link> {
        let of_id = self.links.range((kind, id1, 0)..=(kind, id1, u64::MAX));
        let seen = |link: &&Link| link.visible && (times.0..=times.1).contains(&link.time);
        let mut links: Vec<Link> = of_id.map(|(_, link)| link).filter(seen).cloned().collect();
        links.sort_by_key(|link| std::cmp::Reverse((link.time, link.id2)));
        links.truncate(limit);
        links
    }
}

/// Few ids and times, so that requests meet; the times of any two links of an id may be the same.
fn any_link(rng: &mut SmallRng) -> Link {
    let length = rng.random_range(0..20);
    Link {
        kind: 7 + rng.random_range(0..2),
        id1: u64::MAX - rng.random_range(0..4),
        id2: rng.random_range(0..6),
        visible: rng.random_bool(0.8),
        time: 1_000 + rng.random_range(0..8),
        version: rng.random_range(0..=u32::MAX),
        data: (0..length)
            .map(|_| *[0, b' ', b'\'', b'\\', 0xFF].get(rng.random_range(0..5)).unwrap())
            .collect(),
    }
}

fn list(
    session: &mut dyn LinkSession,
    (kind, id1): (u64, u64),
    times: (u64, u64),
    limit: usize,
) -> Vec<Link> {
    let mut links = Vec::new();
    session.link_list(kind, id1, times, limit, &mut |link| links.push(link.clone())).unwrap();
    links
}

/// One request, and what the model says of it.
fn request(session: &mut dyn LinkSession, model: &mut Model, rng: &mut SmallRng) {
    let link = any_link(rng);
    let (kind, id1, id2) = (link.kind, link.id1, link.id2);
    match rng.random_range(0..6) {
        0 => assert_eq!(session.add_link(&link).unwrap(), model.add(&link), "{link:?}"),
        1 => assert_eq!(session.update_link(&link).unwrap(), !model.add(&link), "{link:?}"),
        2 => {
            let hidden = session.delete_link(kind, id1, id2).unwrap();
            assert_eq!(hidden, model.delete(kind, id1, id2), "{link:?}");
        }
        3 => {
            let count = model.counts.get(&(id1, kind)).copied().unwrap_or(0);
            assert_eq!(session.count(kind, id1).unwrap(), count, "{link:?}");
        }
        4 => {
            let asked: Vec<u64> = (0..rng.random_range(0..4)).map(|n| id2 + n).collect();
            let mut found = Vec::new();
            session.multiget(kind, id1, &asked, &mut |link| found.push(link.clone())).unwrap();
            found.sort_by_key(|link| link.id2);
            let there = |id2: &u64| model.links.get(&(kind, id1, *id2)).cloned();
            assert_eq!(found, asked.iter().filter_map(there).collect::<Vec<_>>());
        }
        _ => {
            let from = 1_000 + rng.random_range(0..8);
            let times = (from, if rng.random_bool(0.5) { u64::MAX } else { from + 3 });
            let limit = rng.random_range(1..5);
            let found = list(session, (kind, id1), times, limit);
            assert_eq!(found, model.list(kind, id1, times, limit));
        }
    }
}

#[test]
fn links_are_as_the_model_says_and_stay_when_the_server_is_stopped() {
    let seed: u64 = match std::env::var("ESKER_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rand::random(),
    };
    println!("ESKER_SEED={seed}");
    for name in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let Some(engine) = opened(name, dir.path(), Durability::Process) else { continue };
        let (mut model, mut rng) = (Model::default(), SmallRng::seed_from_u64(seed));
        let mut session = engine.link_store().unwrap().links().unwrap();
        (0..1_500).for_each(|_| request(&mut *session, &mut model, &mut rng));
        drop(session);
        let held = model.links.len();
        println!("{name}: {}, {held} links", engine.version());
        assert!(engine.version().starts_with("MariaDB 1") && !engine.settings().is_empty());
        engine.flush().unwrap();
        engine.compact().unwrap();
        engine.wait_idle().unwrap();
        assert!(engine.stats().len() > 500, "{}", engine.stats());
        if name == "mariadb-myrocks" {
            let bytes = engine.bytes_written().unwrap();
            assert!(bytes.user > 0 && bytes.log > 0 && bytes.flush > 0, "{bytes:?}");
        }
        let error = engine.session().err().unwrap();
        assert!(matches!(&error, Error::Usage(why) if why.contains("LinkBench only")), "{error}");
        let pid = engine.server().unwrap();
        assert!(lives(pid));
        engine.close().unwrap();
        assert!(!lives(pid), "the server is still there");

        let engine = opened(name, dir.path(), Durability::Disk).unwrap();
        let mut session = engine.link_store().unwrap().links().unwrap();
        for ((kind, id1, _), link) in &model.links {
            let listed = list(&mut *session, (*kind, *id1), (0, u64::MAX), usize::MAX);
            assert_eq!(listed.contains(link), link.visible, "{link:?}");
        }
        for ((id, kind), count) in &model.counts {
            assert_eq!(session.count(*kind, *id).unwrap(), *count);
        }
        drop(session);
        engine.close().unwrap();
    }
}

fn simple_link(id1: u64, id2: u64) -> Link {
    Link { kind: 1, id1, id2, visible: true, time: 10 + id2, version: 0, data: vec![b'd'; 255] }
}

/// Loads a quarter of the ids, a link each, in two batches.
fn load_quarter(session: &mut dyn LinkSession, quarter: u64) {
    for first in [0, 500] {
        let ids = (first..first + 500).map(|n| n * 4 + quarter);
        let links: Vec<Link> = ids.map(|id| simple_link(id, 1)).collect();
        let count =
            |link: &Link| Count { id: link.id1, kind: 1, count: 1, time: link.time, version: 0 };
        session.load_links(&links).unwrap();
        session.load_counts(&links.iter().map(count).collect::<Vec<_>>()).unwrap();
    }
    session.load_links(&[]).unwrap();
    session.load_counts(&[]).unwrap();
}

/// Adds 40 links to the first three ids, and hides every other one.
fn change_together(session: &mut dyn LinkSession, thread: u64) {
    for n in 0..40 {
        let (id1, id2) = (n % 3, 1_000 + 100 * thread + n);
        assert!(session.add_link(&simple_link(id1, id2)).unwrap());
        assert!(!session.add_link(&simple_link(id1, 1)).unwrap());
        if n % 2 == 0 {
            assert!(session.delete_link(1, id1, id2).unwrap());
        }
    }
}

/// Loaders load side by side, and then requests of all of them change the same counts.
#[test]
fn sessions_at_once_lose_nothing() {
    for name in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let Some(engine) = opened(name, dir.path(), Durability::Buffered) else { continue };
        let store = engine.link_store().unwrap();
        for body in [load_quarter, change_together] {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || body(&mut *store.links().unwrap(), thread));
                }
            });
        }
        let mut session = store.links().unwrap();
        for id in 0..4 {
            let listed = list(&mut *session, (1, id), (0, u64::MAX), usize::MAX).len();
            assert_eq!(session.count(1, id).unwrap(), listed as u64, "{name}, {id}");
        }
        let left: u64 = (0..3).map(|id| session.count(1, id).unwrap()).sum();
        assert_eq!(left, 3 + 4 * 20);
        assert_eq!(session.count(1, 3_999).unwrap(), 1);
        drop(session);
        engine.close().unwrap();
    }
}

#[test]
fn a_server_ends_with_what_it_belongs_to() {
    for name in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let Some(engine) = opened(name, dir.path(), Durability::Process) else { continue };
        let pid = engine.server().unwrap();
        drop(engine);
        // What an interrupted start leaves is in nobody's way.
        std::fs::rename(dir.path().join("data"), dir.path().join("unfinished")).unwrap();
        assert!(!lives(pid), "dropped, as after an error, it is still there");

        let engine = opened(name, dir.path(), Durability::Process).unwrap();
        let mut session = engine.link_store().unwrap().links().unwrap();
        assert_eq!(session.count(1, 1).unwrap(), 0);
        (0..50).for_each(|id2| assert!(session.add_link(&simple_link(1, id2)).unwrap()));
        let pid = engine.server().unwrap();
        nix::sys::signal::kill(process(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
        let error = session.count(1, 1).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("the server ended"), "{error}");
        assert!(error.contains("ready for connections"), "the end of its log: {error}");
        drop(session);
        assert!(engine.close().is_err());
        assert!(!lives(pid));

        // In this class a finished write survives the process.
        let engine = opened(name, dir.path(), Durability::Process).unwrap();
        let mut session = engine.link_store().unwrap().links().unwrap();
        assert_eq!(session.count(1, 1).unwrap(), 50, "{name}");
        assert_eq!(list(&mut *session, (1, 1), (0, u64::MAX), usize::MAX).len(), 50, "{name}");
    }
}

/// The shell that started a program ends it when nobody holds the other end of its input.
#[test]
fn a_program_ends_with_the_process_that_started_it() {
    let program = Path::new("/bin/sh");
    let script = "echo ready for connections >&2; sleep 1000 & wait";
    let guarded = server::Guarded::start(program, &["-c".into(), script.into()]).unwrap();
    guarded.wait_ready().unwrap();
    let pid = guarded.pid();
    assert!(lives(pid));
    drop(guarded);
    assert!(!lives(pid));

    let failing = "echo first >&2; echo last words >&2; exit 3";
    let guarded = server::Guarded::start(program, &["-c".into(), failing.into()]).unwrap();
    let ended = guarded.wait().unwrap_err();
    assert_eq!(ended.tail, ["first", "last words"]);
    assert!(ended.to_string().contains('3'), "{ended}");
    let guarded = server::Guarded::start(program, &["-c".into(), "true".into()]).unwrap();
    assert!(guarded.wait_ready().is_err(), "it ended without being ready");
    assert!(guarded.ended().is_some());
    guarded.wait().unwrap();
}

#[test]
fn keys_and_values_are_refused_with_a_reason() {
    let settings = |workloads| crate::Settings {
        engines: vec![spec("mariadb-innodb")],
        workloads,
        ..crate::Settings::default()
    };
    let error = settings(crate::Settings::default().workloads).check().unwrap_err().to_string();
    assert!(error.contains("answers LinkBench only"), "{error}");
    settings(Vec::new()).check().unwrap();
}
