//! A batch that is kept until its commit.
//!
//! In LMDB, redb and SQLite a batch is a transaction that holds the engine's only lock for writers,
//! which would be held while the harness makes the next key. Their adapters collect the operations here
//! and carry them out when the batch is committed. All keys and values share one buffer that is reused,
//! so a batch costs a copy and no allocation.

/// The operations of a batch, in order.
#[derive(Debug, Default)]
pub struct Pending {
    bytes: Vec<u8>,
    /// Lengths of the key and, unless it is a deletion, of the value.
    lengths: Vec<(usize, Option<usize>)>,
}

impl Pending {
    /// Adds a write.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), Some(value.len())));
    }

    /// Adds a deletion.
    pub fn delete(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.lengths.push((key.len(), None));
    }

    /// Keys with their values, or without one if they are deleted.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().map(move |&(key, value)| {
            let (key, behind) = rest.split_at(key);
            let (found, behind) = behind.split_at(value.unwrap_or(0));
            rest = behind;
            (key, value.map(|_| found))
        })
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Pending;

    #[test]
    fn operations_come_back_in_order() {
        let mut pending = Pending::default();
        pending.put(b"key", b"value");
        pending.delete(b"gone");
        pending.put(b"", b"");
        let found: Vec<_> = pending.iter().collect();
        let expected: [(&[u8], Option<&[u8]>); 3] =
            [(b"key", Some(b"value")), (b"gone", None), (b"", Some(b""))];
        assert_eq!(found, expected);
        pending.clear();
        assert_eq!(pending.iter().count(), 0);
    }
}
