"""Every call of the interface, one behaviour per test."""

from __future__ import annotations

import array
import mmap
import os
import random
from pathlib import Path

import pytest

import esker
import esker.plyvel


def test_put_get_delete(db):
    assert db.get(b"k") is None
    assert db.get(b"k", b"default") == b"default"
    assert db.get(b"k", default=7) == 7
    db.put(b"k", b"v")
    assert db.get(b"k") == b"v"
    assert b"k" in db
    db.put(b"k", b"w", sync=True)
    assert db.get(b"k", verify_checksums=True, fill_cache=False) == b"w"
    db.delete(b"k")
    db.delete(b"k", sync=True)
    assert b"k" not in db


def test_the_empty_key_and_value(db):
    db.put(b"", b"")
    assert db.get(b"") == b""
    assert list(db) == [(b"", b"")]


@pytest.mark.parametrize("wrong", ["text", 12, None, 1.5, object(), [1]])
def test_what_is_not_bytes_is_a_type_error(db, wrong):
    for call in (
        lambda: db.get(wrong),
        lambda: db.put(wrong, b"v"),
        lambda: db.put(b"k", wrong),
        lambda: db.delete(wrong),
        lambda: db.multi_get([b"k", wrong]),
        lambda: db.write_batch().put(wrong, b"v"),
        lambda: db.prefixed_db(wrong),
        lambda: wrong in db,
        lambda: db.iterator().seek(wrong),
        lambda: db.get_property(wrong),
    ):
        with pytest.raises(TypeError):
            call()
    assert list(db) == []


def test_anything_with_the_buffer_protocol_is_bytes(db, tmp_path):
    file = tmp_path / "mapped"
    file.write_bytes(b"mapped")
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        shown = {
            b"bytearray": bytearray(b"value"),
            b"memoryview": memoryview(b"value"),
            b"part": memoryview(b"a value behind")[2:7],
            b"tail": memoryview(b"a value")[2:],
            b"strided": memoryview(b"v.a.l.u.e")[::2],
            b"reversed": memoryview(b"eulav")[::-1],
            b"of a bytearray": memoryview(bytearray(b"value")).toreadonly(),
            b"array": array.array("I", [1, 2]),
            b"mmap": mapped,
        }
        for key, value in shown.items():
            db.put(bytearray(key), value)
            expected = {b"array": shown[b"array"].tobytes(), b"mmap": b"mapped"}.get(key, b"value")
            assert db.get(memoryview(key)) == expected, key
        assert db.multi_get([memoryview(b"array"), bytearray(b"mmap")]) == [
            shown[b"array"].tobytes(),
            b"mapped",
        ]


def test_a_buffer_that_changes_later_does_not_change_what_was_written(db):
    value = bytearray(b"before")
    with db.write_batch() as batch:
        batch.put(b"k", value)
        value[:] = b"behind"
    assert db.get(b"k") == b"before"


def test_multi_get(db):
    db.put(b"a", b"1")
    db.put(b"c", b"3")
    assert db.multi_get([b"a", b"b", b"c", b"a"]) == [b"1", None, b"3", b"1"]
    assert db.multi_get(iter([])) == []
    with pytest.raises(TypeError):
        db.multi_get(7)


def test_delete_range(db):
    for key in (b"a", b"b", b"c", b"d"):
        db.put(key, b"")
    db.delete_range(b"b", b"d")
    assert [key for key, _ in db] == [b"a", b"d"]
    db.delete_range(stop=b"b", sync=True)
    assert [key for key, _ in db] == [b"d"]
    db.delete_range()
    assert list(db) == []


def test_delete_prefix_and_clear(db):
    for key in (b"a", b"p", b"p1", b"p\xff", b"q"):
        db.put(key, b"")
    db.delete_prefix(b"p")
    assert [key for key, _ in db] == [b"a", b"q"]
    db.delete_prefix(bytearray(b"q"), sync=True)
    assert [key for key, _ in db] == [b"a"]
    inner = db.prefixed_db(b"a")
    inner.put(b"b1", b"")
    inner.put(b"c", b"")
    inner.delete_prefix(b"b")
    assert [key for key, _ in db] == [b"a", b"ac"]
    db.put(b"b", b"")
    inner.clear()
    assert [key for key, _ in db] == [b"b"]
    db.clear()
    assert list(db) == []


