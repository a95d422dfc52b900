//! Output that ends when the user interrupts the command.

use esker_bench::Interrupt;
use std::io::{self, Write};

/// A writer that takes nothing more once the command is interrupted.
pub struct Until<'a, W> {
    /// Where it writes.
    pub out: &'a mut W,
    /// Ends the command.
    pub interrupt: Interrupt,
}

impl<W: Write> Write for Until<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.asked() {
            // Not of the kind `Interrupted`, after which a write is tried again.
            return Err(io::Error::other("interrupted"));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
