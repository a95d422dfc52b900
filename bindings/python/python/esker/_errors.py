"""The exceptions of this package.

Every one is an :class:`Error`, and carries what is known as attributes: ``kind`` always, the
others where they make sense. The names that plyvel has too (``Error``, ``IOError``,
``CorruptionError``, ``IteratorInvalidError``) mean the same as there.
"""

from __future__ import annotations

import builtins
from typing import Any


class Error(Exception):
    """Whatever can go wrong.

    ``kind`` is a stable word for scripts, such as ``"corruption"``; ``path`` the file or
    directory; ``offset`` a position in that file; ``keyspace`` the name of the keyspace.
    """

    kind: str = "error"
    path: str | None = None
    offset: int | None = None
    keyspace: str | None = None


class IOError(Error, builtins.IOError):
    """The operating system refused an operation, ``operation``, with the error ``errno``."""

    kind = "io"
    operation: str | None = None


class LockedError(IOError):
    """The database is open elsewhere."""

    kind = "locked"


class MissingError(IOError, FileNotFoundError):
    """There is no database, and ``create_if_missing`` is not set."""

    kind = "missing"


class ExistsError(IOError, FileExistsError):
    """Something exists there already."""

    kind = "exists"


class UnfinishedError(Error):
    """The directory holds the incomplete output of an interrupted repair."""

    kind = "unfinished"


class DiskFullError(IOError):
    """The device is full. Writes go on by themselves when it has space again."""

    kind = "disk-full"


class CorruptionError(Error):
    """Bytes on disk differ from what was written.

    ``section`` names the part of the format, ``key_range`` bounds the keys concerned.
    """

    kind = "corruption"
    section: str | None = None
    detail: str | None = None
    key_range: tuple[bytes, bytes] | None = None


class IteratorInvalidError(Error):
    """The raw iterator is on no entry."""

    kind = "iterator-invalid"


class NotADatabaseError(Error):
    """The directory holds something else than a database; it was not changed."""

    kind = "not-a-database"
    found: str | None = None


class UnknownFormatError(Error):
    """A newer version wrote this database."""

    kind = "unknown-format"
    found: int | None = None
    supported: int | None = None


class LimitError(Error, ValueError):
    """Something is too large: it has ``length`` bytes, allowed are ``limit``."""

    length: int | None = None
    limit: int | None = None


class KeyTooLongError(LimitError):
    """A key is too long."""

    kind = "key-too-long"


class ValueTooLargeError(LimitError):
    """A value is too large for the memory budget of the database."""

    kind = "value-too-large"


class BatchTooLargeError(LimitError):
    """A batch is too large for the memory budget of the database."""

    kind = "batch-too-large"


class OutOfOrderError(Error, ValueError):
    """A key of an ingestion is not greater than the one before it in its ``keyspace``, or entries of
    ingestions that are joined do not lie apart: ``key`` is the one."""

    kind = "out-of-order"
    key: bytes | None = None


class WouldBlockError(Error, BlockingIOError):
    """A write that does not wait would have had to, and wrote nothing.

    ``reason`` says for what, in the words of the statistics of waits (``"flush_debt"``,
    ``"compaction_debt"``, ``"memory"``, ``"disk_full"``); after ``retry_after`` seconds it is
    worth another try.
    """

    kind = "would-block"
    reason: str | None = None
    retry_after: float | None = None


class PoisonedError(Error):
    """An earlier failure ended writing until the database is reopened; it is the ``__cause__``."""

    kind = "poisoned"


class ClosedError(Error, RuntimeError):
    """The database, iterator or snapshot was closed."""

    kind = "closed"


class ForkedError(Error, RuntimeError):
    """This is a child process of the one that opened the database: open it here."""

    kind = "forked"


class KeyspaceDroppedError(Error):
    """The keyspace was dropped."""

    kind = "keyspace-dropped"


class ComparatorError(Error):
    """The keyspace's comparator is not the given one. ``comparator`` is the stored name."""

    comparator: str | None = None
    asked: str | None = None


class ComparatorMissingError(ComparatorError):
    """The keyspace has a comparator that was not given."""

    kind = "comparator-missing"


class ComparatorMismatchError(ComparatorError):
    """The keyspace has another comparator."""

    kind = "comparator-mismatch"


class BranchError(Error):
    """Something is wrong with the ``branch`` (or named snapshot) of this name."""

    branch: str | None = None


class BranchMissingError(BranchError):
    """There is no branch or named snapshot of this name, or it was dropped."""

    kind = "branch-missing"


class BranchExistsError(BranchError):
    """A branch or named snapshot of this name exists already."""

    kind = "branch-exists"


class MergeError(Error):
    """Something is wrong with a merge operator; ``operator`` is the stored name."""

    operator: str | None = None
    asked: str | None = None


class MergeOperatorMissingError(MergeError):
    """The keyspace has a merge operator that was not given."""

    kind = "merge-operator-missing"


class MergeOperatorMismatchError(MergeError):
    """The keyspace has another merge operator."""

    kind = "merge-operator-mismatch"


class MergeFailedError(MergeError):
    """A merge operator could not apply operands, which are kept. ``detail`` is its message."""

    kind = "merge-failed"
    detail: str | None = None


class UserCodeError(Error):
    """A comparator or another function given to the database raised an exception."""

    kind = "user-code-panicked"


class ReadOnlyError(Error):
    """The database was opened read-only."""

    kind = "read-only"


class TransactionError(Error):
    """A transaction could not go on. ``key`` is the key concerned, where it is known."""

    key: bytes | None = None


class ConflictError(TransactionError):
    """What the transaction read has changed: nothing was written. Begin it again.

    ``reason`` is ``"key-changed"``, ``"range-changed"`` or ``"history-too-old"``.
    """

    kind = "conflict"
    reason: str | None = None


class DeadlockError(TransactionError):
    """Transactions wait for each other, and this one must end. Begin it again."""

    kind = "deadlock"


class LockTimeoutError(TransactionError, TimeoutError):
    """Another transaction kept a lock for longer than this one waits: ``waited`` seconds."""

    kind = "lock-timeout"
    waited: float | None = None


class InvalidArgumentError(Error, ValueError):
    """The call does not accept this argument."""

    kind = "invalid-argument"


def _kinds(root: type[Error]) -> dict[str, type[Error]]:
    found = {}
    for child in root.__subclasses__():
        found.update(_kinds(child))
        if "kind" in vars(child):
            found[child.kind] = child
    return found


_KINDS = _kinds(Error)


def make(kind: str, message: str, fields: dict[str, Any]) -> Error:
    """The exception of a kind. A kind that this package does not know is a plain ``Error``."""
    error = _KINDS.get(kind, Error)(message)
    error.kind = kind
    error.__cause__ = fields.pop("cause", None)
    for name, value in fields.items():
        setattr(error, name, value)
    return error
