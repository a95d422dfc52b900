//! What an iterator must show.

use super::writes::Pair;

/// A key and what it may show; it is one thing only, unless a compaction filter may have been asked
/// about the key.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) key: Vec<u8>,
    pub(super) shown: Vec<Option<Pair>>,
}

impl Line {
    /// A key that shows this.
    pub(super) fn certain(pair: &Pair) -> Self {
        Self { key: pair.0.clone(), shown: vec![Some(pair.clone())] }
    }

    /// Whether the key may show what was found. From then on it must show that.
    fn take(&mut self, found: Option<(&[u8], &[u8])>) -> bool {
        let fits = |shown: &Option<Pair>| {
            shown.as_ref().map(|(key, value)| (&key[..], &value[..])) == found
        };
        let right = self.shown.iter().any(fits);
        if right {
            self.shown.retain(fits);
        }
        right
    }
}

/// What an iterator must still show, from both ends. What it has shown once it must show again.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    lines: Vec<Line>,
    front: usize,
    back: usize,
}

impl Expected {
    /// All of these keys.
    pub(super) fn of(lines: Vec<Line>) -> Self {
        let back = lines.len();
        Self { lines, front: 0, back }
    }

    /// Only the keys that begin with this.
    pub fn with_prefix(self, prefix: &[u8]) -> Self {
        let mut lines = self.lines;
        lines.retain(|line| line.key.starts_with(prefix));
        Self::of(lines)
    }

    /// Takes what an iterator has found at one end. Whether that is right.
    pub fn take(&mut self, forward: bool, found: Option<(&[u8], &[u8])>) -> bool {
        while self.front < self.back {
            let at = if forward { self.front } else { self.back - 1 };
            let line = &mut self.lines[at];
            let here = found.is_some() && line.take(found);
            // Keys that the iterator has passed over show nothing.
            if !here && !line.take(None) {
                return false;
            }
            if forward {
                self.front += 1;
            } else {
                self.back -= 1;
            }
            if here {
                return true;
            }
        }
        found.is_none()
    }

    /// Places the front on the first key that does not lie before.
    pub fn seek(&mut self, lies_before: impl Fn(&[u8]) -> bool) {
        self.front = self.lines.partition_point(|line| lies_before(&line.key));
    }

    /// Where it stands, for people.
    pub fn told(&self) -> String {
        let key = |at: usize| self.lines.get(at).map(|line| line.key.escape_ascii().to_string());
        let (front, back) = (key(self.front), self.back.checked_sub(1).and_then(key));
        format!("{}..{} of {}: {front:?} to {back:?}", self.front, self.back, self.lines.len())
    }
}
