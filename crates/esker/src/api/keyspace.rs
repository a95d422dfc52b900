use crate::*;
use std::ops::RangeBounds;
#[allow(missing_docs)]
#[derive(Debug, Clone)]
pub struct Keyspace {}
#[allow(missing_docs, unused_variables)]
impl Keyspace {
    pub fn name(&self) -> &str {
        unimplemented!()
    }
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        unimplemented!()
    }
    pub fn insert_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        unimplemented!()
    }
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        unimplemented!()
    }
    pub fn remove_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        unimplemented!()
    }
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        unimplemented!()
    }
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        unimplemented!()
    }
    /// Appends nothing and returns false if absent; else replaces the buffer's content.
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        unimplemented!()
    }
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        unimplemented!()
    }
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        unimplemented!()
    }
    pub fn iter(&self) -> Result<Iter> {
        unimplemented!()
    }
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        unimplemented!()
    }
    /// Bytewise keyspaces only.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        unimplemented!()
    }
    pub fn first_key_value(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        unimplemented!()
    }
    pub fn last_key_value(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        unimplemented!()
    }
    pub fn compact(&self) -> Result<()> {
        unimplemented!()
    }
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        unimplemented!()
    }
}
