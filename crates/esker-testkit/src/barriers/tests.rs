use super::*;
use crate::CrashFs;

fn open() -> (Db, Barriers) {
    let mut options = Options::default();
    (options.fs, options.memory) = (CrashFs::new().as_fs(), Some(8 << 20));
    let (db, barriers) = Barriers::open("/db", options).unwrap();
    barriers.close(&[Point::CompactionBegins]);
    (db, barriers)
}

#[test]
fn a_call_is_held_at_a_closed_point() {
    let (db, barriers) = open();
    for _ in 0..2 {
        (0..100).for_each(|number: u32| db.insert(number.to_be_bytes(), "value").unwrap());
        db.flush().unwrap();
    }
    let call = barriers.call({
        let db = db.clone();
        move || db.compact().unwrap()
    });
    call.wait_for(Point::CompactionBegins);
    barriers.let_go(&[Point::CompactionBegins]);
    call.join();
}

#[test]
#[should_panic(expected = "the call has ended before a thread came to CompactionBegins")]
fn a_call_that_ends_before_its_point_is_found_out() {
    let (_db, barriers) = open();
    barriers.call(|| ()).wait_for(Point::CompactionBegins);
}
