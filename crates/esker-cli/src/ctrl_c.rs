//! Ctrl-C: the first one asks the running command to end, a second one ends the program.

use esker_bench::Interrupt;
use std::io;

/// The exit code of a program that Ctrl-C ended, by the convention of shells.
pub(crate) const EXIT_CODE: u8 = 130;

/// Makes Ctrl-C ask for the end; `asked` is called each time.
///
/// # Errors
/// If the signal cannot be handled, or has a handler already.
pub(crate) fn listen(interrupt: &Interrupt, asked: impl Fn() + Send + 'static) -> io::Result<()> {
    let interrupt = interrupt.clone();
    let ask = move || {
        if interrupt.ask() {
            interrupt.remove_temporary();
            std::process::exit(i32::from(EXIT_CODE));
        }
        asked();
    };
    ctrlc::set_handler(ask)
        .map_err(|error| io::Error::other(format!("cannot listen for Ctrl-C: {error}")))
}
