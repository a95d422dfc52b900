//! Writes, and what operands make of a value.

/// A key and a value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// What stands between operands in the keyspaces that merge.
pub const SEPARATOR: &str = "+";

/// When something happens, and whether that is a moment that a snapshot sees and not the present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: u64,
    pub(super) frozen: bool,
}

/// A write of a value or operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) pair: Pair,
    pub(super) merge: bool,
    pub(super) expiry: Option<u64>,
}

/// What the merge operator makes.
pub(super) fn merged(existing: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
    match existing {
        Some(existing) => [existing, SEPARATOR.as_bytes(), operand].concat(),
        None => operand.to_vec(),
    }
}
