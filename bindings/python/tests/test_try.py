"""Writes that do not wait."""

from __future__ import annotations

import asyncio

import pytest

import esker
from esker import aio

#: Larger than what a flush takes in the time of one put.
VALUE = bytes(256 << 10)


def refused(write):
    """Calls ``write`` with ever new keys until it would wait: the keys that were written, and the
    exception."""
    for number in range(16_000):
        try:
            write(b"%08d" % number)
        except esker.WouldBlockError as error:
            return number, error
    raise AssertionError("four gigabytes went into memory of 16 MiB without a wait")


def check(error):
    assert isinstance(error, BlockingIOError)
    assert error.kind == "would-block"
    assert error.reason in ("flush_debt", "compaction_debt", "memory")
    assert error.retry_after > 0
    assert error.reason in str(error)


def test_writes_that_need_no_wait(db):
    db.try_put(b"k", b"v")
    part, space = db.prefixed_db(b"p:"), db.keyspace("space")
    for store in (part, space):
        store.try_put(bytearray(b"k"), memoryview(b"w"))
        store.try_put(b"gone", b"w")
        store.try_delete(b"gone")
    batch = db.write_batch()
    batch.put(b"a", b"1")
    batch.put(b"a", b"2", keyspace=space)
    batch.try_write()
    assert list(db) == [(b"a", b"1"), (b"k", b"v"), (b"p:k", b"w")]
    assert list(space.items()) == [(b"a", b"2"), (b"k", b"w")]
    with pytest.raises(TypeError):
        db.try_put(b"k", "text")
    synced = db.write_batch(sync=True)
    synced.delete(b"a")
    synced.try_write()
    assert b"a" not in db


def test_a_put_is_there_or_was_refused(tmp_path):
    with esker.DB(tmp_path / "db", create_if_missing=True, memory=16 << 20) as db:
        count, error = refused(lambda key: db.try_put(key, VALUE))
        check(error)
        assert list(db.iterator(include_value=False)) == [b"%08d" % key for key in range(count)]
        db.flush()
        db.try_delete(b"%08d" % 0)
        assert b"%08d" % 0 not in db


def test_a_batch_is_written_whole_or_not_at_all(tmp_path):
    with esker.DB(tmp_path / "db", create_if_missing=True, memory=16 << 20) as db:
        space = db.keyspace("space")
        batch = db.write_batch()

        def write(key):
            batch.clear()
            batch.put(key, VALUE)
            batch.put(key, VALUE, keyspace=space)
            batch.try_write()

        count, error = refused(write)
        check(error)
        assert len(list(db.iterator(include_value=False))) == count == len(list(space))
        assert len(batch) == 2
        db.flush()
        batch.write()
        assert b"%08d" % count in db and b"%08d" % count in space


def test_awaited(tmp_path):
    async def program():
        async with await aio.open(tmp_path / "db", create_if_missing=True) as db:
            await db.try_put(b"a", b"1")
            await db.try_put(b"b", b"2")
            await db.try_delete(b"a")
            batch = db.write_batch()
            batch.put(b"c", b"3")
            await batch.try_write()
            return [entry async for entry in db.iterator()]

    assert asyncio.run(program()) == [(b"b", b"2"), (b"c", b"3")]
