"""plyvel's own behaviour, side by side: the same calls on both, and on a model that says what is
right where plyvel is known to be wrong.

Known differences, all of them plyvel's mistakes at the edges of a range:

* From the end of the range, an entry exactly at ``start`` is not found.
* After a ``seek`` that ends before everything in the range, ``prev`` leaves the range, and ``next``
  returns an excluded ``start``.
"""

from __future__ import annotations

import bisect
import tempfile

import plyvel
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import esker
import esker.plyvel as ours

KEYS = st.binary(max_size=2) | st.sampled_from([b"\xff", b"\xff\xff", b"a", b"b", b"ab"])
MOVES = st.lists(
    st.tuples(st.sampled_from(["next", "prev", "start", "stop", "seek"]), KEYS), max_size=25
)


class Model:
    """An iterator as a gap in a sorted list."""

    def __init__(self, entries, start, stop, include_start, include_stop, prefix, reverse):
        def inside(key):
            if prefix is not None:
                return key.startswith(prefix)
            low = start is None or key > start or (include_start and key == start)
            return low and (stop is None or key < stop or (include_stop and key == stop))

        self.entries = sorted(entry for entry in entries.items() if inside(entry[0]))
        self.reverse = reverse
        self.stop = stop
        self.gap = len(self.entries) if reverse else 0

    def move(self, what, key):
        if what == "start":
            self.gap = 0
        elif what == "stop":
            self.gap = len(self.entries)
        elif what == "seek":
            if self.stop is not None:
                key = min(key, self.stop)
            self.gap = bisect.bisect_left(self.entries, (key, b""))
        elif (what == "next") != self.reverse:
            if self.gap == len(self.entries):
                return "end"
            self.gap += 1
            return self.entries[self.gap - 1]
        else:
            if self.gap == 0:
                return "end"
            self.gap -= 1
            return self.entries[self.gap]
        return None


def move(iterator, what, key):
    if what == "start":
        return iterator.seek_to_start()
    if what == "stop":
        return iterator.seek_to_stop()
    if what == "seek":
        return iterator.seek(key)
    try:
        return next(iterator) if what == "next" else iterator.prev()
    except StopIteration:
        return "end"


def plyvel_is_right(model, start, moves):
    """Whether no known mistake of plyvel's can show."""
    if start is None:
        return True
    if model.entries and model.entries[-1][0] == start:
        return False
    for what, key in moves:
        if what == "seek":
            model.move(what, key)
            if model.gap == 0:
                return False
    return True


@pytest.fixture(scope="module")
def both():
    with tempfile.TemporaryDirectory() as directory:
        theirs = plyvel.DB(directory + "/plyvel", create_if_missing=True)
        our_db = ours.DB(directory + "/esker", create_if_missing=True, memory=16 << 20)
        yield theirs, our_db
        theirs.close()
        our_db.close()


def fill(both, entries):
    for db in both:
        with db.write_batch() as batch:
            for key in db.iterator(include_value=False):
                batch.delete(key)
        with db.write_batch() as batch:
            for key, value in entries.items():
                batch.put(key, value)


compared = {"cases": 0}


@settings(max_examples=400, deadline=None)
@given(
    entries=st.dictionaries(KEYS, st.binary(max_size=2), max_size=12),
    start=st.none() | KEYS,
    stop=st.none() | KEYS,
    include=st.tuples(st.booleans(), st.booleans()),
    prefix=st.none() | KEYS,
    reverse=st.booleans(),
    moves=MOVES,
)
# A range that is empty because its start, which is not part of it, is its stop.
@example(
    entries={b"": b""},
    start=b"",
    stop=b"",
    include=(False, True),
    prefix=None,
    reverse=False,
    moves=[("seek", b"\x00"), ("next", b"")],
)
def test_iterators_move_alike(both, entries, start, stop, include, prefix, reverse, moves):
    fill(both, entries)
    if prefix is not None:
        start = stop = None
    options = {
        "start": start,
        "stop": stop,
        "include_start": include[0],
        "include_stop": include[1],
        "prefix": prefix,
        "reverse": reverse,
    }
    model = Model(entries, **options)
    theirs, mine = (db.iterator(**options) for db in both)
    low = prefix if prefix is not None else start
    alike = plyvel_is_right(Model(entries, **options), low, moves)
    compared["cases"] += alike
    for what, key in moves:
        expected = model.move(what, key)
        assert move(mine, what, key) == expected, (what, key)
        if alike:
            assert move(theirs, what, key) == expected, (what, key)


