"""Keyspaces as mappings."""

from __future__ import annotations

from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    ValuesView,
)
from typing import TYPE_CHECKING, Any

from ._esker import KeyspaceBase


class _Keys(KeysView[bytes]):
    __slots__ = ()
    _mapping: Keyspace

    def __iter__(self) -> Iterator[bytes]:
        return self._mapping.iterator(include_value=False)

    def __reversed__(self) -> Iterator[bytes]:
        return self._mapping.iterator(reverse=True, include_value=False)


class _Items(ItemsView[bytes, bytes]):
    __slots__ = ()
    _mapping: Keyspace

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping.iterator()

    def __reversed__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping.iterator(reverse=True)


class _Values(ValuesView[bytes]):
    __slots__ = ()
    _mapping: Keyspace

    def __iter__(self) -> Iterator[bytes]:
        return self._mapping.iterator(include_key=False)

    def __reversed__(self) -> Iterator[bytes]:
        return self._mapping.iterator(reverse=True, include_key=False)


class Keyspace(KeyspaceBase, MutableMapping[bytes, bytes]):
    """A named, ordered map in a database: made by :meth:`esker.DB.keyspace`.

    It is a mutable mapping from bytes to bytes, in the order of the keys, and has the methods of
    a database too. ``len`` counts the entries one by one.

    >>> import esker, tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> db = esker.DB(directory.name, create_if_missing=True)
    >>> fruit = db.keyspace("fruit")
    >>> fruit[b"pear"] = b"green"
    >>> fruit.update({b"apple": b"red", b"plum": b"blue"})
    >>> list(fruit)
    [b'apple', b'pear', b'plum']
    >>> fruit.pop(b"apple"), b"apple" in fruit, len(fruit)
    (b'red', False, 2)
    >>> list(reversed(fruit.items()))
    [(b'plum', b'blue'), (b'pear', b'green')]
    >>> db.close()
    >>> directory.cleanup()
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # Of the two parents' methods of this name, this one is meant.
        def __contains__(self, key: object, /) -> bool: ...

    def __iter__(self) -> Iterator[bytes]:  # type: ignore[override]
        return self.iterator(include_value=False)

    def __reversed__(self) -> Iterator[bytes]:
        return self.iterator(reverse=True, include_value=False)

    def __repr__(self) -> str:
        return f"<esker.Keyspace {self.name!r} of {self.db!r}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    def __hash__(self) -> int:
        return object.__hash__(self)

    def keys(self) -> KeysView[bytes]:
        """The keys, in order, as they are when iterating begins."""
        return _Keys(self)

    def items(self) -> ItemsView[bytes, bytes]:
        """The pairs of key and value, in the order of the keys."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """The values, in the order of their keys."""
        return _Values(self)

    def clear(self) -> None:
        """Removes everything; the cost does not depend on the number of entries."""
        self.delete_range()

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Puts all entries of another mapping, or of pairs, or none."""
        if kwargs:
            raise TypeError("keys are bytes, so they cannot be given as keyword arguments")
        pairs: Iterable[tuple[bytes, bytes]]
        if isinstance(other, Mapping):
            pairs = other.items()
        elif hasattr(other, "keys"):
            pairs = ((key, other[key]) for key in other.keys())
        else:
            pairs = other
        with self.write_batch(transaction=True) as batch:
            for key, value in pairs:
                batch.put(key, value)
