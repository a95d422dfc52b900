use super::{Fate, Process, parse_stat};

#[test]
fn a_name_with_parentheses_and_spaces_is_skipped() {
    let mut text = b"17 (a) b 2 (c)) S".to_vec();
    for field in 4..=52 {
        text.extend_from_slice(format!(" {field}").as_bytes());
    }
    assert_eq!(parse_stat(&text), Some((b'S', 22)));
    for len in 0..text.len() {
        // A part of the text is no reason to panic.
        let _ = parse_stat(&text[..len]);
    }
    assert_eq!(parse_stat(b"17 no name"), None);
}

#[cfg(target_os = "linux")]
#[test]
fn this_process_runs_and_another_start_or_boot_means_its_end() {
    let here = Process::current();
    assert!(here.started > 0 && here.boot != [0; 16] && here.namespace > 0, "{here:?}");
    assert_eq!(here.fate(), Fate::Runs);
    assert_eq!(Process { started: here.started + 1, ..here }.fate(), Fate::Ended);
    assert_eq!(Process { boot: [9; 16], ..here }.fate(), Fate::Ended);
    assert_eq!(Process { namespace: here.namespace + 1, ..here }.fate(), Fate::Unknown);
    for unknown in [
        Process { started: 0, ..here },
        Process { boot: [0; 16], ..here },
        Process { namespace: 0, ..here },
    ] {
        assert_eq!(unknown.fate(), Fate::Unknown);
    }
    // No system gives out such a number.
    assert_eq!(Process { id: u64::MAX, ..here }.fate(), Fate::Ended);
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_that_ended_and_was_not_waited_for_has_ended() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let id = u64::from(child.id());
    let (_, started) = super::started(id).unwrap();
    let process = Process { id, started, ..Process::current() };
    assert_eq!(process.fate(), Fate::Runs);
    child.kill().unwrap();
    // Its output ends when it has ended.
    child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    while process.fate() == Fate::Runs {
        std::thread::yield_now();
    }
    assert_eq!(process.fate(), Fate::Ended);
    child.wait().unwrap();
    assert_eq!(process.fate(), Fate::Ended);
}