def test_enough_was_compared_with_plyvel():
    assert compared["cases"] > 100


@settings(max_examples=200, deadline=None)
@given(
    entries=st.dictionaries(KEYS, st.binary(max_size=2), max_size=8),
    moves=st.lists(
        st.tuples(st.sampled_from(["next", "prev", "first", "last", "seek", "item"]), KEYS),
        max_size=20,
    ),
)
def test_raw_iterators_move_alike(both, entries, moves):
    fill(both, entries)
    iterators = [db.raw_iterator() for db in both]

    def move(iterator, what, key, invalid):
        try:
            if what == "seek":
                iterator.seek(key)
            elif what in ("first", "last"):
                getattr(iterator, f"seek_to_{what}")()
            elif what == "item":
                return iterator.key(), iterator.value(), iterator.item()
            else:
                getattr(iterator, what)()
        except invalid:
            return "invalid"
        return iterator.valid()

    for what, key in moves:
        outcomes = [
            move(iterator, what, key, module.IteratorInvalidError)
            for iterator, module in zip(iterators, (plyvel, ours), strict=True)
        ]
        assert outcomes[0] == outcomes[1], (what, key)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "get", "batch", "failing", "transaction", "prefixed"]),
        KEYS,
        st.binary(max_size=5),
    ),
    max_size=20,
)


@settings(max_examples=100, deadline=None)
@given(operations=OPERATIONS)
def test_reads_and_writes_are_alike(both, operations):
    fill(both, {})

    def run(db, what, key, value):
        if what == "put":
            return db.put(key, value)
        if what == "delete":
            return db.delete(key)
        if what == "get":
            return db.get(key), db.get(key, value)
        if what == "prefixed":
            part = db.prefixed_db(b"a")
            part.put(key, value)
            part.delete(value)
            return part.get(key), list(part), list(part.prefixed_db(b"b"))
        try:
            with db.write_batch(transaction=what == "transaction") as batch:
                batch.put(key, value)
                batch.put(value, key)
                batch.delete(key)
                if what != "batch":
                    raise ValueError
        except ValueError:
            pass
        return None

    snapshots = [db.snapshot() for db in both]
    for operation in operations:
        outcomes = [run(db, *operation) for db in both]
        assert outcomes[0] == outcomes[1], operation
    assert list(both[0]) == list(both[1])
    for snapshot in snapshots:
        assert list(snapshot) == []


def outcome(call):
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        kinds = [
            name
            for name in ("TypeError", "ValueError", "RuntimeError", "AttributeError", "OSError")
            if isinstance(error, getattr(__import__("builtins"), name))
        ]
        return kinds or ["Error"]
    return result


