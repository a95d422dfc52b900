use crate::Result;
#[allow(missing_docs)]
#[derive(Debug)]
pub struct Iter {}
#[allow(missing_docs, unused_variables)]
impl Iter {
    /// Moves the front to the first key >= key (within the range), forward or back.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        unimplemented!()
    }
    /// Like next(), without allocation: the entry is valid until the next call.
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        unimplemented!()
    }
    /// Like next_back(), without allocation.
    pub fn next_back_entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        unimplemented!()
    }
}
impl Iterator for Iter {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    fn next(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}
impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}
