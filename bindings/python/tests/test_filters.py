"""Compaction filters that are Python functions."""

from __future__ import annotations

import sys
import threading

import pytest

import esker


def tidy(key: bytes, value: bytes):
    if key.startswith(b"draft/"):
        return False
    if key.startswith(b"shout/"):
        return bytearray(value.upper())
    return None if key.startswith(b"none/") else True


TIDY = {"compaction_filters": {"tidy": tidy}}


def test_entries_are_kept_removed_and_changed(path):
    with esker.DB(path, create_if_missing=True, **TIDY) as db:
        pages = db.keyspace("pages", compaction_filter="tidy")
        other = db.keyspace("other")
        for space in (pages, other):
            space.update({b"draft/1": b"a", b"page/1": b"b", b"shout/1": b"c", b"none/1": b"d"})
        with db.snapshot() as snapshot:
            pages.compact_range()
            # What a snapshot sees stays.
            assert len(list(snapshot.keyspace("pages"))) == 4 and len(pages) == 4
        pages.compact_range()
        other.compact_range()
        assert dict(pages) == {b"none/1": b"d", b"page/1": b"b", b"shout/1": b"C"}
        assert len(other) == 4


def test_the_function_runs_while_other_threads_go_on(path):
    """A merge asks for the interpreter's lock, and nobody may hold it who waits for the merge."""
    names = set()

    def note(key: bytes, value: bytes) -> bool:
        names.add(threading.current_thread().name)
        return True

    with esker.DB(path, create_if_missing=True, compaction_filters={"note": note}) as db:
        space = db.keyspace("space", compaction_filter="note")
        for turn in range(3):
            with db.write_batch() as batch:
                for number in range(500):
                    batch.put(b"%d" % number, b"%d" % turn, keyspace=space)
            threads = [threading.Thread(target=space.compact_range) for _ in range(2)]
            for thread in threads:
                thread.start()
            assert len(list(space)) == 500
            for thread in threads:
                thread.join()
    assert names


@pytest.mark.parametrize("answer", [lambda: 1 / 0, lambda: 7, lambda: "text"])
def test_a_filter_that_fails_is_contained_and_reported(path, answer):
    calls = []

    def broken(key: bytes, value: bytes):
        calls.append(key)
        return answer()

    shown = []
    hook, sys.unraisablehook = sys.unraisablehook, shown.append
    try:
        with esker.DB(path, create_if_missing=True, compaction_filters={"broken": broken}) as db:
            space = db.keyspace("space", compaction_filter="broken")
            space[b"k"] = b"v"
            with pytest.raises(esker.UserCodeError):
                space.compact_range()
            # Nothing is lost, and the database goes on.
            assert dict(space) == {b"k": b"v"}
            space[b"l"] = b"w"
            db.put(b"k", b"v")
            asked = len(calls)
            with pytest.raises(esker.UserCodeError):
                space.compact_range()
            assert len(calls) == asked, "it is not asked again"
            db.compact_range()
    finally:
        sys.unraisablehook = hook
    assert len(shown) == 1
    assert shown[0].exc_type in (ZeroDivisionError, TypeError)


def test_filters_that_are_none(path):
    for wrong, error in (
        ({"compaction_filters": {"name": 7}}, TypeError),
        ({"compaction_filters": {7: tidy}}, TypeError),
        ({"compaction_filters": [tidy]}, TypeError),
        ({"compaction_filters": {"": tidy}}, ValueError),
    ):
        with pytest.raises(error):
            esker.DB(path, create_if_missing=True, **wrong)
    with esker.DB(path, create_if_missing=True) as db:
        with pytest.raises(esker.Error):
            db.keyspace("space", compaction_filter="tidy")
