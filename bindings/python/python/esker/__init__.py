"""Esker: an embedded, ordered key-value store.

>>> import esker, tempfile
>>> directory = tempfile.TemporaryDirectory()
>>> db = esker.DB(directory.name, create_if_missing=True)
>>> db.put(b"hello", b"world")
>>> db.get(b"hello")
b'world'
>>> db.close()
>>> directory.cleanup()

The classes and functions are shaped like plyvel's; what is new is in ``DB.keyspace`` (mappings),
``multi_get``, ``arrow`` and :mod:`esker.aio`.
"""

from __future__ import annotations

import atexit as _atexit

from ._errors import (
    BatchTooLargeError,
    ClosedError,
    ComparatorError,
    ComparatorMismatchError,
    ComparatorMissingError,
    CorruptionError,
    DiskFullError,
    Error,
    ExistsError,
    ForkedError,
    InvalidArgumentError,
    IOError,
    IteratorInvalidError,
    KeyspaceDroppedError,
    KeyTooLongError,
    LimitError,
    LockedError,
    MissingError,
    NotADatabaseError,
    PoisonedError,
    ReadOnlyError,
    UnknownFormatError,
    UserCodeError,
    ValueTooLargeError,
)
from ._esker import (
    DB,
    FORMAT_VERSION,
    ArrowScan,
    Iterator,
    PrefixedDB,
    RawIterator,
    Snapshot,
    Store,
    WriteBatch,
    __version__,
    _close_all,
    destroy_db,
    repair_db,
)
from ._mapping import Keyspace

# What is still open is closed while Python still works: comparators may be Python functions.
_atexit.register(_close_all)

__all__ = [
    "DB",
    "FORMAT_VERSION",
    "ArrowScan",
    "BatchTooLargeError",
    "ClosedError",
    "ComparatorError",
    "ComparatorMismatchError",
    "ComparatorMissingError",
    "CorruptionError",
    "DiskFullError",
    "Error",
    "ExistsError",
    "ForkedError",
    "IOError",
    "InvalidArgumentError",
    "Iterator",
    "IteratorInvalidError",
    "KeyTooLongError",
    "Keyspace",
    "KeyspaceDroppedError",
    "LimitError",
    "LockedError",
    "MissingError",
    "NotADatabaseError",
    "PoisonedError",
    "PrefixedDB",
    "RawIterator",
    "ReadOnlyError",
    "Snapshot",
    "Store",
    "UnknownFormatError",
    "UserCodeError",
    "ValueTooLargeError",
    "WriteBatch",
    "__version__",
    "destroy_db",
    "repair_db",
]
