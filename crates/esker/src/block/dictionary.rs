//! Dictionaries of Zstandard: what the blocks of a run segment have in common.
//!
//! A block of 4 KiB is too short for Zstandard to learn from. A dictionary, trained on some blocks of a
//! segment and stored in it once, gives each of its blocks what they share: frequent pieces, and the
//! statistics of their symbols.
//!
//! 1. A dictionary that can be digested can be used: nothing of it is checked again for each block.
//! 2. Contexts of decompression are shared by all threads and databases of the process. At most
//!    [`CONTEXTS_MAX`] are kept, about 100 KiB each, however many threads read.

use crate::base::codec::{DecodeError, Decoded};
use parking_lot::Mutex;
use std::fmt;
use zstd::zstd_safe::{DCtx, DDict};

/// The most bytes that a dictionary may have.
pub const DICTIONARY_BYTES_MAX: usize = 64 << 10;
/// The contexts that wait for the next block.
const CONTEXTS_MAX: usize = 4;

static CONTEXTS: Mutex<Vec<DCtx<'static>>> = Mutex::new(Vec::new());

/// A dictionary, ready for decompression.
pub struct Dictionary {
    bytes: Box<[u8]>,
    digested: DDict<'static>,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Digests a dictionary.
    pub fn new(bytes: &[u8]) -> Decoded<Self> {
        if bytes.is_empty() || bytes.len() > DICTIONARY_BYTES_MAX {
            return Err(DecodeError("the length of a dictionary is out of bounds"));
        }
        let digested = DDict::try_create(bytes);
        let digested = digested.ok_or(DecodeError("a dictionary cannot be used"))?;
        Ok(Self { bytes: bytes.into(), digested })
    }

    /// Trains a dictionary of at most `bytes` on these blocks, which follow each other in `samples` and
    /// have these lengths; `None`: they are too few, or have nothing in common.
    pub fn train(samples: &[u8], lens: &[usize], bytes: usize) -> Option<Self> {
        let trained = zstd::dict::from_continuous(samples, lens, bytes.min(DICTIONARY_BYTES_MAX));
        Self::new(&trained.ok()?).ok()
    }

    /// Its bytes, as they are stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.digested.sizeof()
    }
}

/// Decompresses a frame of Zstandard to `out`; returns how many bytes it has, `None` if that fails.
pub(super) fn decompress(
    payload: &[u8],
    out: &mut [u8],
    dictionary: Option<&Dictionary>,
) -> Option<usize> {
    // A child process may have been forked while another thread held the lock, so nobody waits for it.
    let kept = CONTEXTS.try_lock().and_then(|mut contexts| contexts.pop());
    let mut context = match kept {
        Some(context) => context,
        None => DCtx::try_create()?,
    };
    let written = match dictionary {
        Some(dictionary) => context.decompress_using_ddict(out, payload, &dictionary.digested),
        None => context.decompress(out, payload),
    };
    if let Some(mut contexts) = CONTEXTS.try_lock()
        && contexts.len() < CONTEXTS_MAX
    {
        contexts.push(context);
    }
    written.ok()
}
