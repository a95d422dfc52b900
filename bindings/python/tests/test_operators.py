"""Merge operators and times to live."""

from __future__ import annotations

import struct
import sys

import pytest

import esker


def joined(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes | None:
    if operands[-1] == b"gone":
        return None
    return b",".join(([] if existing is None else [existing]) + operands)


JOINED = {"merge_operators": {"joined": joined}}


def test_an_operator_that_comes_with_the_engine(db):
    visits = db.keyspace("visits", merge_operator="esker.counter-u64")
    for _ in range(3):
        visits.merge(b"home", struct.pack("<Q", 2))
    assert struct.unpack("<Q", visits[b"home"]) == (6,)
    assert visits.merge_operator == "esker.counter-u64"
    with pytest.raises(esker.InvalidArgumentError):
        db.merge(b"k", b"no operator here")


def test_an_operator_of_ones_own(path):
    with esker.DB(path, create_if_missing=True, **JOINED) as db:
        tags = db.keyspace("tags", merge_operator="joined")
        tags.merge(b"a", b"1")
        tags.merge(b"a", b"2", sync=True)
        with db.write_batch() as batch:
            batch.merge(b"a", b"3", keyspace=tags)
            batch.put(b"b", b"x", keyspace=tags)
            batch.merge(b"b", b"y", keyspace=tags)
            batch.merge(b"c", b"gone", keyspace=tags)
        with db.snapshot() as snapshot:
            tags.merge(b"a", b"gone")
            assert snapshot.keyspace("tags").get(b"a") == b"1,2,3"
        assert dict(tags) == {b"b": b"x,y"}
        db.flush()
        db.compact_range()
        tags.merge(b"b", bytearray(b"z"))
        assert list(tags.iterator(reverse=True)) == [(b"b", b"x,y,z")]
    with pytest.raises(esker.MergeOperatorMissingError) as caught:
        with esker.DB(path) as db:
            db.keyspace("tags")[b"b"]
    assert (caught.value.keyspace, caught.value.operator) == ("tags", "joined")
    with esker.DB(path, **JOINED) as db:
        assert db.keyspace("tags")[b"b"] == b"x,y,z"
        with pytest.raises(esker.MergeOperatorMismatchError) as caught:
            db.keyspace("tags", merge_operator="esker.max")
        assert (caught.value.operator, caught.value.asked) == ("joined", "esker.max")


def test_an_operator_that_raises_is_contained(path):
    def picky(key, existing, operands):
        if b"bad" in operands:
            raise ValueError("cannot add this")
        return b"".join(operands)

    shown = []
    hook, sys.unraisablehook = sys.unraisablehook, shown.append
    try:
        with esker.DB(path, create_if_missing=True, merge_operators={"picky": picky}) as db:
            space = db.keyspace("space", merge_operator="picky")
            space.merge(b"a", b"good")
            space.merge(b"b", b"bad")
            assert space[b"a"] == b"good"
            with pytest.raises(esker.MergeFailedError) as caught:
                space[b"b"]
            error = caught.value
            assert (error.kind, error.keyspace, error.operator) == ("merge-failed", "space", "picky")
            assert "cannot add this" in error.detail
            space[b"b"] = b"overwritten"
            assert space[b"b"] == b"overwritten"
    finally:
        sys.unraisablehook = hook
    assert shown and {each.exc_type for each in shown} == {ValueError}


def test_operators_that_are_none(path):
    for wrong, error in (
        ({"merge_operators": {"name": 7}}, TypeError),
        ({"merge_operators": {7: joined}}, TypeError),
        ({"merge_operators": [joined]}, TypeError),
        ({"merge_operators": {"": joined}}, ValueError),
    ):
        with pytest.raises(error):
            esker.DB(path, create_if_missing=True, **wrong)
    shown = []
    hook, sys.unraisablehook = sys.unraisablehook, shown.append
    try:
        with esker.DB(
            path, create_if_missing=True, merge_operators={"text": lambda *_: "not bytes"}
        ) as db:
            space = db.keyspace("space", merge_operator="text")
            space.merge(b"k", b"")
            with pytest.raises(esker.MergeFailedError):
                space[b"k"]
    finally:
        sys.unraisablehook = hook


def test_times_to_live(db):
    db.put(b"gone", b"v", ttl=0)
    db.put(b"stays", b"v", ttl=3600)
    db.put(b"synced", b"v", ttl=3600.5, sync=True)
    with db.write_batch() as batch:
        batch.put(b"batched", b"v", ttl=0)
        batch.put(b"kept", b"v", ttl=1e6)
    assert [key for key, _ in db] == [b"kept", b"stays", b"synced"]
    assert db.get(b"gone") is None and b"batched" not in db
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(esker.InvalidArgumentError):
            db.put(b"k", b"v", ttl=wrong)
    sessions = db.keyspace("sessions", ttl=60)
    assert sessions.ttl == 60.0
    sessions[b"ann"] = b"token"
    assert sessions[b"ann"] == b"token"
    sessions.set_ttl(None)
    assert db.keyspace("sessions").ttl is None
    with pytest.raises(esker.InvalidArgumentError):
        db.keyspace("none", ttl=0)
