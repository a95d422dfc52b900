"""The tree of exceptions and their typed fields."""

from __future__ import annotations

import builtins
import pickle

import pytest

import esker


def test_every_exception_has_its_place():
    for name in dir(esker):
        kind = getattr(esker, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(kind, esker.Error), name
            assert kind.__doc__, name
    assert issubclass(esker.IOError, builtins.IOError)
    assert issubclass(esker.MissingError, FileNotFoundError)
    assert issubclass(esker.ClosedError, RuntimeError)
    assert issubclass(esker.KeyTooLongError, ValueError)


def test_missing(path):
    with pytest.raises(esker.MissingError) as caught:
        esker.DB(path)
    assert (caught.value.kind, caught.value.path) == ("missing", str(path))
    assert str(path) in str(caught.value)
    assert not path.exists()


def test_exists(path):
    esker.DB(path, create_if_missing=True).close()
    with pytest.raises(esker.ExistsError) as caught:
        esker.DB(path, create_if_missing=True, error_if_exists=True)
    assert caught.value.kind == "exists"


def test_locked(db, path):
    with pytest.raises(esker.LockedError) as caught:
        esker.DB(path)
    assert (caught.value.kind, caught.value.path) == ("locked", str(path))


def test_a_directory_of_something_else_is_left_alone(path):
    path.mkdir()
    (path / "CURRENT").write_text("MANIFEST-000001\n")
    with pytest.raises(esker.NotADatabaseError) as caught:
        esker.DB(path, create_if_missing=True)
    assert caught.value.found and caught.value.path == str(path)
    assert [file.name for file in path.iterdir()] == ["CURRENT"]


def test_the_system_refuses(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(esker.Error):
        esker.DB(file / "db", create_if_missing=True)
    with pytest.raises(esker.IOError) as caught:
        esker.DB("/proc/nowhere/db", create_if_missing=True)
    error = caught.value
    assert error.errno and error.operation and error.path.startswith("/proc")


def test_limits(db):
    with pytest.raises(esker.KeyTooLongError) as caught:
        db.put(b"k" * 65536, b"")
    assert (caught.value.length, caught.value.limit) == (65536, 65535)
    with pytest.raises(esker.ValueTooLargeError) as caught:
        db.put(b"k", bytes(9 << 20))
    assert caught.value.length > caught.value.limit == 8 << 20
    with pytest.raises(esker.BatchTooLargeError) as caught:
        with db.write_batch() as batch:
            for number in range(10):
                batch.put(b"%d" % number, bytes(1 << 20))
    assert isinstance(caught.value, esker.LimitError)
    assert list(db) == []


def test_corruption_names_file_offset_and_keyspace(path):
    with esker.DB(path, create_if_missing=True, memory=16 << 20, compression=None) as db:
        for number in range(1000):
            db.keyspace("things").put(b"%04d" % number, b"value")
        db.flush()
    run = max((path / "data").iterdir(), key=lambda file: file.stat().st_size)
    damaged = bytearray(run.read_bytes())
    at = damaged.rindex(b"0000")
    damaged[at] ^= 0xFF
    run.write_bytes(damaged)
    with esker.DB(path, memory=16 << 20) as db:
        things = db.keyspace("things")
        for read in (
            lambda: things.get(b"0000"),
            lambda: list(things),
            lambda: things.iterator().fetch(10),
            lambda: things.multi_get([b"0000"]),
        ):
            with pytest.raises(esker.CorruptionError) as caught:
                read()
            error = caught.value
            assert (error.kind, error.path, error.keyspace) == ("corruption", str(run), "things")
            assert error.offset is not None and error.offset <= at
            assert error.section and error.detail
        iterator = things.iterator()
        for _ in range(3):
            with pytest.raises(esker.CorruptionError):
                next(iterator)
            with pytest.raises((esker.CorruptionError, StopIteration)):
                iterator.prev()
        problems = db.verify()["problems"]
        assert problems and all(isinstance(each, esker.CorruptionError) for each in problems)


def test_a_failed_step_is_no_end(path):
    """An iterator that met damage must not pretend that the rest is not there."""
    with esker.DB(path, create_if_missing=True, memory=16 << 20, compression=None) as db:
        for number in range(1000):
            db.put(b"%04d" % number, b"v" * 100)
        db.flush()
    run = max((path / "data").iterdir(), key=lambda file: file.stat().st_size)
    damaged = bytearray(run.read_bytes())
    at = damaged.rindex(b"0500")
    damaged[at] ^= 0xFF
    run.write_bytes(damaged)
    with esker.DB(path, memory=16 << 20) as db:
        for reverse in (False, True):
            iterator = db.iterator(reverse=reverse, include_value=False)
            seen = []
            with pytest.raises(esker.CorruptionError):
                seen.extend(iter(lambda: next(iterator), None))
            assert len(seen) > 10
            with pytest.raises(esker.CorruptionError):
                next(iterator)
            with pytest.raises(esker.CorruptionError):
                iterator.prev()
            iterator.seek_to_start()
            assert (iterator.prev() if reverse else next(iterator)) == b"0000"


def test_a_comparator_that_raises_is_contained(path, capsys):
    broken = False

    def compare(a: bytes, b: bytes) -> int:
        if broken:
            raise ZeroDivisionError("on purpose")
        return (a > b) - (a < b)

    import sys

    shown = []
    hook, sys.unraisablehook = sys.unraisablehook, shown.append
    try:
        db = esker.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"c")
        for number in range(100):
            db.put(b"%d" % number, b"")
        broken = True
        with pytest.raises(esker.UserCodeError):
            db.get(b"50")
        with pytest.raises(esker.Error):
            db.put(b"50", b"")
        broken = False
        with pytest.raises(esker.Error):
            db.put(b"50", b"")
        with pytest.raises(esker.Error):
            db.close()
    finally:
        sys.unraisablehook = hook
    assert shown and all(each.exc_type is ZeroDivisionError for each in shown)
    with esker.DB(path, comparator=compare, comparator_name=b"c") as db:
        assert len(list(db)) == 100


def test_a_comparator_that_returns_no_number(path):
    import sys

    shown = []
    hook, sys.unraisablehook = sys.unraisablehook, shown.append
    try:
        db = esker.DB(
            path, create_if_missing=True, comparator=lambda a, b: "?", comparator_name=b"c"
        )
        db.put(b"a", b"")
        with pytest.raises(esker.Error):
            db.put(b"b", b"")
            db.get(b"a")
        with pytest.raises((esker.Error, TypeError)):
            db.close()
            list(db)
    finally:
        sys.unraisablehook = hook
    assert shown and all(each.exc_type is TypeError for each in shown)


def test_exceptions_can_be_pickled(path):
    with pytest.raises(esker.Error) as caught:
        esker.DB(path)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is esker.MissingError
    assert (str(again), again.kind, again.path) == (str(caught.value), "missing", str(path))
