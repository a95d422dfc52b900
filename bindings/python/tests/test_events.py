"""Events that a Python function is told about."""

from __future__ import annotations

import sys
import threading

import pytest

import esker


def test_a_function_is_told_what_happens(path):
    seen: list[dict] = []
    with esker.DB(path, create_if_missing=True, on_event=seen.append) as db:
        db.put(b"secret-key", b"secret-value")
        db.keyspace("users")
    kinds = [event["event"] for event in seen]
    assert kinds[:2] == ["manifest_read", "log_replayed"] and kinds[-1] == "database_closed"
    assert {"database_opened", "keyspace_created", "flush"} <= set(kinds)
    assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
    created = next(event for event in seen if event["event"] == "keyspace_created")
    assert created["keyspace"] == "users" and created["time"] > 1_700_000_000_000
    assert "secret" not in repr(seen)


def test_the_function_runs_in_a_thread_of_the_database_while_others_go_on(path):
    threads = set()
    go_on = threading.Event()

    def listen(event: dict) -> None:
        threads.add(threading.get_ident())
        go_on.wait()

    db = esker.DB(path, create_if_missing=True, on_event=listen)
    for number in range(100):
        db.put(b"%d" % number, b"v")
    assert len(list(db)) == 100
    go_on.set()
    db.close()
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_an_exception_is_reported_and_later_events_still_come(path, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(args.exc_type))
    kinds = []

    def listen(event: dict) -> None:
        kinds.append(event["event"])
        raise ValueError("on purpose")

    with esker.DB(path, create_if_missing=True, on_event=listen) as db:
        db.put(b"k", b"v")
    assert kinds[-1] == "database_closed"
    assert reported == [ValueError] * len(kinds)


def test_only_what_can_be_called_is_taken(path):
    with pytest.raises(TypeError):
        esker.DB(path, create_if_missing=True, on_event="print")  # type: ignore[arg-type]
