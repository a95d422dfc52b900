"""Ingestion: sorted entries that become visible together."""

from __future__ import annotations

import _thread
import itertools
import signal
import sys
import threading
import time

import pytest

import esker


def test_entries_are_visible_at_the_end_of_the_block(db):
    users = db.keyspace("users")
    users[b"bob"] = b"old"
    with db.ingestion() as load:
        for name in (b"ann", b"bob", b"cid"):
            load.put(name, b"new", keyspace=users)
            load.put(name, b"1")
        with pytest.raises(esker.OutOfOrderError) as error:
            load.put(b"abe", b"late", keyspace=users)
        assert (error.value.keyspace, error.value.key) == ("users", b"abe")
        assert isinstance(error.value, ValueError)
        assert dict(users) == {b"bob": b"old"}
    assert dict(users) == {b"ann": b"new", b"bob": b"new", b"cid": b"new"}
    assert len(list(db)) == 3
    with pytest.raises(esker.InvalidArgumentError):
        load.put(b"z", b"")


def test_a_block_that_raises_keeps_nothing(db):
    with pytest.raises(ZeroDivisionError):
        with db.ingestion() as load:
            load.put(b"a", b"1")
            load.sync()
            1 / 0
    assert list(db) == []
    load = db.ingestion()
    load.put(b"a", b"1")
    load.close()
    load.close()
    assert list(db) == []


def test_ranges_and_keys_are_removed_and_times_to_live_kept(db):
    for key in (b"a", b"b", b"c", b"d"):
        db.put(key, b"old")
    with db.prefixed_db(b"p").ingestion() as load:
        load.put(b"1", b"one")
    with db.ingestion() as load:
        load.delete_range(b"b", b"d")
        load.put(b"bb", b"new")
        load.delete(b"d")
        load.put(b"e", b"gone", ttl=0.0)
        load.put(b"f", b"later", ttl=10_000.0)
    assert list(db) == [(b"a", b"old"), (b"bb", b"new"), (b"f", b"later"), (b"p1", b"one")]


def test_operands(db):
    greatest = db.keyspace("greatest", merge_operator="esker.max")
    greatest.merge(b"a", b"3")
    with greatest.ingestion() as load:
        load.merge(b"a", b"5")
        load.merge(b"b", b"4")
    assert dict(greatest) == {b"a": b"5", b"b": b"4"}


def test_an_iterable_of_pairs_is_added(db):
    users = db.keyspace("users")
    numbers = range(5000)
    with db.ingestion() as load:
        assert load.put_many((b"%06d" % n, b"%d" % n) for n in numbers) == 5000
        assert load.put_many(sorted({b"bob": b"2", b"ann": b"1"}.items()), keyspace=users) == 2
        # Other buffers, and other pairs than tuples.
        assert load.put_many([[bytearray(b"cid"), memoryview(b"03")[1:]]], keyspace=users) == 1
        assert load.put_many([], keyspace=users) == 0
        assert load.put_many([(b"dan", b"gone")], keyspace=users, ttl=0.0) == 1
        assert load.put_many([(b"dee", b"4")], keyspace=users, ttl=10_000.0) == 1
        assert list(db) == []
    assert list(db) == [(b"%06d" % n, b"%d" % n) for n in numbers]
    assert dict(users) == {b"ann": b"1", b"bob": b"2", b"cid": b"3", b"dee": b"4"}
    part = db.prefixed_db(b"p")
    assert part.ingest_sorted((b"%05d" % n, bytes(2000)) for n in range(1500)) == 1500
    assert users.ingest_sorted([(b"eve", b"gone")], ttl=0.0) == 1
    assert list(part) == [(b"%05d" % n, bytes(2000)) for n in range(1500)]
    assert db.get(b"p01499") == bytes(2000)
    assert len(users) == 4


