//! Ctrl-C: the first one asks what is under way to end, a second one ends the program.

use esker_bench::Interrupt;
use std::io;

/// How a program ends that Ctrl-C ended, as shells have it.
pub(crate) const EXIT_CODE: u8 = 130;

/// Has Ctrl-C ask for the end; `asked` is called each time that it did.
///
/// # Errors
/// That no signal can be listened for, or somebody does already.
pub(crate) fn listen(interrupt: &Interrupt, asked: fn()) -> io::Result<()> {
    let interrupt = interrupt.clone();
    let ask = move || {
        if interrupt.ask() {
            std::process::exit(i32::from(EXIT_CODE));
        }
        asked();
    };
    ctrlc::set_handler(ask)
        .map_err(|error| io::Error::other(format!("cannot listen for Ctrl-C: {error}")))
}