@pytest.mark.parametrize("name", ["db", "batch", "iterator", "raw", "snapshot", "prefixed"])
def test_use_after_close_is_alike(tmp_path, name):
    calls = {
        "db": [
            lambda o: o["db"].get(b"k"),
            lambda o: o["db"].put(b"k", b"v"),
            lambda o: o["db"].delete(b"k"),
            lambda o: o["db"].iterator(),
            lambda o: iter(o["db"]),
            lambda o: o["db"].raw_iterator(),
            lambda o: o["db"].write_batch(),
            lambda o: o["db"].snapshot(),
            lambda o: o["db"].get_property(b"leveldb.stats"),
            lambda o: o["db"].compact_range(),
            lambda o: o["db"].approximate_size(b"a", b"b"),
            lambda o: o["db"].approximate_sizes(),
            lambda o: o["db"].closed,
            lambda o: o["db"].close(),
            lambda o: o["db"].prefixed_db(b"x") and None,
        ],
        "batch": [
            lambda o: o["batch"].put(b"k", b"v"),
            lambda o: o["batch"].delete(b"k"),
            lambda o: o["batch"].clear(),
            lambda o: o["batch"].write(),
            lambda o: o["batch"].approximate_size(),
            lambda o: o["batch"].append(o["batch"]),
            lambda o: o["batch"].__enter__(),
        ],
        "iterator": [
            lambda o: next(o["iterator"]),
            lambda o: o["iterator"].prev(),
            lambda o: o["iterator"].seek(b"k"),
            lambda o: o["iterator"].seek_to_start(),
            lambda o: o["iterator"].seek_to_stop(),
            lambda o: o["iterator"].close(),
        ],
        "raw": [
            lambda o: o["raw"].valid(),
            lambda o: o["raw"].key(),
            lambda o: o["raw"].value(),
            lambda o: o["raw"].item(),
            lambda o: o["raw"].next(),
            lambda o: o["raw"].prev(),
            lambda o: o["raw"].seek(b"k"),
            lambda o: o["raw"].seek_to_first(),
            lambda o: o["raw"].seek_to_last(),
            lambda o: o["raw"].close(),
        ],
        "snapshot": [
            lambda o: o["snapshot"].get(b"k"),
            lambda o: o["snapshot"].iterator(),
            lambda o: iter(o["snapshot"]),
            lambda o: o["snapshot"].raw_iterator(),
            lambda o: o["snapshot"].close(),
            lambda o: o["snapshot"].release(),
        ],
        "prefixed": [
            lambda o: o["prefixed"].get(b"k"),
            lambda o: o["prefixed"].put(b"k", b"v"),
            lambda o: o["prefixed"].delete(b"k"),
            lambda o: iter(o["prefixed"]),
        ],
    }
    outcomes = []
    for module in (plyvel, ours):
        db = module.DB(str(tmp_path / module.__name__), create_if_missing=True)
        db.put(b"a", b"1")
        objects = {
            "db": db,
            "batch": db.write_batch(),
            "iterator": db.iterator(),
            "raw": db.raw_iterator(),
            "snapshot": db.snapshot(),
            "prefixed": db.prefixed_db(b"x"),
        }
        db.close()
        outcomes.append([outcome(lambda call=call: call(objects)) for call in calls[name]])
    assert outcomes[0] == outcomes[1]


def test_the_names_are_all_there():
    for module_name in plyvel.__dict__:
        if not module_name.startswith("_") or module_name in ("__version__", "__leveldb_version__"):
            assert hasattr(ours, module_name), module_name
    for kind in ("DB", "Error", "IOError", "CorruptionError", "IteratorInvalidError"):
        for method in dir(getattr(plyvel, kind)):
            if not method.startswith("_"):
                assert hasattr(getattr(ours, kind), method), (kind, method)
    for mine, theirs in ((ours, plyvel),):
        assert issubclass(mine.IOError, (mine.Error, OSError)) and issubclass(theirs.IOError, OSError)
    # Only the default of write batches differs.
    assert issubclass(ours.DB, esker.DB)


def test_positional_and_keyword_arguments_are_alike(tmp_path):
    calls = [
        lambda db: db.get(b"k", b"d", True),
        lambda db: db.put(b"k", b"v", True),
        lambda db: db.put(value=b"v", key=b"k"),
        lambda db: db.get(key=b"k", default=1),
        lambda db: db.delete(key=b"k"),
        lambda db: db.iterator(False),
        lambda db: db.iterator(prefix=b"a", start=b"a"),
        lambda db: db.compact_range(b"a"),
        lambda db: db.compact_range(start=b"a"),
        lambda db: db.approximate_size(start=b"a", stop=b"b"),
        lambda db: db.approximate_sizes((b"a", b"b")),
        lambda db: db.prefixed_db(prefix=b"a") and None,
        lambda db: db.get_property(name=b"nothing"),
        lambda db: db.write_batch(True),
        lambda db: db.put(b"k", b"v", sync=None) if False else None,
    ]
    outcomes = []
    for module in (plyvel, ours):
        with module.DB(str(tmp_path / module.__name__), create_if_missing=True) as db:
            outcomes.append([outcome(lambda call=call: call(db)) for call in calls])
    assert outcomes[0] == outcomes[1]