def test_a_batch_deletes_prefixes(db):
    def order(a, b):
        return (a > b) - (a < b)

    space = db.keyspace("space")
    numbers = db.keyspace("numbers", comparator=order, comparator_name=b"own order")
    keys = [b"a", b"p", b"p1", b"p\xff", b"p\xff\xff", b"q", b"\xff", b"\xff1"]
    for key in keys:
        db.put(key, b"")
        space[key] = b""
    with db.write_batch() as batch:
        batch.put(b"p2", b"lost")
        batch.delete_prefix(b"p")
        batch.put(b"p3", b"kept")
        batch.delete_prefix(bytearray(b"\xff"), keyspace=space)
        with pytest.raises(esker.InvalidArgumentError):
            batch.delete_prefix(b"1", keyspace=numbers)
        assert len(batch) == 4 and b"p" in db
    assert [key for key, _ in db] == [b"a", b"p3", b"q", b"\xff", b"\xff1"]
    assert list(space) == keys[:-2]
    # In the part behind a prefix, and all of it.
    part = db.prefixed_db(b"\xff")
    with part.write_batch() as batch:
        batch.delete_prefix(b"1")
    assert [key for key, _ in db] == [b"a", b"p3", b"q", b"\xff"]
    with db.write_batch() as batch:
        batch.delete_prefix(b"", keyspace=part)
        batch.delete_prefix(b"", keyspace=space)
    assert [key for key, _ in db] == [b"a", b"p3", b"q"] and not space


def test_delete_range_of_a_prefixed_database_keeps_to_it(db):
    for key in (b"a", b"p", b"p1", b"p2", b"q"):
        db.put(key, b"")
    db.prefixed_db(b"p").delete_range(start=b"1")
    assert [key for key, _ in db] == [b"a", b"p", b"q"]
    db.prefixed_db(b"p").delete_range()
    assert [key for key, _ in db] == [b"a", b"q"]


def test_batches(db):
    batch = db.write_batch(transaction=True, sync=True)
    batch.put(b"a", b"1")
    batch.delete(b"b")
    batch.delete_range(b"c", b"d")
    assert len(batch) == 3
    db.put(b"b", b"")
    db.put(b"c", b"")
    batch.write()
    assert list(db) == [(b"a", b"1")]
    batch.clear()
    assert len(batch) == 0


def test_a_batch_can_be_written_again_and_appended_to_itself(db):
    batch = db.write_batch()
    batch.put(b"k", b"1")
    batch.write()
    db.delete(b"k")
    batch.append(batch)
    assert len(batch) == 2
    batch.write()
    assert db.get(b"k") == b"1"


def test_a_batch_keeps_the_order_of_its_operations(db):
    other = db.keyspace("other")
    prefixed = db.prefixed_db(b"p")
    chance = random.Random(28)
    batch = db.write_batch()
    expected = {}
    for number in range(1000):
        key = b"%d" % chance.randrange(40)
        places = [(db, (0, key)), (prefixed, (0, b"p" + key)), (other, (1, key))]
        store, name = chance.choice(places)
        match chance.randrange(8):
            case 0:
                batch.delete(key, keyspace=store)
                expected.pop(name, None)
            case 1:
                value = b"%d" % number * 5000
                batch.put(key, value, keyspace=store)
                expected[name] = value
            case _:
                value = b"%d" % number
                batch.put(bytearray(key), memoryview(value), keyspace=store)
                expected[name] = value
        assert len(batch) == number + 1
    batch.write()
    for number, found in enumerate([dict(db.iterator()), dict(other)]):
        assert found == {name[1]: value for name, value in expected.items() if name[0] == number}