def test_what_is_wrong_in_an_iterable_ends_it_behind_what_came_before(db):
    def broken():
        for number in range(3000):
            yield b"%06d" % number, b"v"
        1 / 0

    load = db.ingestion()
    with pytest.raises(ZeroDivisionError):
        load.put_many(broken())
    with pytest.raises(esker.OutOfOrderError) as error:
        load.put_many([(b"003000", b"v"), (b"003000", b"again"), (b"004000", b"v")])
    assert error.value.key == b"003000"
    for wrong in ([(b"1",)], [(b"1", b"2", b"3")], [1], [("1", b"2")], [b"12"], 7):
        with pytest.raises(TypeError):
            load.put_many(wrong)
    with pytest.raises(esker.InvalidArgumentError):
        load.put_many([], ttl=-1.0)
    load.commit()
    assert [key for key, _ in db] == [b"%06d" % number for number in range(3001)]
    with pytest.raises(esker.InvalidArgumentError):
        load.put_many([])
    # Nothing was taken from an iterable for which there is no ingestion.
    left = iter([(b"a", b"v")])
    with pytest.raises(esker.InvalidArgumentError):
        load.put_many(left)
    assert next(left) == (b"a", b"v")

    # Of one that is ingested as a whole nothing is kept.
    users = db.keyspace("users")
    with pytest.raises(ZeroDivisionError):
        users.ingest_sorted(broken())
    with pytest.raises(esker.OutOfOrderError):
        users.ingest_sorted([(b"b", b"1"), (b"a", b"2")])
    assert dict(users) == {}


def test_an_iterable_may_use_its_ingestion_and_its_database(db):
    load = db.ingestion()
    users = db.keyspace("users")

    def entries():
        for number in range(2000):
            load.put(b"%06d" % number, b"v", keyspace=users)
            yield b"%06d" % number, users.get(b"%06d" % number) or b"none"

    assert load.put_many(entries()) == 2000
    load.commit()
    assert len(list(users)) == 2000
    assert {value for _, value in db} == {b"none"}


def test_a_signal_ends_it_between_two_chunks(db):
    pairs = [(b"%06d" % number, b"v") for number in range(20_000)]
    # Nothing of this iterator is written in Python, where the interpreter would look for signals.
    interrupt = map(_thread.interrupt_main, [signal.SIGINT])
    chosen = itertools.chain([True] * 100, interrupt, itertools.repeat(True))
    load = db.ingestion()
    with pytest.raises(KeyboardInterrupt):
        load.put_many(itertools.compress(pairs, chosen))
    load.commit()
    assert 100 <= len(list(db)) <= 2048


def test_other_threads_run_while_entries_are_added(db):
    turns, begun, done = [0], threading.Event(), threading.Event()

    def count():
        while not done.is_set():
            turns[0] += 1
            begun.set()
            time.sleep(0)  # Gives the interpreter's lock away and takes it again.

    entries = [(b"%08d" % number, bytes(100)) for number in range(50_000)]
    interval = sys.getswitchinterval()
    counter = threading.Thread(target=count)
    counter.start()
    begun.wait()
    # No thread has to give the lock away, so the other one runs only where this one does so itself.
    sys.setswitchinterval(1000)
    try:
        load = db.ingestion()
        before = turns[0]
        assert load.put_many(entries) == 50_000
        after = turns[0]
    finally:
        sys.setswitchinterval(interval)
        done.set()
        counter.join()
    assert after > before


def test_threads_fill_one_each_and_one_of_them_commits(db, tmp_path):
    loads = [db.ingestion() for _ in range(4)]

    def fill(part):
        for number in range(1000):
            loads[part].put(b"%d%06d" % (part, number), b"v")
        loads[part].sync()

    threads = [threading.Thread(target=fill, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in loads[1:]:
        loads[0].join(other)
    mixed = db.ingestion()
    mixed.put(b"0000500", b"v")
    with pytest.raises(esker.OutOfOrderError):
        loads[0].join(mixed)
    with pytest.raises(esker.InvalidArgumentError):
        loads[0].join(loads[0])
    with esker.DB(tmp_path / "other", create_if_missing=True) as other:
        with pytest.raises(esker.InvalidArgumentError):
            loads[0].join(other.ingestion())
        with pytest.raises(esker.InvalidArgumentError):
            loads[0].put(b"z", b"v", keyspace=other)
    assert list(db) == []
    loads[0].commit()
    assert len(list(db)) == 4000


def test_closed_databases_take_none(path):
    db = esker.DB(path, create_if_missing=True)
    load = db.ingestion()
    load.put(b"a", b"1")
    db.close()
    with pytest.raises(esker.ClosedError):
        load.commit()
    load.close()
    with pytest.raises(esker.ClosedError):
        db.ingestion()
    with esker.DB(path) as db:
        assert list(db) == []
