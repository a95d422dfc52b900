//! The process of one run.
//!
//! It reads its order from standard input, one line of JSON, and reports its progress on standard
//! output, in records of RFC 7464: a record separator (0x1E), JSON, a line feed. What an engine prints
//! itself lies between records, so it can be told from them. The parent keeps standard input open as
//! long as it wants the result. When standard input ends, this process ends at once, so nothing is left
//! running if the comparison is killed, on any system.

use super::host::{Event, Order, carry_out};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

/// The byte before each record.
pub const SEPARATOR: u8 = 0x1E;

/// What the process writes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Record {
    /// Progress of the run.
    Event(Event),
    /// Why it ended early.
    Failed(String),
}

/// Carries out the order that comes on standard input.
pub fn main() -> ExitCode {
    let mut line = String::new();
    let order = match io::stdin().lock().read_line(&mut line) {
        Ok(_) => serde_json::from_str::<Order>(&line),
        Err(error) => Err(serde_json::Error::io(error)),
    };
    let result = match order {
        Ok(order) => {
            std::thread::spawn(end_with_input);
            carry_out(&order, &mut |event| tell(&Record::Event(event)))
        }
        Err(error) => Err(Error::Failed(format!("a run did not understand its order: {error}"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match tell(&Record::Failed(error.to_string())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

fn tell(record: &Record) -> Result<()> {
    let failed = |error: io::Error| Error::Failed(format!("a run cannot tell its result: {error}"));
    let mut bytes = vec![SEPARATOR];
    serde_json::to_writer(&mut bytes, record).map_err(|error| failed(error.into()))?;
    bytes.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&bytes).and_then(|()| out.flush()).map_err(failed)
}

/// Waits until nobody wants the result any more.
fn end_with_input() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    end();
}

/// Ends without the exit handlers of the engine's library, whose threads still work.
#[cfg(unix)]
fn end() {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
}

#[cfg(not(unix))]
fn end() {
    std::process::abort();
}
