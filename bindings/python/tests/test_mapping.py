"""A keyspace is a mutable mapping: compared with a dict, step by step."""

from __future__ import annotations

from collections.abc import MutableMapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import esker

KEYS = st.binary(max_size=3)
VALUES = st.binary(max_size=20)


def test_it_is_a_mutable_mapping(db):
    fruit = db.keyspace("fruit")
    assert isinstance(fruit, MutableMapping)
    assert fruit.db is db and fruit.name == "fruit"
    assert repr(fruit).startswith("<esker.Keyspace 'fruit' of <esker.DB")
    assert not fruit
    fruit[b"pear"] = b"green"
    assert fruit
    with pytest.raises(KeyError) as caught:
        fruit[b"apple"]
    assert caught.value.args == (b"apple",)
    with pytest.raises(KeyError):
        del fruit[b"apple"]
    with pytest.raises(KeyError):
        fruit.pop(b"apple")
    assert fruit.get(b"apple", b"none") == b"none"
    assert fruit.setdefault(b"pear", b"red") == b"green"
    assert fruit == {b"pear": b"green"} and fruit != {} and fruit != 1 and fruit == fruit
    assert {fruit: 1}[fruit] == 1
    assert (b"pear", b"green") in fruit.items()
    assert b"green" in fruit.values() and b"pear" in fruit.keys()
    assert fruit.keys() & {b"pear", b"apple"} == {b"pear"}


def test_update_is_all_or_nothing(db):
    fruit = db.keyspace("fruit")
    with pytest.raises(TypeError):
        fruit.update([(b"pear", b"green"), (b"apple", 7)])
    assert not fruit
    with pytest.raises(TypeError):
        fruit.update(pear=b"green")
    fruit.update([(b"pear", b"green")])
    fruit.update(fruit)
    assert dict(fruit) == {b"pear": b"green"}


class Mapping(RuleBasedStateMachine):
    """Random calls on a keyspace and on a dict."""

    @initialize()
    def open(self):
        import tempfile

        self.directory = tempfile.TemporaryDirectory()
        self.db = esker.DB(self.directory.name, create_if_missing=True, memory=16 << 20)
        self.real = self.db.keyspace("model")
        self.model: dict[bytes, bytes] = {}

    def teardown(self):
        if hasattr(self, "db"):
            self.db.close()
            self.directory.cleanup()

    def same(self, call):
        def outcome(mapping):
            try:
                return call(mapping)
            except KeyError as error:
                return ("KeyError", error.args)

        assert outcome(self.real) == outcome(self.model)

    @rule(key=KEYS, value=VALUES)
    def put(self, key, value):
        self.real[key] = self.model[key] = value

    @rule(key=KEYS)
    def look(self, key):
        self.same(lambda mapping: (key in mapping, mapping.get(key), mapping[key]))

    @rule(key=KEYS)
    def remove(self, key):
        self.same(lambda mapping: mapping.__delitem__(key))

    @rule(key=KEYS, default=st.none() | VALUES)
    def pop(self, key, default):
        self.same(lambda mapping: mapping.pop(key, default))
        self.same(lambda mapping: mapping.pop(key))

    @rule(key=KEYS, value=VALUES)
    def setdefault(self, key, value):
        self.same(lambda mapping: mapping.setdefault(key, value))

    @rule(pairs=st.lists(st.tuples(KEYS, VALUES), max_size=5))
    def update(self, pairs):
        self.same(lambda mapping: mapping.update(pairs))

    @rule(start=st.none() | KEYS, stop=st.none() | KEYS)
    def remove_range(self, start, stop):
        self.real.delete_range(start, stop)
        for key in list(self.model):
            if (start is None or key >= start) and (stop is None or key < stop):
                del self.model[key]

    @rule()
    def popitem(self):
        if self.model:
            key, value = self.real.popitem()
            assert self.model.pop(key) == value

    @rule()
    def clear(self):
        self.same(lambda mapping: mapping.clear())

    @rule()
    def flush(self):
        self.db.flush()

    @rule()
    def reopen(self):
        self.db.close()
        self.db = esker.DB(self.directory.name, memory=16 << 20)
        self.real = self.db.keyspace("model")

    @rule(keys=st.lists(KEYS, max_size=6))
    def multi_get(self, keys):
        assert self.real.multi_get(keys) == [self.model.get(key) for key in keys]

    @invariant()
    def equal(self):
        if hasattr(self, "real"):
            expected = sorted(self.model.items())
            assert list(self.real.items()) == expected
            assert list(reversed(self.real.keys())) == [key for key, _ in reversed(expected)]
            assert list(self.real.values()) == [value for _, value in expected]
            assert len(self.real) == len(expected) and bool(self.real) == bool(expected)


TestMapping = Mapping.TestCase
TestMapping.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
