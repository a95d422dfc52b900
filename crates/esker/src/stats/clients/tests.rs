use super::{Counted, bytes};

// Other tests of this process count, too: the sums are those of large objects.
const LARGE: usize = 1 << 40;

#[test]
fn what_one_thread_makes_and_another_frees_is_counted_once() {
    let before = bytes();
    let mut objects: Vec<Counted> = (0..8).map(|_| Counted::of(LARGE)).collect();
    assert_eq!((bytes() - before) >> 40, 8);
    objects[0].set(3 * LARGE);
    objects[1].set(0);
    assert_eq!((bytes() - before) >> 40, 9);
    objects.push(objects[0].clone());
    assert_eq!((bytes() - before) >> 40, 12);
    std::thread::scope(|scope| {
        scope.spawn(move || drop(objects));
    });
    assert!(bytes() < before + LARGE as u64, "{} bytes", bytes());
}
