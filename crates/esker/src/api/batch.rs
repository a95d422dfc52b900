use crate::{Keyspace, Result};
use std::ops::RangeBounds;
#[allow(missing_docs)]
#[derive(Debug, Default)]
pub struct Batch {}
#[allow(missing_docs, unused_variables)]
impl Batch {
    pub fn new() -> Self {
        unimplemented!()
    }
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        unimplemented!()
    }
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        unimplemented!()
    }
    /// Fails with InvalidArgument for bounds that the keyspace's order cannot express.
    pub fn remove_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        unimplemented!()
    }
    pub fn len(&self) -> usize {
        unimplemented!()
    }
    pub fn is_empty(&self) -> bool {
        unimplemented!()
    }
    pub fn clear(&mut self) {
        unimplemented!()
    }
}
