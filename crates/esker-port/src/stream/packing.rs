//! The bodies of frames that are compressed, and read, piece by piece.
//!
//! A frame says how many bytes follow before they follow. So a value in pieces is compressed twice: once to learn
//! the length, and once more to write it.

use std::io::{self, BufRead, Write};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};
use zstd::stream::write::Encoder;

/// The level of compression: fast, and near to what higher levels reach on small entries.
pub const ZSTD_LEVEL: i32 = 3;

/// Compresses a body of `raw` bytes as one Zstandard frame, whose bytes go to `out`.
pub fn encoder<W: Write>(out: W, raw: u64) -> io::Result<Encoder<'static, W>> {
    let mut encoder = Encoder::new(out, ZSTD_LEVEL)?;
    encoder.set_pledged_src_size(Some(raw))?;
    Ok(encoder)
}

/// Counts what is written to it, and drops it.
#[derive(Debug, Default)]
pub struct Counted(pub u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a body cannot be read on.
pub enum Failure {
    /// The stream ends within it.
    CutOff,
    /// It is not what its head says.
    Damaged,
    /// The system refused to read.
    Io(io::Error),
}

/// A body that is being read.
pub struct Body {
    /// Bytes that are still stored, and bytes that they still make.
    stored: u64,
    raw: u64,
    /// If the body is compressed.
    decoder: Option<Decoder<'static>>,
    /// Whether the compressed frame has come to its end.
    ended: bool,
}

impl Body {
    /// A body of these lengths.
    pub fn new(stored: u32, raw: u32, compressed: bool) -> io::Result<Self> {
        let decoder = if compressed { Some(Decoder::new()?) } else { None };
        Ok(Self { stored: stored.into(), raw: raw.into(), ended: decoder.is_none(), decoder })
    }

    /// Bytes that it still makes.
    pub fn left(&self) -> u64 {
        self.raw
    }

    /// Appends at most `max` of its next bytes to `out`: fewer only at its end. `seen` gets the stored bytes that
    /// were read of `input`. Memory grows with what is there, not with what a length says.
    pub fn read(
        &mut self,
        input: &mut impl BufRead,
        seen: &mut impl FnMut(&[u8]),
        (out, max): (&mut Vec<u8>, usize),
    ) -> Result<(), Failure> {
        let mut left = self.raw.min(max as u64) as usize;
        while left > 0 {
            let made = self.step(input, seen, (out, left))?;
            if made == 0 && self.stored == 0 {
                return Err(Failure::Damaged);
            }
            left -= made;
            self.raw -= made as u64;
        }
        Ok(())
    }

    /// Reads what is stored behind the last byte; nothing may follow it.
    pub fn end(
        &mut self,
        input: &mut impl BufRead,
        seen: &mut impl FnMut(&[u8]),
    ) -> Result<(), Failure> {
        while self.stored > 0 {
            if self.ended || self.step(input, seen, (&mut Vec::new(), 1))? > 0 {
                return Err(Failure::Damaged);
            }
        }
        if self.ended { Ok(()) } else { Err(Failure::Damaged) }
    }

    /// Reads of what is stored, or takes what is decompressed already; returns how many bytes were made.
    fn step(
        &mut self,
        input: &mut impl BufRead,
        seen: &mut impl FnMut(&[u8]),
        (out, max): (&mut Vec<u8>, usize),
    ) -> Result<usize, Failure> {
        const STEP_BYTES: usize = 64 << 10;
        let bytes = if self.stored > 0 { input.fill_buf().map_err(Failure::Io)? } else { &[] };
        if self.stored > 0 && bytes.is_empty() {
            return Err(Failure::CutOff);
        }
        let bytes = &bytes[..self.stored.min(bytes.len() as u64) as usize];
        let (read, made) = match &mut self.decoder {
            None => {
                let made = bytes.len().min(max);
                out.extend_from_slice(&bytes[..made]);
                (made, made)
            }
            Some(_) if self.ended => (0, 0),
            Some(decoder) => {
                let start = out.len();
                out.resize(start + max.min(STEP_BYTES), 0);
                let mut from = InBuffer::around(bytes);
                let mut to = OutBuffer::around(&mut out[start..]);
                let hint = decoder.run(&mut from, &mut to).map_err(|_| Failure::Damaged)?;
                self.ended = hint == 0;
                let (read, made) = (from.pos(), to.pos());
                out.truncate(start + made);
                (read, made)
            }
        };
        seen(&bytes[..read]);
        input.consume(read);
        self.stored -= read as u64;
        if self.decoder.is_some() && read + made == 0 && self.stored > 0 {
            return Err(Failure::Damaged);
        }
        Ok(made)
    }
}
