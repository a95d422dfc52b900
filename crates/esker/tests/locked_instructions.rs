//! Reads change no memory that threads share (R29). This binary runs itself once more, executes that process
//! instruction by instruction, and counts those that change memory atomically: with the prefix `lock`, or `xchg` with
//! memory. So nothing escapes, be it in a library below the engine.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use esker::{Cursor, Db, Iter, Keyspace, Options};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::hint::black_box;
use std::process::{Command, Stdio};

/// Tells this binary, run once more, where its database is.
const PLACE: &str = "ESKER_LOCKED_INSTRUCTIONS_TEST";
/// Calls in each stretch.
const CALLS: u64 = 30;
/// What a stretch has for a first call after others.
const SPARE: u64 = 4;
/// How often each stretch is counted; the least counts. One call in about 128 is timed, which adds to a histogram that
/// threads share and, being executed so slowly, is kept among the slowest and may be an event; and the epoch advances as
/// rarely.
const ROUNDS: usize = 2;
const KEYS: u64 = 20_000;

/// The stretches that are counted, in the order in which the child runs them, with how many atomic changes a call may have.
/// One enters an epoch, on a cache line of the thread's own. `get_with` copies a short value, and pins the block of a longer one
/// for as long as the caller's function runs, which is an addition and a subtraction on the block's frame; so does `get_pinned`,
/// which looks at what all iterators hold, too, as a seek of a cursor does. A new iterator counts itself and refers to the
/// database, its keyspace, the state and what it reads from, and enters epochs: these it shares with other threads. It has
/// 32 such changes and a seek 4; what enters epochs so often advances them, too, which the counts here leave room for.
const STRETCHES: [(&str, u64); 10] = [
    ("nothing", 0),
    ("get_into", 1),
    ("get_with", 1),
    ("get_with, long", 3),
    ("absent", 1),
    ("contains_key", 1),
    ("next_entry", 0),
    ("get_pinned", 4),
    ("seek", 5),
    ("range", 34),
];

/// The keys of long values are behind those of short ones.
const LONG: u64 = KEYS;

/// The stretches, each as often as it is counted.
fn counted() -> impl Iterator<Item = (&'static str, u64)> {
    STRETCHES.into_iter().flat_map(|stretch| [stretch; ROUNDS])
}

fn key(number: u64) -> [u8; 8] {
    (number * 2).to_be_bytes()
}

fn read(
    all: &Keyspace,
    (iter, cursor): (&mut Iter, &mut Cursor),
    stretch: &str,
    value: &mut Vec<u8>,
) {
    for call in 0..CALLS {
        let key = key(call * (KEYS / CALLS));
        match stretch {
            "get_into" => assert!(black_box(all.get_into(key, value).unwrap())),
            "get_with" => assert_eq!(all.get_with(key, <[u8]>::len).unwrap(), Some(100)),
            "get_with, long" => {
                let len = all.get_with(self::key(LONG + call), <[u8]>::len);
                assert_eq!(len.unwrap(), Some(300));
            }
            "absent" => {
                assert!(!all.get_into((u64::from_be_bytes(key) + 1).to_be_bytes(), value).unwrap())
            }
            "contains_key" => assert!(all.contains_key(key).unwrap()),
            "next_entry" => assert!(iter.next_entry().unwrap().is_some()),
            "get_pinned" => assert_eq!(all.get_pinned(key).unwrap().unwrap().len(), 100),
            "seek" => assert!(cursor.seek(key).map(|()| cursor.valid()).unwrap()),
            "range" => {
                let mut iter = all.range(key..).unwrap();
                assert!(iter.next_entry().unwrap().is_some());
            }
            _ => {}
        }
    }
}

/// No test of its own: the process whose instructions the test below counts.
#[test]
fn in_another_process() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let db = Db::open_with(&place, Options::default()).unwrap();
    let all = db.default_keyspace();
    let (mut iter, mut cursor) = (db.iter().unwrap(), all.cursor().unwrap());
    let mut value = Vec::with_capacity(300);
    // All blocks are in memory, and this thread has all that it makes for itself.
    for number in 0..LONG + CALLS {
        assert!(all.get_into(key(number), &mut value).unwrap());
    }
    for (stretch, _) in STRETCHES {
        read(&all, (&mut iter, &mut cursor), stretch, &mut value);
    }
    ptrace::traceme().unwrap();
    for (stretch, _) in counted() {
        raise(Signal::SIGSTOP).unwrap();
        read(&all, (&mut iter, &mut cursor), stretch, &mut value);
        raise(Signal::SIGSTOP).unwrap();
    }
}

/// Whether the instruction at an address changes memory atomically.
fn is_atomic(child: Pid, address: u64) -> bool {
    let word = |at: u64| ptrace::read(child, at as ptrace::AddressType).unwrap_or(0).to_le_bytes();
    let bytes = [word(address), word(address + 8)].concat();
    // Prefixes, of which `lock` is one, come before the instruction; the last may be REX.
    let is_prefix =
        |byte: &&u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf2 | 0xf3);
    let prefixes = bytes.iter().take_while(is_prefix).count();
    let rest = &bytes[prefixes..];
    let exchange = &rest[usize::from(rest[0] & 0xf0 == 0x40)..];
    let names_memory = exchange[1] < 0xc0;
    rest[0] == 0xf0 || (matches!(exchange[0], 0x86 | 0x87) && names_memory)
}

/// Runs the child to its next stop, an instruction at a time.
fn count_until_stop(child: Pid) -> (u64, u64) {
    let (mut all, mut atomic) = (0, 0);
    loop {
        all += 1;
        atomic += u64::from(is_atomic(child, ptrace::getregs(child).unwrap().rip));
        ptrace::step(child, None).unwrap();
        match waitpid(child, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            WaitStatus::Stopped(_, Signal::SIGSTOP) => return (all, atomic),
            other => panic!("the child ended with {other:?}"),
        }
    }
}

#[test]
fn a_read_in_memory_changes_nothing_that_threads_share() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), Options::default()).unwrap();
    for number in 0..KEYS {
        db.insert(key(number), [number as u8; 100]).unwrap();
    }
    for number in LONG..LONG + CALLS {
        db.insert(key(number), [number as u8; 300]).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_another_process", "--nocapture"])
        .env(PLACE, dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut found = Vec::new();
    for (stretch, allowed) in counted() {
        // The thread that asked to be traced is the only one that stops.
        let child = match waitpid(None, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Stopped(thread, Signal::SIGSTOP) => thread,
            other => panic!("the child ended with {other:?}"),
        };
        ptrace::setoptions(child, ptrace::Options::PTRACE_O_EXITKILL).unwrap();
        let (all, atomic) = count_until_stop(child);
        assert!(
            stretch == "nothing" || all > CALLS * 20,
            "{all} instructions are no {CALLS} calls"
        );
        println!("{stretch}: {all} instructions, {atomic} of them atomic, in {CALLS} calls");
        found.push((stretch, atomic, allowed));
        let is_last = found.len() == STRETCHES.len() * ROUNDS;
        if is_last { ptrace::detach(child, None) } else { ptrace::cont(child, None) }.unwrap();
    }
    assert!(process.wait().unwrap().success());
    for rounds in found.chunks(ROUNDS) {
        let (stretch, atomic, allowed) = *rounds.iter().min_by_key(|round| round.1).unwrap();
        assert!(
            atomic <= CALLS * allowed + SPARE,
            "{stretch}: {atomic} atomic changes in {CALLS} calls"
        );
    }
}
