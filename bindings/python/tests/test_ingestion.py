"""Ingestion: sorted entries that become visible together."""

from __future__ import annotations

import threading

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
