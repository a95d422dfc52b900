"""Writes that look first."""

from __future__ import annotations

import threading

import pytest

import esker


def test_compare_and_set(db):
    assert db.compare_and_set(b"k", None, b"1")
    assert not db.compare_and_set(b"k", None, b"2")
    assert not db.compare_and_set(b"k", b"0", b"2")
    assert db.get(b"k") == b"1"
    assert db.compare_and_set(bytearray(b"k"), memoryview(b"1"), bytearray(b"3"))
    assert db.get(b"k") == b"3"
    assert db.compare_and_set(b"k", b"3", None)
    assert b"k" not in db
    # The empty value is one.
    assert db.compare_and_set(b"k", None, b"") and not db.compare_and_set(b"k", None, b"x")
    with pytest.raises(TypeError):
        db.compare_and_set(b"k", None)
    with pytest.raises(TypeError):
        db.compare_and_set(b"k", "text", b"x")


def test_insert_if_absent(db):
    assert db.insert_if_absent(b"k", b"first")
    assert not db.insert_if_absent(b"k", b"second")
    assert db.get(b"k") == b"first"


def test_behind_a_prefix_and_in_a_keyspace(db):
    part, space = db.prefixed_db(b"p:"), db.keyspace("space")
    for store in (part, space):
        assert store.insert_if_absent(b"k", b"v")
        assert store.update_with(b"k", lambda value: value + b"w") == b"vw"
        assert store.compare_and_set(b"k", b"vw", b"x")
    assert list(db) == [(b"p:k", b"x")] and dict(space) == {b"k": b"x"}


def test_update_with(db):
    seen = []

    def add(value):
        seen.append(value)
        return b"%d" % (int(value or b"0") + 1)

    assert [db.update_with(b"n", add) for _ in range(3)] == [b"1", b"2", b"3"]
    assert seen == [None, b"1", b"2"]
    assert db.update_with(b"n", lambda _: bytearray(b"buffer")) == b"buffer"
    assert db.update_with(b"n", lambda _: None) is None
    assert b"n" not in db
    assert db.update_with(b"n", lambda value: value) is None


def test_an_update_that_meets_another_writer_is_made_anew(db):
    db.put(b"n", b"0")
    calls = []

    def meddle(value):
        calls.append(value)
        if len(calls) < 3:
            db.put(b"n", value + b"!")
        return value + b"."

    assert db.update_with(b"n", meddle) == b"0!!."
    assert calls == [b"0", b"0!", b"0!!"] and db.get(b"n") == b"0!!."


def test_an_exception_of_the_function_is_the_callers(db):
    db.put(b"n", b"1")
    with pytest.raises(ZeroDivisionError):
        db.update_with(b"n", lambda value: 1 / 0)
    with pytest.raises(TypeError):
        db.update_with(b"n", lambda value: "text")
    assert db.get(b"n") == b"1"
    db.put(b"n", b"2")
    assert db.get(b"n") == b"2"


def test_threads_lose_no_update(db):
    def work():
        for _ in range(50):
            db.update_with(b"n", lambda value: b"%d" % (int(value or b"0") + 1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.get(b"n") == b"200"


def test_a_closed_database_says_so(path):
    db = esker.DB(path, create_if_missing=True)
    db.close()
    for call in (
        lambda: db.compare_and_set(b"k", None, b"v"),
        lambda: db.insert_if_absent(b"k", b"v"),
        lambda: db.update_with(b"k", lambda value: value),
    ):
        with pytest.raises(esker.ClosedError):
            call()
