//! A binary heap that gets its order with every call, because the order of keys is known only at
//! run time.

/// A heap; every call must be given the same order.
#[derive(Debug)]
pub(super) struct Heap<T> {
    items: Vec<T>,
}

impl<T> Heap<T> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new() }
    }

    /// The first item.
    pub(super) fn first(&self) -> Option<&T> {
        self.items.first()
    }

    /// The first item, to change; [`Self::settle`] then restores the order.
    pub(super) fn first_mut(&mut self) -> Option<&mut T> {
        self.items.first_mut()
    }

    /// Takes all items, in no order.
    pub(super) fn drain(&mut self) -> std::vec::Drain<'_, T> {
        self.items.drain(..)
    }

    pub(super) fn push(&mut self, item: T, before: &impl Fn(&T, &T) -> bool) {
        self.items.push(item);
        let mut at = self.items.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !before(&self.items[at], &self.items[parent]) {
                return;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    pub(super) fn pop(&mut self, before: &impl Fn(&T, &T) -> bool) -> Option<T> {
        if self.items.is_empty() {
            return None;
        }
        let first = self.items.swap_remove(0);
        self.settle(before);
        Some(first)
    }

    /// Puts the first item in its place after it was changed.
    pub(super) fn settle(&mut self, before: &impl Fn(&T, &T) -> bool) {
        let mut at = 0;
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.items.len() && before(&self.items[child], &self.items[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.items.swap(at, least);
            at = least;
        }
    }
}
