//! Orders of keys that tests give to keyspaces: the opposite of byte order, and one in which
//! different bytes are the same key.

use esker::Comparator;
use std::cmp::Ordering;

/// From the greatest key to the smallest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// Upper and lower case of a letter are the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caseless;

impl Comparator for Caseless {
    fn name(&self) -> &str {
        "caseless"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}