def test_what_objects_do_at_their_end_may_use_the_batch(db):
    batch = db.write_batch()

    class Noisy(bytes):
        def __del__(self):
            batch.put(b"from the end of " + self, b"")

    for number in range(100):
        batch.put(Noisy(b"k%d" % number), Noisy(b"v%d" % number))
    batch.write()
    assert db.get(b"k99") == b"v99"
    assert db.get(b"from the end of k99") == b""
    assert db.get(b"from the end of v99") == b""
    assert len(batch) == 300


def test_a_batch_over_keyspaces_is_one(db):
    users, log = db.keyspace("users"), db.keyspace("log")
    with pytest.raises(ZeroDivisionError):
        with db.write_batch() as batch:
            batch.put(b"ann", b"engineer", keyspace=users)
            batch.put(b"1", b"ann came", keyspace=log)
            1 / 0
    assert not users and not log
    with pytest.raises(ZeroDivisionError):
        with db.write_batch(transaction=False) as batch:
            batch.put(b"half", b"of it")
            1 / 0
    assert db.get(b"half") == b"of it"
    db.delete(b"half")
    with db.write_batch() as batch:
        batch.put(b"ann", b"engineer", keyspace=users)
        batch.put(b"1", b"ann came", keyspace=log)
        batch.put(b"n", b"1", keyspace=db.prefixed_db(b"count:"))
        batch.delete_range(b"0", b"1", keyspace=log)
    assert dict(users) == {b"ann": b"engineer"}
    assert dict(log) == {b"1": b"ann came"}
    assert list(db) == [(b"count:n", b"1")]


def test_batches_know_their_database(db, tmp_path):
    with esker.DB(tmp_path / "other", create_if_missing=True) as other:
        batch = db.write_batch()
        with pytest.raises(esker.InvalidArgumentError):
            batch.put(b"k", b"v", keyspace=other)
        with pytest.raises(esker.InvalidArgumentError):
            batch.append(other.write_batch())


def test_a_buffered_batch(db):
    with db.write_batch(durability="buffered") as batch:
        batch.put(b"k", b"v")
    assert db.get(b"k") == b"v"
    with pytest.raises(esker.InvalidArgumentError):
        db.write_batch(durability="quantum")


def test_snapshots_cover_all_keyspaces(db):
    users = db.keyspace("users")
    users[b"ann"] = b"engineer"
    db.put(b"k", b"1")
    with db.snapshot() as snapshot:
        users[b"ann"] = b"manager"
        db.put(b"k", b"2")
        then = snapshot.keyspace("users")
        assert then.get(b"ann") == b"engineer"
        assert snapshot.multi_get([b"k", b"l"]) == [b"1", None]
        assert b"k" in snapshot and b"l" not in snapshot
        with pytest.raises(esker.InvalidArgumentError):
            snapshot.keyspace("none")
        assert list(snapshot) == [(b"k", b"1")]
        snapshot.release()
        with pytest.raises(esker.ClosedError):
            snapshot.get(b"k")
        # The other one holds the state for itself.
        assert list(then) == [(b"ann", b"engineer")]
    assert "none" not in db.keyspaces()


def test_keyspaces_come_and_go(db):
    assert db.keyspaces() == ["default"]
    old = db.keyspace("old")
    old[b"k"] = b"v"
    assert db.keyspaces() == ["default", "old"]
    assert db.drop_keyspace("old")
    assert not db.drop_keyspace("old")
    with pytest.raises(esker.KeyspaceDroppedError) as caught:
        old.get(b"k")
    assert caught.value.keyspace == "old"
    assert not db.keyspace("old")


def test_a_batch_takes_a_keyspace_for_itself_and_not_for_its_name(db):
    old = db.keyspace("again")
    db.drop_keyspace("again")
    new = db.keyspace("again")
    with db.write_batch() as batch:
        batch.put(b"k", b"1")
        batch.put(b"k", b"2", keyspace=new)
    assert dict(new) == {b"k": b"2"}
    batch.put(b"l", b"", keyspace=old)
    batch.put(b"m", b"", keyspace=new)
    with pytest.raises(esker.KeyspaceDroppedError):
        batch.write()
    assert dict(new) == {b"k": b"2"}


