use crate::*;
use std::ops::RangeBounds;
#[allow(missing_docs)]
#[derive(Debug, Clone)]
pub struct Snapshot {}
#[allow(missing_docs, unused_variables)]
impl Snapshot {
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        unimplemented!()
    }
    pub fn contains_key(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        unimplemented!()
    }
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        unimplemented!()
    }
    pub fn iter(&self, keyspace: &Keyspace) -> Result<Iter> {
        unimplemented!()
    }
    pub fn range<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<Iter> {
        unimplemented!()
    }
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        unimplemented!()
    }
    pub fn first_key_value(&self, keyspace: &Keyspace) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        unimplemented!()
    }
    pub fn last_key_value(&self, keyspace: &Keyspace) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        unimplemented!()
    }
}
