"""Transactions."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker


def test_a_transaction_is_seen_when_it_is_committed(db):
    accounts = db.keyspace("accounts")
    accounts[b"alice"] = b"90"
    with db.transaction() as tx:
        assert tx.get(b"alice", keyspace=accounts) == b"90"
        assert tx.get(b"nobody", b"default", keyspace=accounts) == b"default"
        tx.put(b"alice", b"80", keyspace=accounts)
        tx.put(b"bob", b"10", keyspace=accounts)
        tx.put(b"log", b"alice paid")
        tx.delete(b"nobody", keyspace=accounts)
        assert b"log" in tx and b"bob" not in tx
        assert tx.multi_get([b"bob", b"carol"], keyspace=accounts) == [b"10", None]
        assert list(tx.iterator(keyspace=accounts, reverse=True)) == [
            (b"bob", b"10"),
            (b"alice", b"80"),
        ]
        assert list(tx) == [(b"log", b"alice paid")]
        assert dict(accounts) == {b"alice": b"90"}
    assert dict(accounts) == {b"alice": b"80", b"bob": b"10"}
    assert db.get(b"log") == b"alice paid"
    for call in (tx.commit, lambda: tx.get(b"k"), lambda: tx.put(b"k", b"v"), tx.savepoint):
        with pytest.raises(esker.ClosedError):
            call()
    tx.rollback()


def test_an_exception_rolls_back(db):
    with pytest.raises(ZeroDivisionError):
        with db.transaction(sync=True) as tx:
            tx.put(b"k", b"v")
            1 / 0
    with db.transaction(durability="disk") as tx:
        tx.put(b"k", b"v")
        tx.rollback()
    assert list(db) == []
    with pytest.raises(esker.InvalidArgumentError):
        db.transaction(durability="none")


def test_a_transaction_deletes_prefixes(db):
    space = db.keyspace("space")
    for key in (b"a", b"p", b"p1", b"p\xff", b"q"):
        db.put(key, b"")
        space[key] = b""
    with db.transaction() as tx:
        tx.put(b"p2", b"lost")
        tx.delete_prefix(b"p")
        tx.put(b"p3", b"kept")
        tx.delete_prefix(bytearray(b"p\xff"), keyspace=space)
        assert [key for key, _ in tx] == [b"a", b"p3", b"q"]
        point = tx.savepoint()
        tx.delete_prefix(b"", keyspace=space)
        assert list(tx.iterator(keyspace=space)) == []
        tx.rollback_to(point)
        assert b"p" in db and b"p\xff" in space
    assert [key for key, _ in db] == [b"a", b"p3", b"q"]
    assert list(space) == [b"a", b"p", b"p1", b"q"]
    with db.transaction() as tx:
        tx.delete_prefix(b"3", keyspace=db.prefixed_db(b"p"))
    assert [key for key, _ in db] == [b"a", b"q"]


def test_conflicts(db):
    db.put(b"seat", b"free")
    tx = db.transaction()
    assert tx.get(b"seat") == b"free"
    tx.put(b"seat", b"ann")
    db.put(b"seat", b"bob")
    with pytest.raises(esker.ConflictError) as caught:
        tx.commit()
    error = caught.value
    assert (error.kind, error.keyspace, error.key) == ("conflict", "default", b"seat")
    assert error.reason == "key-changed"
    assert db.get(b"seat") == b"bob"


def test_a_range_that_was_read_counts(db):
    tx = db.transaction()
    assert list(tx.iterator(prefix=b"a")) == []
    tx.put(b"b", b"nothing begins with a")
    db.put(b"ab", b"")
    with pytest.raises(esker.ConflictError) as caught:
        tx.commit()
    assert caught.value.reason == "range-changed"
    tx = db.transaction()
    next(tx.iterator(start=b"a"))
    tx.put(b"b", b"only up to ab was read")
    db.put(b"z", b"")
    tx.commit()


def test_savepoints(db):
    db.put(b"a", b"1")
    with db.transaction() as tx, db.transaction() as other:
        tx.put(b"b", b"2")
        point = tx.savepoint()
        tx.delete_range()
        assert list(tx) == []
        for _ in range(2):
            tx.rollback_to(point)
            assert list(tx) == [(b"a", b"1"), (b"b", b"2")]
            tx.delete(b"a")
        tx.rollback_to(point)
        with pytest.raises(esker.InvalidArgumentError):
            other.rollback_to(point)
    assert list(db) == [(b"a", b"1"), (b"b", b"2")]


def test_prefixes_and_other_databases(db, tmp_path):
    part = db.prefixed_db(b"p:")
    with esker.DB(tmp_path / "other", create_if_missing=True) as other:
        with db.transaction() as tx:
            tx.put(b"k", b"v", keyspace=part)
            assert list(tx.iterator(keyspace=part)) == [(b"k", b"v")]
            assert list(tx) == [(b"p:k", b"v")]
            tx.put(b"l", b"w", keyspace=part)
            tx.delete_range(b"l", keyspace=part)
            with pytest.raises(esker.InvalidArgumentError):
                tx.get(b"k", keyspace=other)
            iterator = tx.iterator(include_value=False)
            iterator.close()
            with pytest.raises(esker.ClosedError):
                next(iterator)
    assert dict(part) == {b"k": b"v"}


def test_transact_begins_anew_after_conflicts(db):
    db.put(b"count", b"0")
    calls = []

    def work(tx):
        calls.append(1)
        value = int(tx.get(b"count"))
        if len(calls) < 3:
            db.put(b"count", b"%d" % (value + 10))
        tx.put(b"count", b"%d" % (value + 1))
        return value

    assert db.transact(work) == 20
    assert db.get(b"count") == b"21" and len(calls) == 3

    def always(tx):
        tx.get(b"count")
        db.put(b"count", b"0")
        tx.put(b"count", b"1")

    with pytest.raises(esker.ConflictError):
        db.transact(always, attempts=3)

    def fails(tx):
        tx.put(b"other", b"")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.transact(fails)
    db.transact(lambda tx: (tx.put(b"other", b""), tx.rollback()))
    assert db.get(b"other") is None
    with pytest.raises(TypeError):
        db.transact(7)


def test_locks(db):
    db.put(b"k", b"1")
    with db.transaction(pessimistic=True) as holder:
        assert holder.get_for_update(b"k") == b"1"
        assert holder.get_for_update(b"none", b"default") == b"default"
        other = db.transaction(pessimistic=True, lock_timeout=0)
        with pytest.raises(esker.LockTimeoutError) as caught:
            other.get_for_update(b"k")
        assert (caught.value.key, caught.value.keyspace) == (b"k", "default")
        assert isinstance(caught.value, TimeoutError)
        other.rollback()
        holder.put(b"k", b"2")
    assert db.get(b"k") == b"2"
    with pytest.raises(esker.InvalidArgumentError):
        db.transaction(lock_timeout=-1)


@pytest.mark.parametrize("pessimistic", [False, True])
def test_counting_in_many_threads_loses_nothing(db, pessimistic):
    def count(tx):
        tx.put(b"count", b"%d" % (int(tx.get(b"count", b"0")) + 1))

    def work():
        for _ in range(50):
            db.transact(count, pessimistic=pessimistic)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.get(b"count") == b"200"


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])


@settings(max_examples=100, deadline=None)
@given(
    before=st.dictionaries(KEYS, st.binary(max_size=1)),
    steps=st.lists(
        st.tuples(st.sampled_from(["put", "delete", "range", "save", "back"]), KEYS), max_size=12
    ),
    commit=st.booleans(),
)
def test_a_transaction_is_a_dict_of_its_own(tmp_path_factory, before, steps, commit):
    path = tmp_path_factory.mktemp("model") / "db"
    with esker.DB(path, create_if_missing=True, memory=16 << 20) as db:
        for key, value in before.items():
            db.put(key, value)
        tx, model, points = db.transaction(), dict(before), []
        for number, (what, key) in enumerate(steps):
            if what == "put":
                tx.put(key, b"%d" % number)
                model[key] = b"%d" % number
            elif what == "delete":
                tx.delete(key)
                model.pop(key, None)
            elif what == "range":
                tx.delete_range(key)
                model = {each: model[each] for each in model if each < key}
            elif what == "save":
                points.append((tx.savepoint(), dict(model)))
            elif points:
                point, model = points[-1][0], dict(points[-1][1])
                tx.rollback_to(point)
            assert list(tx) == sorted(model.items())
            assert list(tx.iterator(reverse=True)) == sorted(model.items(), reverse=True)
        if commit:
            tx.commit()
        else:
            tx.rollback()
        assert list(db) == sorted((model if commit else before).items())


def test_checkpoints_open_on_their_own(db, tmp_path):
    db.put(b"k", b"v")
    db.flush()
    db.put(b"l", b"w")
    db.checkpoint(tmp_path / "copy")
    db.delete_range()
    with esker.DB(tmp_path / "copy") as copy:
        assert list(copy) == [(b"k", b"v"), (b"l", b"w")]
    with pytest.raises(esker.ExistsError):
        db.checkpoint(tmp_path / "copy")


def test_use_after_close(path):
    db = esker.DB(path, create_if_missing=True)
    tx = db.transaction()
    tx.put(b"k", b"v")
    iterator = iter(tx)
    db.close()
    for call in (tx.commit, lambda: tx.get(b"k"), lambda: next(iterator), db.transaction):
        with pytest.raises(esker.ClosedError):
            call()


def test_operands_and_times_to_live(path):
    joined = {"joined": lambda key, existing, operands: b",".join([existing or b"-", *operands])}
    with esker.DB(path, create_if_missing=True, merge_operators=joined) as db:
        space = db.keyspace("space", merge_operator="joined")
        space[b"k"] = b"stored"
        with db.transaction() as tx:
            tx.merge(b"k", b"own", keyspace=space)
            # Whoever only merges conflicts with nobody.
            space.merge(b"k", b"other")
            tx.merge(b"new", bytearray(b"a"), keyspace=space)
            tx.merge(b"new", b"b", keyspace=space)
            assert tx.get(b"new", keyspace=space) == b"-,a,b"
            tx.put(b"gone", b"v", keyspace=space, ttl=0)
            tx.put(b"stays", b"v", keyspace=space, ttl=3600)
            tx.put(b"main", b"v", ttl=3600.5)
            assert tx.get(b"gone", keyspace=space) == b"v"
            assert b"new" not in space
        assert space[b"k"] == b"stored,other,own" and space[b"new"] == b"-,a,b"
        assert b"gone" not in space and space[b"stays"] == b"v" and db.get(b"main") == b"v"
        tx = db.transaction()
        tx.merge(b"k", b"lost", keyspace=space)
        assert tx.get(b"k", keyspace=space) == b"stored,other,own,lost"
        space.merge(b"k", b"won")
        with pytest.raises(esker.ConflictError):
            tx.commit()
        with db.transaction() as tx:
            with pytest.raises(esker.InvalidArgumentError):
                tx.merge(b"k", b"no operator here")
            for wrong in (-1, float("nan")):
                with pytest.raises(esker.InvalidArgumentError):
                    tx.put(b"k", b"v", ttl=wrong)
        assert b"k" not in db


def test_shared_locks(db):
    db.put(b"k", b"v")
    options = {"pessimistic": True, "lock_timeout": 0.01}
    with db.transaction(**options) as one, db.transaction(**options) as two:
        assert one.get_for_share(b"k") == two.get_for_share(b"k") == b"v"
        assert one.get_for_share(b"none", b"default") == b"default"
        with pytest.raises(esker.LockTimeoutError):
            two.put(b"k", b"w")
        two.rollback()
        one.put(b"k", b"w")
    assert db.get(b"k") == b"w"


def test_transact_refuses_what_has_not_run(db):
    async def work(tx):
        tx.put(b"k", b"v")

    with pytest.raises(TypeError, match="awaitable"):
        db.transact(work)
    assert db.get(b"k") is None


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_signal_ends_a_wait_for_a_lock(db):
    holder = db.transaction(pessimistic=True)
    holder.put(b"k", b"held")
    waiter = db.transaction(pessimistic=True, lock_timeout=3600)
    # What a shell began in the background ignores this signal, unless it says otherwise.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            waiter.put(b"k", b"waited")
    finally:
        signal.signal(signal.SIGINT, before)
    waiter.rollback()
    holder.commit()
    assert db.get(b"k") == b"held"
