"""A program that the type checker must accept, line by line, and whose mistakes it must find."""

from collections.abc import MutableMapping
from typing import assert_type

import esker
from esker import plyvel


def program(path: str) -> None:
    with esker.DB(path, create_if_missing=True) as db:
        assert_type(db.get(b"k"), bytes | None)
        assert_type(db.get(bytearray(b"k"), b""), bytes)
        assert_type(db.get(memoryview(b"k"), 7), bytes | int)
        assert_type(db.get_buffer(b"k"), memoryview | None)
        db.put(b"k", memoryview(b"v"), sync=True)
        db.put("k", b"v")  # type: ignore[arg-type]
        for key, value in db:
            assert_type(key, bytes)
            assert_type(value, bytes)
        for only in db.iterator(include_value=False, prefix=b"k"):
            assert_type(only, bytes)
        for nothing in db.iterator(include_value=False, include_key=False):
            assert_type(nothing, None)
        db.iterator(beginning=b"k")  # type: ignore[call-overload]
        with db.write_batch(transaction=True) as batch:
            batch.put(b"k", b"v")
        fruit = db.keyspace("fruit")
        with db.ingestion() as load:
            assert_type(load.put_many({b"k": b"v"}.items(), keyspace=fruit), int)
            load.put_many({b"k": b"v"})  # type: ignore[dict-item]
        assert_type(fruit.ingest_sorted((key, memoryview(key)) for key in [b"a", b"b"]), int)
        mapping: MutableMapping[bytes, bytes] = fruit
        assert_type(fruit[b"pear"], bytes)
        assert_type(mapping.pop(b"pear"), bytes)
        assert_type(db.multi_get([b"a", bytearray(b"b")]), list[bytes | None])
        with db.snapshot() as snapshot:
            assert_type(snapshot.get(b"k"), bytes | None)
            assert_type(snapshot.get_buffer(b"k"), memoryview | None)
            assert_type(next(snapshot.iterator()), tuple[bytes, bytes])
        assert_type(db.prefixed_db(b"p").db, esker.DB)
        with db.transaction() as tx:
            assert_type(tx.get(b"k", keyspace=fruit), bytes | None)
            assert_type(next(tx.iterator()), tuple[bytes, bytes])
        assert_type(db.transact(lambda tx: len(tx.multi_get([b"a"]))), int)
        db.keyspace("visits", merge_operator="esker.counter-u64", ttl=60).merge(b"k", b"1")
        assert_type(db.update_with(b"k", lambda value: value), bytes | None)
        assert_type(fruit.compare_and_set(b"k", None, bytearray(b"v")), bool)
        assert_type(db.insert_if_absent(b"k", b"v"), bool)
        db.insert_if_absent(b"k", None)  # type: ignore[arg-type]
        with esker.DB(path, compaction_filters={"old": lambda key, value: b"1" if key else False}):
            pass
        with db.transaction() as tx:
            tx.put(b"k", b"v", ttl=5)
            tx.merge(b"k", b"v", keyspace=fruit)
            assert_type(tx.get_for_share(b"k"), bytes | None)
        db.name = "other"  # type: ignore[misc]
    like: esker.DB = plyvel.DB(path)
    assert_type(like.get(b"k"), bytes | None)
    try:
        esker.DB(path)
    except esker.CorruptionError as error:
        assert_type(error.offset, int | None)
    except esker.LimitError as error:
        assert_type(error.limit, int | None)
