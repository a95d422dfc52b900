"""Explanations: what one get, scan or put did, and whose snapshots hold old data."""

from __future__ import annotations

import asyncio

import pytest

import esker
from esker import aio


def outcomes(explanation: dict) -> list[tuple[str, str]]:
    return [(step["source"], step["outcome"]) for step in explanation["steps"]]


def test_a_get_says_which_sources_it_searched(db):
    db.put(b"secret-key", b"secret-value")
    in_memory = db.explain_get(b"secret-key")
    assert (in_memory["operation"], in_memory["keyspace"]) == ("get", "default")
    assert in_memory["found"] and outcomes(in_memory)[0] == ("memtable", "found")
    assert in_memory["steps"][0]["number"] == 1 and in_memory["bytes_read"] == 0
    db.flush()
    flushed = db.explain_get(b"secret-key")
    run = next(step for step in flushed["steps"] if step["source"] == "run")
    assert run["outcome"] == "found" and run["partition"] == 0 and run["file"] is not None
    blocks = flushed["blocks"]
    assert blocks["cached"] + blocks["page_cache"] + blocks["device"] > 0
    assert 0 < sum(step["time"] for step in flushed["steps"]) <= flushed["time"] < 3600
    absent = db.explain_get(bytearray(b"absent"))
    assert not absent["found"] and "found" not in [outcome for _, outcome in outcomes(absent)]
    assert "secret" not in repr([in_memory, flushed, absent])


def test_a_put_is_done_and_says_its_phases(db):
    fruit = db.keyspace("fruit")
    explanation = fruit.explain_put(b"secret-pear", b"secret-green")
    assert fruit[b"secret-pear"] == b"secret-green"
    assert (explanation["operation"], explanation["keyspace"]) == ("put", "fruit")
    sources = [source for source, _ in outcomes(explanation)]
    assert sources == ["admission", "reservation", "log", "apply", "publication"]
    assert explanation["waits"] == [] and "secret" not in repr(explanation)


def test_a_put_of_class_disk_says_what_it_waited_for(path):
    with esker.DB(path, create_if_missing=True, durability="disk") as db:
        explanation = db.explain_put(b"k", b"v")
    assert outcomes(explanation)[-1] == ("sync", "done")
    assert [wait["cause"] for wait in explanation["waits"]] == ["sync"]
    assert 0 < explanation["waits"][0]["time"] <= explanation["time"]


def test_a_scan_counts_what_it_found_and_passed(db):
    for number in range(10):
        db.put(b"k%d" % number, b"v")
    db.delete(b"k3")
    whole = db.explain_scan()
    assert whole["operation"] == "scan" and whole["found"]
    # The delete, and the value that it hides.
    assert (whole["entries"], whole["stepped_over"]) == (9, 2)
    assert db.explain_scan(b"k5", b"k7")["entries"] == 2
    assert db.explain_scan(stop=b"k2", limit=1)["entries"] == 1
    assert not db.explain_scan(b"x")["found"]
    behind = db.prefixed_db(b"k")
    assert behind.explain_scan(b"8")["entries"] == 2
    assert behind.explain_get(b"8")["found"] and not behind.explain_get(b"3")["found"]
    behind.explain_put(b"3", b"again")
    assert db.get(b"k3") == b"again"


def test_a_snapshot_explains_what_it_sees(db):
    with db.snapshot() as before:
        db.put(b"k", b"v")
        assert not before.explain_get(b"k")["found"]
        assert db.explain_get(b"k")["found"]
    with pytest.raises(esker.ClosedError):
        before.explain_get(b"k")


def test_the_slowest_operations_are_in_the_statistics(path):
    with esker.DB(path, create_if_missing=True, durability="disk") as db:
        db.put(b"secret-key", b"secret-value")
        slowest = [slow for slow in db.stats()["slowest"] if slow["operation"] == "put"]
    assert slowest and slowest[0]["when"] > 1_700_000_000
    assert ("sync", "done") in outcomes(slowest[0]) and "secret" not in repr(slowest)


def test_explanations_for_asyncio(path):
    async def program():
        async with await aio.open(path, create_if_missing=True) as db:
            assert (await db.explain_put(b"k", b"v"))["operation"] == "put"
            assert (await db.explain_get(b"k"))["found"]
            assert (await db.explain_scan(b"a", b"z", limit=5))["entries"] == 1
            async with await db.snapshot(label="report") as snapshot:
                assert (await snapshot.explain_get(b"k"))["found"]

    asyncio.run(program())


def test_wrong_arguments_and_a_closed_database(path):
    with esker.DB(path, create_if_missing=True) as db:
        with pytest.raises(TypeError):
            db.explain_get("k")  # type: ignore[arg-type]
        with pytest.raises(OverflowError):
            db.explain_scan(limit=-1)
        with pytest.raises(esker.LimitError):
            db.explain_put(bytes(70_000), b"")
    for call in (lambda: db.explain_get(b"k"), db.explain_scan, lambda: db.explain_put(b"k", b"")):
        with pytest.raises(esker.ClosedError):
            call()