def test_options(tmp_path):
    esker.DB(
        tmp_path / "many",
        create_if_missing=True,
        error_if_exists=True,
        paranoid_checks=True,
        write_buffer_size=1 << 20,
        max_open_files=100,
        lru_cache_size=1 << 20,
        block_size=2048,
        block_restart_interval=32,
        max_file_size=1 << 20,
        compression="snappy",
        bloom_filter_bits=10,
        memory=32 << 20,
        durability="disk",
        sync_interval=None,
        workers=1,
        recovery="keep-prefix",
        cold_after=None,
        max_space_amplification=1.2,
        separate_values_from=None,
    ).close()
    for compression in (None, b"snappy", "auto", "lz4", "zstd"):
        with esker.DB(tmp_path / "one", create_if_missing=True, compression=compression) as db:
            db.put(b"k", b"v")
    for wrong, error in (
        ({"compression": "brotli"}, ValueError),
        ({"compression": 7}, TypeError),
        ({"durability": "none"}, ValueError),
        ({"recovery": "none"}, ValueError),
        ({"sync_interval": -1.0}, ValueError),
        ({"sync_interval": float("nan")}, ValueError),
        ({"cold_after": -1.0}, ValueError),
        ({"max_space_amplification": 1.0}, ValueError),
        ({"max_space_amplification": None}, TypeError),
        ({"separate_values_from": 1}, ValueError),
        ({"separate_values_from": 1 << 40}, OverflowError),
        ({"memory": "much"}, TypeError),
        ({"memory": -1}, OverflowError),
        ({"memory": 1}, ValueError),
        ({"block_size": "small"}, TypeError),
        ({"unknown": 1}, TypeError),
    ):
        with pytest.raises(error):
            esker.DB(tmp_path / "wrong", create_if_missing=True, **wrong)


@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_names(tmp_path, kind):
    name = kind(tmp_path / "grün")
    with esker.DB(name, create_if_missing=True) as db:
        assert db.name == name
        assert repr(db) == f"<esker.DB with name {name!r}>"
        with pytest.raises(AttributeError):
            db.name = "other"
    assert "closed" in repr(db)
    assert (tmp_path / "grün").is_dir()
    for wrong in (7, None, [b"x"]):
        with pytest.raises(TypeError):
            esker.DB(wrong, create_if_missing=True)
    with pytest.raises(ValueError):
        esker.DB("zero\0byte", create_if_missing=True)


def test_reopening(path):
    with esker.DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.keyspace("more")[b"l"] = b"w"
    with esker.DB(path) as db:
        assert db.get(b"k") == b"v"
        assert db.keyspace("more")[b"l"] == b"w"
    with esker.DB(path, read_only=True) as db:
        assert db.get(b"k") == b"v"
        with pytest.raises(esker.ReadOnlyError):
            db.put(b"k", b"w")


def test_properties(db):
    for name in (b"stats", b"sstables", b"approximate-memory-usage", b"num-files-at-level0"):
        assert isinstance(db.get_property(b"leveldb." + name), bytes)
    for name in (b"", b"leveldb.", b"leveldb.num-files-at-level7", b"leveldb.num-files-at-level00"):
        assert db.get_property(name) is None
    before = db.get_property(b"leveldb.sstables")
    db.put(b"k", b"v")
    db.flush()
    assert db.get_property(b"leveldb.sstables") != before
    files = [int(db.get_property(b"leveldb.num-files-at-level%d" % level)) for level in range(7)]
    assert sum(files) == 1


def test_sizes(db):
    for number in range(2000):
        db.put(b"%05d" % number, os.urandom(100))
    db.flush()
    whole, half, none = db.approximate_sizes((b"", b"~"), (b"00000", b"01000"), (b"x", b"y"))
    assert whole > half > none == 0
    assert db.approximate_size(b"", b"~") == whole
    assert db.prefixed_db(b"00").approximate_size(b"", b"~") == db.approximate_size(b"00", b"01")
    assert db.approximate_sizes() == []
    for wrong in (None, (1, 2), (b"a",), (b"a", b"b", b"c")):
        with pytest.raises(TypeError):
            db.approximate_sizes(wrong)


