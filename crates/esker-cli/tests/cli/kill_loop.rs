//! Kills the shell with SIGKILL over and over and checks what the next one finds (C1).
//!
//! One client sends commands, some still unanswered when the child dies. Commands run in order,
//! so what is found must be exactly what the first `m` operations leave, for one `m` between the
//! number of operations that were answered and the number that were sent. That one comparison
//! covers all of the contract here: nothing answered is lost, nothing appears that was not
//! sent, batches are whole, also across keyspaces, and what survives is a prefix.
//!
//! `ESKER_KILL_CYCLES` sets the number of kills (20), `ESKER_KILL_OPERATIONS` the most operations
//! before one (400), `ESKER_KILL_LOG` one kind of log for all (`plain` or `mapped`; otherwise they
//! alternate at random). `ESKER_SEED` replays a run; the moment of a kill stays a matter of timing.

use crate::support::{Shell, random};
use esker_port::word::{self, Encoding};
use esker_testkit::Rng;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

const KEYSPACES: [&str; 2] = ["default", "other"];

/// What the database holds: one map per keyspace.
type Model = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

enum Effect {
    Put(usize, Vec<u8>, Vec<u8>),
    Del(usize, Vec<u8>),
    DelRange(usize, Vec<u8>, Vec<u8>),
    Drop(usize),
}

/// Lines that are one step for the database.
struct Operation {
    lines: Vec<String>,
    effects: Vec<Effect>,
}

fn apply(model: &mut Model, operation: &Operation) {
    for effect in &operation.effects {
        match effect {
            Effect::Put(keyspace, key, value) => {
                model[*keyspace].insert(key.clone(), value.clone());
            }
            Effect::Del(keyspace, key) => {
                model[*keyspace].remove(key);
            }
            Effect::DelRange(keyspace, low, high) => {
                model[*keyspace].retain(|key, _| key < low || key >= high);
            }
            Effect::Drop(keyspace) => model[*keyspace].clear(),
        }
    }
}

fn key(random: &mut Rng) -> Vec<u8> {
    let number = random.below(300);
    // Some keys are no text, and some share a long head.
    match number % 3 {
        0 => format!("key{number:04}").into_bytes(),
        1 => format!("a-long-common-head-of-keys/{number:04}").into_bytes(),
        _ => vec![0xff, (number >> 8) as u8, number as u8],
    }
}

/// A put, a delete or a range delete of one keyspace, as a line and an effect.
fn write(random: &mut Rng, keyspace: usize, value_id: &mut u64) -> (String, Effect) {
    let key = key(random);
    let word = Encoding::Text.word(&key);
    match random.below(100) {
        0..75 => {
            *value_id += 1;
            let value = match random.below(10) {
                0 => format!("#{}", random.below(20_000)),
                1..4 => format!("#{}", random.below(600)),
                _ => format!("value-{value_id}"),
            };
            let bytes = word::decode_value(value.as_bytes(), &key).unwrap();
            (format!("put {word} {value}"), Effect::Put(keyspace, key, bytes))
        }
        75..97 => (format!("del {word}"), Effect::Del(keyspace, key)),
        _ => {
            let mut high = key.clone();
            high.push(0xff);
            let line = format!("delrange {word} {}", Encoding::Text.word(&high));
            (line, Effect::DelRange(keyspace, key, high))
        }
    }
}

fn class(random: &mut Rng) -> &'static str {
    ["", " process", " process", " disk"][random.below(4) as usize]
}

fn operation(random: &mut Rng, value_id: &mut u64) -> Operation {
    let keyspace = random.below(2) as usize;
    let go = |keyspace: usize| format!("use {}", KEYSPACES[keyspace]);
    match random.below(200) {
        0..3 => Operation { lines: vec!["flush".into()], effects: vec![] },
        3 => Operation { lines: vec!["compact".into()], effects: vec![] },
        4..7 => Operation { lines: vec!["sync".into()], effects: vec![] },
        // The next `use` makes it anew.
        7 => Operation { lines: vec![go(1), "drop other".into()], effects: vec![Effect::Drop(1)] },
        8..40 => {
            let mut lines = vec!["begin".to_owned()];
            let mut effects = Vec::new();
            for _ in 0..=random.below(8) {
                let keyspace = random.below(2) as usize;
                let (line, effect) = write(random, keyspace, value_id);
                lines.extend([go(keyspace), line]);
                effects.push(effect);
            }
            lines.push(format!("commit{}", class(random)));
            Operation { lines, effects }
        }
        _ => {
            let (line, effect) = write(random, keyspace, value_id);
            let line = format!("{line}{}", class(random));
            Operation { lines: vec![go(keyspace), line], effects: vec![effect] }
        }
    }
}

/// A child whose answers arrive through a channel, so that many commands can be under way.
struct Victim {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    sent: usize,
    answered: usize,
}

impl Victim {
    fn start(dir: &Path, flags: &[&str]) -> Self {
        let Shell { child, input, answers, .. } = Shell::start(dir, flags);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || read_answers(answers, &sender));
        Self { child, input, answers: receiver, sent: 0, answered: 0 }
    }

    fn send(&mut self, operation: &Operation) {
        for line in &operation.lines {
            writeln!(self.input, "{line}").expect("the child takes commands until it is killed");
            self.sent += 1;
        }
    }

    fn wait_until_open(&mut self, most: usize) {
        while self.sent - self.answered > most {
            let answer = self.answers.recv().expect("the child answers until it is killed");
            self.count(&answer);
        }
    }

    fn count(&mut self, answer: &str) {
        // A drop says how many keyspaces it dropped.
        assert!(matches!(answer, "ok" | "ok 1"), "answer {}: {answer}", self.answered);
        self.answered += 1;
    }

    /// Kills the child; the answers that it got out before count.
    fn kill(mut self) -> usize {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while let Ok(answer) = self.answers.recv() {
            self.count(&answer);
        }
        self.answered
    }
}

