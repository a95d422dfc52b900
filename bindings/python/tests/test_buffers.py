"""Views of values that lie where the engine has them."""

from __future__ import annotations

import gc
import io
import random

import pytest
from test_threads import in_threads

import esker

MEMORY = 1 << 20
# What readers may keep: an eighth of the memory, and the block that was taken last.
BOUND = MEMORY // 8 + (16 << 10)


def pinned(db: esker.DB) -> int:
    return db.stats()["held"]["pinned"]


def clients(db: esker.DB) -> int:
    return db.stats()["memory"]["clients"]


def test_a_view_shows_the_value(db):
    db.put(b"k", b"value")
    db.put(b"empty", b"")
    for _ in range(2):
        view = db.get_buffer(b"k")
        assert isinstance(view, memoryview)
        assert view == b"value" and bytes(view) == b"value" and bytes(view[1:3]) == b"al"
        assert (view.nbytes, view.format, view.itemsize, view.shape) == (5, "B", 1, (5,))
        assert view.c_contiguous and hash(view) == hash(b"value")
        assert bytes(db.get_buffer(b"empty")) == b""
        assert db.get_buffer(b"none") is None
        assert db.get_buffer(bytearray(b"k")) == view
        db.flush()
    # It goes where any buffer goes.
    db.put(view, view)
    assert db.get(b"value") == b"value"
    with pytest.raises(TypeError):
        db.get_buffer("k")


def test_a_view_is_read_only(db):
    db.put(b"k", b"value")
    for _ in range(2):
        view = db.get_buffer(b"k")
        assert view.readonly
        with pytest.raises(TypeError, match="read-only"):
            view[0] = 1
        with pytest.raises(TypeError, match="read-only"):
            view.cast("c")[0] = b"x"
        # Whoever asks the object itself for a buffer to write to is refused, too.
        with pytest.raises((BufferError, TypeError)):
            io.BytesIO(b"other").readinto(view.obj)
        assert db.get(b"k") == b"value"
        db.flush()


@pytest.mark.parametrize("size", [5, 300, 3_000, 100_000])
def test_a_view_outlives_its_value_and_the_database(path, size):
    value, other = bytes([7]) * size, bytes([8]) * size
    db = esker.DB(path, create_if_missing=True, memory=32 << 20)
    space, part = db.keyspace("space"), db.prefixed_db(b"p")
    space[b"k"] = value
    part.put(b"k", value)
    views = [space.get_buffer(b"k"), part.get_buffer(b"k")]
    db.flush()
    views += [space.get_buffer(b"k"), part.get_buffer(b"k")]
    snapshot = db.snapshot()
    space[b"k"] = other
    part.delete(b"k")
    views += [snapshot.keyspace("space").get_buffer(b"k"), snapshot.get_buffer(b"pk")]
    assert snapshot.get_buffer(b"none") is None
    snapshot.close()
    with pytest.raises(esker.ClosedError):
        snapshot.get_buffer(b"pk")
    db.flush()
    db.compact_range()
    space.compact_range()
    db.wait_until_idle()
    assert space.get_buffer(b"k") == other and part.get_buffer(b"k") is None
    views.append(views[2][2:4])
    db.drop_keyspace("space")
    db.wait_until_idle()
    with pytest.raises(esker.KeyspaceDroppedError):
        space.get_buffer(b"k")
    db.close()
    with pytest.raises(esker.ClosedError):
        part.get_buffer(b"k")
    del db, space, part, snapshot
    gc.collect()
    # What the memory was is used again, by a database in the same directory.
    with esker.DB(path, memory=32 << 20) as again:
        for number in range(2_000):
            again.put(b"%d" % number, other)
            if number % 500 == 0:
                again.flush()
        again.compact_range()
        assert all(view == value for view in views[:-1]) and views[-1] == value[2:4]
    assert all(view == value for view in views[:-1])
    views.clear()


def test_a_view_does_not_keep_the_database_open(path):
    db = esker.DB(path, create_if_missing=True)
    db.put(b"k", b"v" * 500)
    db.flush()
    view = db.get_buffer(b"k")
    del db
    gc.collect()
    with esker.DB(path) as again:
        assert again.get(b"k") == view == b"v" * 500


def test_what_views_keep_is_bounded_and_counted(path):
    with esker.DB(path, create_if_missing=True, memory=MEMORY) as db:
        with db.write_batch() as batch:
            for number in range(20_000):
                batch.put(b"%05d" % number, b"%05d" % number * 20)
                if number % 500 == 499:
                    batch.write()
                    batch.clear()
        db.compact_range()
        gc.collect()
        assert pinned(db) == 0
        before, chance, most = clients(db), random.Random(5), 0
        kept = {}
        for _ in range(2_000):
            number = chance.randrange(20_000)
            kept[number] = db.get_buffer(b"%05d" % number)
            most = max(most, pinned(db))
        assert MEMORY // 16 <= most <= BOUND
        # Beyond that a view is one of a copy, which counts as what Python has.
        copies = clients(db) - before
        assert 100 * 500 < copies < 100 * 2_000
        assert all(view == b"%05d" % number * 20 for number, view in kept.items())
        kept.clear()
        gc.collect()
        assert pinned(db) == 0
        assert clients(db) - before < 4096
        # With nothing kept, the next one keeps its block again.
        view = db.get_buffer(b"00007")
        part = view[:2]
        assert 0 < pinned(db) < 16 << 10
        view.release()
        assert pinned(db) > 0
        part.release()
        del part, view
        assert pinned(db) == 0


def test_many_threads_make_and_drop_views(db):
    values = {b"%03d" % number: b"%03d" % number * 200 for number in range(300)}
    db.keyspace("space").update(values)

    def work(number):
        space, chance = db.keyspace("space"), random.Random(number)
        if number == 0:
            for _ in range(10):
                space.update(values)
                db.flush()
                space.compact_range()
            return
        kept = []
        for _ in range(3_000):
            key = chance.choice(list(values))
            kept.append((key, space.get_buffer(key)))
            if len(kept) > 50:
                key, view = kept.pop(chance.randrange(50))
                assert view == values[key]
        assert all(view == values[key] for key, view in kept)

    in_threads(4, work)
    gc.collect()
    assert pinned(db) == 0