def test_stats_and_maintenance(db):
    db.put(b"k", b"v")
    db.get(b"k")
    db.sync()
    db.flush()
    db.compact_range()
    db.compact_range(start=b"a", stop=b"z")
    db.wait_until_idle()
    stats = db.stats()
    assert (stats["puts"], stats["gets"], stats["gets_found"]) == (1, 1, 1)
    assert stats["keyspaces"]["default"]["partitions"] == 1
    assert stats["memory"]["limit"] == 64 << 20
    report = db.verify()
    assert report["entries"] == 1 and report["problems"] == []


def test_prefixed_databases(db):
    people = db.prefixed_db(b"people:")
    people.put(b"ann", b"1")
    db.put(b"people", b"not one")
    db.put(b"people;", b"nor this")
    assert db.get(b"people:ann") == b"1"
    assert list(people) == [(b"ann", b"1")]
    assert (people.prefix, people.db) == (b"people:", db)
    nested = people.prefixed_db(b"a")
    assert list(nested) == [(b"nn", b"1")]
    assert nested.prefix == b"people:a"
    assert people.multi_get([b"ann", b"bob"]) == [b"1", None]
    assert "people:" in repr(people)
    same = esker.PrefixedDB(db=db, prefix=b"people:")
    assert same.get(b"ann") == b"1"
    # A prefix without a key behind all that begin with it.
    last = db.prefixed_db(b"\xff\xff")
    last.put(b"\xff", b"")
    assert list(last.iterator(reverse=True)) == [(b"\xff", b"")]


def test_fetch_gives_several_at_once(db):
    expected = [(b"%03d" % number, b"v%d" % number) for number in range(200)]
    for key, value in expected:
        db.put(key, value)
    iterator = db.iterator()
    assert iterator.fetch(0) == []
    assert iterator.fetch(1) == expected[:1]
    assert iterator.fetch(150) == expected[1:151]
    assert next(iterator) == expected[151]
    assert iterator.prev() == expected[151]
    assert iterator.fetch(1000) == expected[151:]
    assert iterator.fetch(1) == []
    assert iterator.prev() == expected[-1]
    backward = db.iterator(reverse=True, include_value=False)
    assert backward.fetch(3) == [b"199", b"198", b"197"]
    with pytest.raises(OverflowError):
        iterator.fetch(-1)


def test_iterators_show_the_moment_they_were_made(db):
    for number in range(100):
        db.put(b"%03d" % number, b"old")
    iterator = db.iterator()
    raw = db.raw_iterator()
    db.delete_range()
    db.put(b"new", b"new")
    db.flush()
    assert [value for _, value in iterator] == [b"old"] * 100
    raw.seek_to_last()
    assert raw.item() == (b"099", b"old")


def test_comparators_order_keys(path):
    def backwards(a: bytes, b: bytes) -> int:
        return (a < b) - (a > b)

    name = {"comparator": backwards, "comparator_name": b"backwards"}
    with esker.DB(path, create_if_missing=True, **name) as db:
        for key in (b"a", b"b", b"c"):
            db.put(key, b"")
        assert [key for key, _ in db] == [b"c", b"b", b"a"]
        assert list(db.iterator(start=b"b", include_value=False)) == [b"b", b"a"]
        assert list(db.iterator(stop=b"b", reverse=True, include_value=False)) == [b"c"]
        db.flush()
        for call in (lambda: db.iterator(prefix=b"a"), lambda: list(db.prefixed_db(b"a"))):
            with pytest.raises(esker.InvalidArgumentError):
                call()
    with esker.DB(path, **name) as db:
        assert next(db.iterator()) == (b"c", b"")
    for wrong, error in (
        ({}, esker.ComparatorError),
        ({"comparator": backwards, "comparator_name": b"other"}, esker.ComparatorError),
        ({"comparator": backwards}, ValueError),
        ({"comparator": 7, "comparator_name": b"backwards"}, TypeError),
        ({"comparator": backwards, "comparator_name": b"\xff"}, ValueError),
        ({"comparator": backwards, "comparator_name": "text"}, TypeError),
    ):
        with pytest.raises(error):
            esker.DB(path, **wrong)


