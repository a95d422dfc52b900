use super::*;

fn at(seq: Seq) -> Moment {
    Moment { seq, time: 1000 + seq }
}

#[test]
fn moments_have_the_earliest_time_of_their_position() {
    let snapshots = Snapshots::default();
    snapshots.register(|| Moment { seq: 10, time: 5 });
    snapshots.register(|| Moment { seq: 10, time: 9 });
    snapshots.register(|| Moment { seq: 20, time: 9 });
    snapshots.release(10);
    let (moments, now) = snapshots.moments(|| 12);
    assert_eq!(moments, [Moment { seq: 10, time: 5 }, Moment { seq: 20, time: 9 }]);
    assert_eq!(now, 12);
}

#[test]
fn registered_positions_are_listed_once_in_order() {
    let snapshots = Snapshots::default();
    for seq in [30, 10, 20, 10] {
        assert_eq!(snapshots.register(|| at(seq)), at(seq));
    }
    assert_eq!(snapshots.list(), [10, 20, 30]);
}

#[test]
fn a_position_stays_until_its_last_registration_ends() {
    let snapshots = Snapshots::default();
    snapshots.register(|| at(10));
    snapshots.register(|| at(10));
    snapshots.release(10);
    assert_eq!(snapshots.list(), [10]);
    snapshots.release(10);
    assert!(snapshots.list().is_empty());
    snapshots.release(10);
    assert!(snapshots.list().is_empty(), "an end too many changes nothing");
}

#[test]
fn a_list_cannot_be_taken_between_reading_the_position_and_noting_it() {
    let snapshots = Snapshots::default();
    std::thread::scope(|scope| {
        snapshots.register(|| {
            // If registration did not hold the lock, this thread could list now and miss it.
            let (sender, receiver) = std::sync::mpsc::channel();
            let snapshots = &snapshots;
            scope.spawn(move || {
                sender.send(()).expect("the receiver waits");
                assert_eq!(snapshots.list(), [7]);
            });
            receiver.recv().expect("the thread runs");
            assert!(snapshots.counts.try_lock().is_none());
            at(7)
        });
    });
}
