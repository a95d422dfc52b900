"""The account of memory: what this layer keeps between calls is part of what clients have."""

from __future__ import annotations

import gc
import threading

import esker

# What may come and go beside what a test looks at.
LITTLE = 4096


def clients(db: esker.DB) -> int:
    return db.stats()["memory"]["clients"]


def test_batches_are_counted_until_their_operations_go(db):
    gc.collect()
    before = clients(db)
    batch = db.write_batch()
    for number in range(1000):
        batch.put(b"%04d" % number, bytes(1000))
    one = clients(db) - before
    assert 1_004_000 < one < 3_000_000
    # What was written stays in the batch, and goes when it is cleared.
    batch.write()
    assert abs(clients(db) - before - one) < LITTLE
    other = db.write_batch()
    other.append(batch)
    other.append(batch)
    assert 3_012_000 < clients(db) - before < one + 6_000_000
    batch.clear()
    assert 2_008_000 < clients(db) - before < 6_000_000
    del other
    assert abs(clients(db) - before) < LITTLE
    with db.write_batch() as batch:
        batch.delete_range(bytes(50_000), b"1" * 50_000)
        assert clients(db) - before > 100_000
    assert abs(clients(db) - before) < LITTLE


def test_entries_that_were_fetched_ahead_are_counted_until_the_iterator_goes(db):
    for number in range(1000):
        db.put(b"%04d" % number, bytes(1000))
    gc.collect()
    before = clients(db)
    iterators = [db.iterator(), db.iterator(reverse=True)]
    for iterator in iterators:
        assert len([next(iterator) for _ in range(100)]) == 100
    # Each has some 32 KiB of them, and room for more.
    assert 64_000 < clients(db) - before < 300_000
    iterators[0].close()
    assert 32_000 < clients(db) - before < 150_000
    del iterator, iterators
    assert abs(clients(db) - before) < LITTLE
    # One that has come to its end keeps the room.
    with db.iterator(start=b"0900") as iterator:
        assert len(list(iterator)) == 100
        assert 32_000 < clients(db) - before < 150_000
    assert abs(clients(db) - before) < LITTLE


def test_the_room_that_a_thread_keeps_for_values_is_counted(db):
    db.put(b"small", bytes(500_000))
    db.put(b"large", bytes(2 << 20))
    held = []

    # Those of a snapshot take this way also where memory answers.
    snapshot = db.snapshot()

    def read():
        before = clients(db)
        for key in (b"small", b"small", b"large"):
            assert snapshot.get(key) is not None
            held.append(clients(db) - before)

    # A thread of its own, which keeps nothing yet.
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    first, second, third = held
    assert 500_000 <= first < 1_100_000
    assert second == first
    # A thread does not keep as much as the large value needs.
    assert third < LITTLE
