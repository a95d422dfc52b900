use super::*;
use crate::base::{Bytewise, Kind};
use crate::error::Result;
use std::rc::Rc;

/// A cursor over nothing, which refers to something.
struct Empty {
    _of: Rc<()>,
    buffer: Vec<u8>,
}

impl Cursor for Empty {
    fn valid(&self) -> bool {
        false
    }
    fn key(&self) -> &[u8] {
        &[]
    }
    fn seq(&self) -> Seq {
        0
    }
    fn kind(&self) -> Kind {
        Kind::Put
    }
    fn value(&self) -> &[u8] {
        &[]
    }
    fn seek(&mut self, _: &[u8], _: Seq) -> Result<()> {
        Ok(())
    }
    fn seek_before(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn seek_to_first(&mut self) -> Result<()> {
        Ok(())
    }
    fn seek_to_last(&mut self) -> Result<()> {
        Ok(())
    }
    fn next(&mut self) -> Result<()> {
        Ok(())
    }
    fn prev(&mut self) -> Result<()> {
        Ok(())
    }
    fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }
}

fn sources(count: usize, of: &Rc<()>, bytes: usize) -> Box<Sources<Empty>> {
    let mut sources = Sources::with_room(count);
    for n in 0..count {
        let mut buffer = sources.buffer();
        assert!(buffer.is_empty());
        buffer.resize(bytes, 1);
        sources.push(Empty { _of: Rc::clone(of), buffer }, n as Seq);
    }
    sources
}

fn leave(mut sources: Box<Sources<Empty>>) {
    let mut tree = sources.tree(Bytewise);
    sources.leave(&mut tree, [Vec::new(), Vec::new()]);
    assert_eq!(tree.cursors().len(), 0);
}

#[test]
fn what_an_iterator_leaves_behind_serves_the_next_and_refers_to_nothing() {
    let of = Rc::new(());
    let first = sources(7, &of, 30);
    let cursors = first.cursors.as_ptr();
    leave(first);
    assert_eq!(Rc::strong_count(&of), 1, "a cursor is left");
    let mut next = Sources::<Empty>::with_room(5);
    assert_eq!((next.cursors.as_ptr(), next.cursors.len(), next.seq_bounds.len()), (cursors, 0, 0));
    assert_eq!(next.buffers.len(), 7);
    assert!(next.buffer().capacity() >= 30);
    // Two at the same time do not share.
    let other = sources(7, &of, 30);
    assert_ne!(other.cursors.as_ptr(), cursors);
    next.push(Empty { _of: Rc::clone(&of), buffer: Vec::new() }, 3);
    leave(next);
    leave(other);
    assert_eq!(Rc::strong_count(&of), 1);
}

#[test]
fn what_is_large_is_not_kept() {
    let of = Rc::new(());
    leave(sources(3, &of, BUFFER_BYTES_MAX + 1));
    assert!(Sources::<Empty>::with_room(0).buffers.is_empty());
    leave(sources(SOURCES_MAX + 1, &of, 10));
    assert_eq!(Sources::<Empty>::with_room(0).cursors.capacity(), 0);
    assert_eq!(Rc::strong_count(&of), 1);
}