def test_a_database_in_byte_order_is_not_opened_in_another(path):
    with esker.DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
    with pytest.raises(esker.ComparatorMismatchError) as caught:
        esker.DB(path, comparator=lambda a, b: 0, comparator_name=b"all the same")
    assert (caught.value.comparator, caught.value.asked) == ("bytewise", "all the same")
    with esker.DB(path) as db:
        assert db.keyspaces() == ["default"]


def test_keyspaces_have_comparators_too(db):
    by_number = db.keyspace(
        "numbers", comparator=lambda a, b: int(a) - int(b), comparator_name=b"by number"
    )
    by_number.update({b"10": b"", b"9": b"", b"100": b""})
    assert list(by_number) == [b"9", b"10", b"100"]


def test_destroy(path):
    with esker.DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        with pytest.raises(esker.LockedError):
            esker.destroy_db(path)
        assert db.get(b"k") == b"v"
    (path / "notes.txt").write_text("not the database's")
    (path / "data" / "1.run").write_text("nor this")
    esker.destroy_db(path)
    left = sorted(str(file.relative_to(path)) for file in path.rglob("*"))
    assert left == ["data", "data/1.run", "notes.txt"]
    with pytest.raises(esker.NotADatabaseError):
        esker.destroy_db(path)
    esker.destroy_db(path / "nothing")


def test_repair(path):
    with esker.DB(path, create_if_missing=True, compression=None) as db:
        for number in range(1000):
            db.put(b"%04d" % number, os.urandom(50))
        db.flush()
        db.put(b"later", b"x")
    assert esker.repair_db(path) is None
    run = max((path / "data").iterdir(), key=lambda file: file.stat().st_size)
    damaged = bytearray(run.read_bytes())
    damaged[damaged.rindex(b"0500") + 20] ^= 0xFF
    run.write_bytes(damaged)
    kept = esker.repair_db(path)
    assert Path(kept).is_dir() and Path(kept) != path
    with esker.DB(path) as db:
        assert db.get(b"later") == b"x"
        assert 0 < len(db.keyspace("default")) < 1001
    with pytest.raises(esker.MissingError):
        esker.repair_db(path / "nothing")


def test_the_later_of_two_operations_in_a_batch_wins(db):
    """However a batch arranges what it writes."""
    chance = random.Random(5)
    space = db.keyspace("space")
    for turn in range(60):
        expected: dict[bytes, dict[bytes, bytes]] = {b"": {}, b"s": {}}
        with db.write_batch() as batch:
            batch.delete_range()
            batch.delete_range(keyspace=space)
        with db.write_batch() as batch:
            for number in range(chance.randrange(120)):
                key = b"a common beginning " * chance.randrange(2) + b"%d" % chance.randrange(20)
                key += bytes(chance.randrange(3))
                where, keyspace = chance.choice(((b"", db), (b"s", space)))
                value = b"%d" % number
                kind = chance.randrange(40 if turn % 2 else 39)
                if kind < 30:
                    batch.put(key, value, keyspace=keyspace, ttl=chance.choice((None, 3600)))
                    expected[where][key] = value
                elif kind < 39:
                    batch.delete(key, keyspace=keyspace)
                    expected[where].pop(key, None)
                else:
                    batch.delete_range(key, key + b"5", keyspace=keyspace)
                    for gone in [each for each in expected[where] if key <= each < key + b"5"]:
                        del expected[where][gone]
        assert dict(db) == expected[b""], turn
        assert dict(space) == expected[b"s"], turn


def test_under_plyvels_name_batches_default_as_plyvels(tmp_path):
    with esker.plyvel.DB(str(tmp_path / "db"), create_if_missing=True) as db:
        assert isinstance(db, esker.DB)
        for space in (db, db.prefixed_db(b"p")):
            with pytest.raises(ZeroDivisionError):
                with space.write_batch() as batch:
                    batch.put(b"half", b"of it")
                    1 / 0
            assert space.get(b"half") == b"of it"
            with pytest.raises(ZeroDivisionError):
                with space.write_batch(transaction=True) as batch:
                    batch.put(b"none", b"of it")
                    1 / 0
            assert space.get(b"none") is None
