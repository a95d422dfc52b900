//! What passes from the thread that reads entries to the one that stores them.
//!
//! A value that is larger than a frame may be comes in pieces. It is proved when its end came, not before: whoever
//! stores it must be able to take it back until then.

use crate::stream::{Content, Frame};
use crate::{Error, Result};
use std::io::{self, Read};
use std::sync::mpsc::Receiver;

/// What is handed over.
pub(crate) enum Part {
    Frame(Frame),
    /// An entry with a value of `len` bytes, which follows in pieces.
    Entry {
        key: Vec<u8>,
        len: u64,
    },
    /// The next bytes of the value.
    Piece(Vec<u8>),
    /// The value is whole, and as it was written.
    Proved,
}

/// A part and where it ends in the stream, or why there are no more.
pub(crate) type Message = Result<(Part, u64)>;

/// Reads a value in pieces as they are handed over. It ends when the value is proved, and fails otherwise.
pub(crate) struct Value<'a> {
    parts: &'a Receiver<Message>,
    /// Gets what was read.
    content: Option<&'a mut Content>,
    held: Vec<u8>,
    at: usize,
    proved: bool,
    failure: Option<Error>,
}

impl<'a> Value<'a> {
    pub fn new(parts: &'a Receiver<Message>, content: Option<&'a mut Content>) -> Self {
        Self { parts, content, held: Vec::new(), at: 0, proved: false, failure: None }
    }

    /// Reads what is left; only then the value counts.
    pub fn finish(&mut self) -> Result<()> {
        while !self.is_ended() {
            self.advance();
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Why it did not come, if so.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn is_ended(&self) -> bool {
        self.proved || self.failure.is_some()
    }

    /// Takes the next piece.
    fn advance(&mut self) {
        match self.parts.recv() {
            Ok(Ok((Part::Piece(piece), _))) => {
                if let Some(content) = &mut self.content {
                    content.piece(&piece);
                }
                (self.held, self.at) = (piece, 0);
            }
            Ok(Ok((Part::Proved, _))) => self.proved = true,
            Ok(Err(error)) => self.failure = Some(error),
            // The other thread ended, or lost its place.
            Ok(Ok(_)) | Err(_) => {
                let gone = io::Error::from(io::ErrorKind::BrokenPipe);
                self.failure = Some(Error::io("hand over", "a value", gone));
            }
        }
    }
}

impl Read for Value<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.held.len() && !self.is_ended() {
            self.advance();
        }
        let left = &self.held[self.at..];
        if left.is_empty() && !self.proved {
            return Err(io::Error::other("the rest of the value did not come"));
        }
        let bytes = left.len().min(out.len());
        out[..bytes].copy_from_slice(&left[..bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}
