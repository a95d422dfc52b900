//! Which call goes wrong, and how.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::verdict::Verdict;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // Each is named like the method of `Fs` or `File` that it stands for.
pub enum Op {
    /// Opening a file that exists.
    Open,
    /// Opening with `CreateNew`.
    Create,
    CreateDir,
    List,
    Kind,
    Rename,
    Remove,
    RemoveDir,
    Link,
    SyncDir,
    Lock,
    FreeBytes,
    Read,
    Write,
    Len,
    Allocated,
    SetLen,
    Allocate,
    SyncData,
    Punch,
    Links,
    Map,
}

impl Op {
    /// All kinds, for sweeps.
    pub const ALL: [Self; 22] = [
        Self::Open,
        Self::Create,
        Self::CreateDir,
        Self::List,
        Self::Kind,
        Self::Rename,
        Self::Remove,
        Self::RemoveDir,
        Self::Link,
        Self::SyncDir,
        Self::Lock,
        Self::FreeBytes,
        Self::Read,
        Self::Write,
        Self::Len,
        Self::Allocated,
        Self::SetLen,
        Self::Allocate,
        Self::SyncData,
        Self::Punch,
        Self::Links,
        Self::Map,
    ];
}

/// What a rule does to a call.
#[derive(Clone)]
pub enum Effect {
    /// The call fails with an error of this kind and does nothing.
    Error(io::ErrorKind),
    /// The call fails with this number of the operating system and does nothing.
    Errno(i32),
    /// At most this many bytes are written, never all of them, then the call fails with an error
    /// of this kind. Other calls than writes just fail.
    ShortWrite(usize, io::ErrorKind),
    /// The read succeeds, with this bit (modulo its length) flipped in what it returns.
    FlipBit(u64),
    /// Success is reported and nothing done, where the call has no result that would be missing:
    /// write, set_len, allocate, punch, the syncs, create_dir, rename, remove. Others pass.
    Skip,
    /// The sync fails with an I/O error, the unsynced data counts as written, and later syncs
    /// succeed without writing it. The data stays readable until the next crash or, with
    /// `revert`, is replaced at once by what is durable. Needs a [`FaultFs`](super::FaultFs) made
    /// with [`over`](super::FaultFs::over); other calls than `sync_data` just fail.
    FailSync {
        /// Whether the cache reverts.
        revert: bool,
    },
    /// This is called first (it may sleep, wait, or kill something), then the call goes on, with
    /// the later rules.
    Call(Arc<dyn Fn() + Send + Sync>),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(kind) => write!(f, "Error({kind:?})"),
            Self::Errno(number) => write!(f, "Errno({number})"),
            Self::ShortWrite(bytes, kind) => write!(f, "ShortWrite({bytes}, {kind:?})"),
            Self::FlipBit(bit) => write!(f, "FlipBit({bit})"),
            Self::Skip => write!(f, "Skip"),
            Self::FailSync { revert } => write!(f, "FailSync {{ revert: {revert} }}"),
            Self::Call(_) => write!(f, "Call"),
        }
    }
}

/// Makes the k-th call of a kind on certain paths go wrong.
#[derive(Debug, Clone)]
pub struct Rule {
    op: Op,
    path: String,
    first: u64,
    persistent: bool,
    effect: Effect,
    met: u64,
}

impl Rule {
    /// Does this to the first call of a kind, whatever its path, and to that one only.
    pub fn new(op: Op, effect: Effect) -> Self {
        Self { op, path: String::new(), first: 0, persistent: false, effect, met: 0 }
    }

    /// Only calls whose path (for a rename: either path) contains this count.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        part.clone_into(&mut self.path);
        self
    }

    /// Lets this many matching calls pass before.
    #[must_use]
    pub fn after(mut self, calls: u64) -> Self {
        self.first = calls;
        self
    }

    /// Goes on with every later matching call.
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.persistent = true;
        self
    }

    /// Counts a call if it matches; its number if the rule fires.
    pub(super) fn meets(&mut self, op: Op, paths: &[&Path]) -> Option<u64> {
        let matches = |path: &&Path| path.to_string_lossy().contains(&self.path);
        if op != self.op || !paths.iter().any(matches) {
            return None;
        }
        let number = self.met;
        self.met += 1;
        (number == self.first || self.persistent && number > self.first).then_some(number)
    }

    /// What the call shall do, or what to call before asking the next rule.
    pub(super) fn verdict(&self) -> Result<Verdict, Arc<dyn Fn() + Send + Sync>> {
        Ok(match &self.effect {
            Effect::Error(kind) => Verdict::Fail((*kind).into()),
            Effect::Errno(number) => Verdict::Fail(io::Error::from_raw_os_error(*number)),
            Effect::ShortWrite(bytes, kind) => Verdict::Short(*bytes, (*kind).into()),
            Effect::FlipBit(bit) => Verdict::Flip(*bit),
            Effect::Skip => Verdict::Skip,
            Effect::FailSync { revert } => Verdict::FailSync(*revert),
            Effect::Call(call) => return Err(Arc::clone(call)),
        })
    }
}

/// A rule at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The rule's number in the order of adding.
    pub rule: usize,
    /// The kind of the call.
    pub op: Op,
    /// The (first) path of the call.
    pub path: PathBuf,
    /// Which of the matching calls it was, from 0.
    pub occurrence: u64,
}
