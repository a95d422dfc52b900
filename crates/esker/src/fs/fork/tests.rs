use super::ForkGuard;

#[test]
fn the_process_that_made_it_is_not_a_child() {
    let guard = ForkGuard::new();
    assert!(!guard.forked());
    let other_thread = std::thread::spawn(move || guard.forked());
    assert!(!other_thread.join().expect("the thread does not panic"));
}

/// The hook of a command runs in a real forked child, before that becomes the program.
#[cfg(unix)]
#[test]
#[allow(unsafe_code, reason = "the only way of the standard library to run code after a fork")]
fn a_forked_child_is_told_apart_and_the_parent_is_not() {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::Arc;

    let guard = Arc::new(ForkGuard::new());
    let asked = Arc::clone(&guard);
    let mut command = Command::new("true");
    // SAFETY: the hook only loads a byte and builds an error from a number: it is
    // async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            if asked.forked() { Ok(()) } else { Err(io::Error::from_raw_os_error(1)) }
        });
    }
    let status = command.status().expect("the child saw that it is one");
    assert!(status.success());
    assert!(!guard.forked());
}

#[cfg(target_os = "linux")]
#[test]
fn linux_does_it_without_a_system_call() {
    assert!(ForkGuard::new().page.is_some(), "kernels since 4.14 wipe pages on fork");
}