fn read_answers(mut answers: BufReader<impl std::io::Read>, sender: &mpsc::Sender<String>) {
    let mut line = String::new();
    // A line that the kill cut short is no answer.
    while answers.read_line(&mut line).is_ok() && line.ends_with('\n') {
        if sender.send(line.trim_end().to_owned()).is_err() {
            return;
        }
        line.clear();
    }
}

/// What a new shell finds.
fn read_back(dir: &Path, flags: &[&str], verify: bool) -> Model {
    let mut shell = Shell::start(dir, flags);
    let mut model = Model::default();
    for (keyspace, map) in model.iter_mut().enumerate() {
        shell.expect(&format!("use {}", KEYSPACES[keyspace]), &["ok"]);
        let (lines, closing) = shell.ask("scan - - -");
        assert_eq!(closing, format!("ok {}", lines.len()));
        for line in lines {
            let words = word::split(line.as_bytes()).unwrap();
            let [key, value] = words[..] else { panic!("a line of a scan has two words: {line}") };
            let [key, value] = [key, value].map(|word| word::decode(word).unwrap());
            assert_eq!(map.insert(key, value), None, "{line:?} came twice");
        }
    }
    if verify {
        let (problems, closing) = shell.ask("verify");
        assert!(closing.starts_with("ok "), "{problems:?} {closing}");
    }
    if verify {
        shell.close();
    } else {
        shell.child.kill().unwrap();
        shell.child.wait().unwrap();
    }
    model
}

/// The first difference, for the message.
fn difference(expected: &Model, found: &Model) -> String {
    for (keyspace, name) in KEYSPACES.iter().enumerate() {
        let (expected, found) = (&expected[keyspace], &found[keyspace]);
        for key in expected.keys().chain(found.keys()) {
            let short = |map: &BTreeMap<Vec<u8>, Vec<u8>>| {
                map.get(key)
                    .map(|value| (value.len(), Encoding::Text.word(&value[..value.len().min(16)])))
            };
            if expected.get(key) != found.get(key) {
                return format!(
                    "keyspace {name} key {}: expected {:?}, found {:?}",
                    Encoding::Text.word(key),
                    short(expected),
                    short(found)
                );
            }
        }
    }
    "none".into()
}

/// Sends operations and kills the child somewhere among them. Returns the operations that were
/// sent, and how many of them were answered.
fn cycle(dir: &Path, flags: &[&str], random: &mut Rng, id: &mut u64) -> (Vec<Operation>, usize) {
    let mut victim = Victim::start(dir, flags);
    let mut sent = Vec::new();
    let target = 1 + random.below(setting("ESKER_KILL_OPERATIONS", 400));
    let window = random.below(60) as usize;
    for _ in 0..target {
        let operation = operation(random, id);
        victim.send(&operation);
        sent.push(operation);
        victim.wait_until_open(window);
    }
    match random.below(3) {
        // Everything answered, a moment after the last answer, or in the midst of it all.
        0 => victim.wait_until_open(0),
        1 => thread::sleep(Duration::from_micros(random.below(5_000))),
        _ => {}
    }
    let mut lines = victim.kill();
    let mut answered = 0;
    for operation in &sent {
        if lines < operation.lines.len() {
            break;
        }
        lines -= operation.lines.len();
        answered += 1;
    }
    (sent, answered)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn what_was_answered_survives_the_kill() {
    let cycles = setting("ESKER_KILL_CYCLES", 20);
    let log = std::env::var("ESKER_KILL_LOG").ok();
    let mut random = random();
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut model = Model::default();
    let mut value_id = 0;
    let (mut answered_in_all, mut sent_in_all) = (0, 0);
    for number in 0..cycles {
        let mut flags = vec!["--memory", "8MiB"];
        let kind = ["plain", "mapped"][random.below(2) as usize];
        flags.extend(["--log", log.as_deref().unwrap_or(kind)]);
        flags.extend([&["--tiny"][..], &["--tiny"], &[]][random.below(3) as usize]);
        let (sent, answered) = cycle(&db, &flags, &mut random, &mut value_id);
        answered_in_all += answered;
        sent_in_all += sent.len();
        // Dying while it opens must not harm either.
        for _ in 0..random.below(3) {
            let mut shell = Shell::start(&db, &flags);
            thread::sleep(Duration::from_micros(random.below(20_000)));
            shell.child.kill().unwrap();
            shell.child.wait().unwrap();
        }
        let found = read_back(&db, &flags, random.below(4) == 0);
        for operation in &sent[..answered] {
            apply(&mut model, operation);
        }
        let least = model.clone();
        for operation in &sent[answered..] {
            if model == found {
                break;
            }
            apply(&mut model, operation);
        }
        if model != found {
            let kept = dir.keep();
            panic!(
                "cycle {number} ({flags:?}): {} sent, {answered} answered, and no state in between \
                 was found; the answered state differs: {}; the database is in {}",
                sent.len(),
                difference(&least, &found),
                kept.display()
            );
        }
    }
    println!("{cycles} kills: {answered_in_all} of {sent_in_all} operations were answered");
}
