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
import os as _os

from ._errors import (
    BatchTooLargeError,
    BranchError,
    BranchExistsError,
    BranchMissingError,
    ClosedError,
    ComparatorError,
    ComparatorMismatchError,
    ComparatorMissingError,
    ConflictError,
    CorruptionError,
    DeadlockError,
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
    LockTimeoutError,
    MergeError,
    MergeFailedError,
    MergeOperatorMismatchError,
    MergeOperatorMissingError,
    MissingError,
    NotADatabaseError,
    OutOfOrderError,
    PoisonedError,
    ReadOnlyError,
    TransactionError,
    UnfinishedError,
    UnknownFormatError,
    UserCodeError,
    ValueTooLargeError,
    WouldBlockError,
)
from ._esker import (
    __version__,
    _close_all,
    _forked,
    ArrowScan,
    DB,
    destroy_db,
    FORMAT_VERSION,
    Ingestion,
    Iterator,
    PrefixedDB,
    RawIterator,
    repair_db,
    Savepoint,
    Snapshot,
    Store,
    Transaction,
    TransactionIterator,
    WriteBatch,
)
from ._mapping import Keyspace
from ._values import ValueReader

# What is still open is closed while Python still works: comparators may be Python functions.
_atexit.register(_close_all)

# A forked child must not use what its parent has open, and is told so.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_forked)

__all__ = [
    "__version__",
    "ArrowScan",
    "BatchTooLargeError",
    "BranchError",
    "BranchExistsError",
    "BranchMissingError",
    "ClosedError",
    "ComparatorError",
    "ComparatorMismatchError",
    "ComparatorMissingError",
    "ConflictError",
    "CorruptionError",
    "DB",
    "DeadlockError",
    "destroy_db",
    "DiskFullError",
    "Error",
    "ExistsError",
    "ForkedError",
    "FORMAT_VERSION",
    "Ingestion",
    "InvalidArgumentError",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "Keyspace",
    "KeyspaceDroppedError",
    "KeyTooLongError",
    "LimitError",
    "LockedError",
    "LockTimeoutError",
    "MergeError",
    "MergeFailedError",
    "MergeOperatorMismatchError",
    "MergeOperatorMissingError",
    "MissingError",
    "NotADatabaseError",
    "OutOfOrderError",
    "PoisonedError",
    "PrefixedDB",
    "RawIterator",
    "ReadOnlyError",
    "repair_db",
    "Savepoint",
    "Snapshot",
    "Store",
    "Transaction",
    "TransactionError",
    "TransactionIterator",
    "UnfinishedError",
    "UnknownFormatError",
    "UserCodeError",
    "ValueReader",
    "ValueTooLargeError",
    "WouldBlockError",
    "WriteBatch",
]
