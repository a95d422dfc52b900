"""The asyncio interface: the same calls, awaited.

Every call runs on a thread of a pool that belongs to the database, so the event loop goes on
meanwhile; iterating fetches many entries per trip to the pool. What opens something can be awaited, or
be the subject of ``async with`` as it is: ``async with db.snapshot() as snapshot``. The end of the block
closes what was opened. A keyspace has nothing to close, and the block of a branch or of a named snapshot
leaves the database open, because their ``close`` closes it for all.

>>> import asyncio, tempfile
>>> from esker import aio
>>> async def program(path):
...     async with aio.open(path, create_if_missing=True) as db:
...         await db.put(b"hello", b"world")
...         async with db.write_batch() as batch:
...             batch.put(b"more", b"of it")
...         return [entry async for entry in db.iterator()]
>>> with tempfile.TemporaryDirectory() as path:
...     asyncio.run(program(path))
[(b'hello', b'world'), (b'more', b'of it')]
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

import esker

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "DB",
    "Ingestion",
    "Iterator",
    "Keyspace",
    "Opening",
    "PrefixedDB",
    "Snapshot",
    "Transaction",
    "TransactionIterator",
    "ValueReader",
    "WriteBatch",
    "open",
]

_R = TypeVar("_R")
_T = TypeVar("_T")

#: Threads of the pool of a database, unless told otherwise.
THREADS = 4

#: Entries that an iterator fetches per trip to the pool: few at first, then ever more.
_FETCH_FIRST, _FETCH_MOST = 16, 1024


class _Calls:
    """Something whose calls run on a pool."""

    __slots__ = ("_pool",)

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    async def _call(self, call: Callable[..., _R], *arguments: Any, **named: Any) -> _R:
        loop = asyncio.get_running_loop()
        try:
            pending = loop.run_in_executor(
                self._pool, functools.partial(call, *arguments, **named)
            )
        except RuntimeError:
            # The pool is gone, so the database was closed. Its own call says so.
            return call(*arguments, **named)
        return await pending


class _Closable:
    """Something that is closed at the end of a block."""

    __slots__ = ()

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class Opening(Coroutine[Any, Any, _T]):
    """What opens something: ``await`` it, or use it with ``async with``, whose block closes what it
    opened."""

    __slots__ = ("_closes", "_opened", "_opening")

    def __init__(self, opening: Coroutine[Any, Any, _T], *, closes: bool = True) -> None:
        self._opening = opening
        self._closes = closes
        self._opened: _Closable | None = None

    def send(self, value: Any) -> Any:
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        return self._opening.throw(*error)

    def close(self) -> None:
        self._opening.close()

    def __await__(self) -> Generator[Any, Any, _T]:
        return self._opening.__await__()

    async def __aenter__(self) -> _T:
        opened = await self._opening
        # There may be nothing to close, as where a value is missing.
        if self._closes and isinstance(opened, _Closable):
            self._opened = opened
            await opened.__aenter__()
        return opened

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(exc_type, exc_value, traceback)


class _Ahead(_Calls, _Closable, Generic[_T]):
    """An asynchronous iterator that fetches ahead."""

    __slots__ = ("_ahead", "_count", "_lock", "_real")
    _real: Any

    def __init__(self, pool: ThreadPoolExecutor, make: Callable[[], Any]) -> None:
        super().__init__(pool)
        # Made at once, because it shows the moment it is made.
        self._real = make()
        self._ahead: list[_T] = []
        self._count = _FETCH_FIRST
        self._lock = asyncio.Lock()

    def _fetch(self, count: int) -> list[_T]:
        """The next entries; runs on a thread of the pool."""
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _T:
        async with self._lock:
            if not self._ahead:
                self._ahead = await self._call(self._fetch, self._count)
                self._ahead.reverse()
                self._count = min(self._count * 4, _FETCH_MOST)
            if not self._ahead:
                raise StopAsyncIteration
            return self._ahead.pop()

    async def close(self) -> None:
        """Closes the iterator. May be called again."""
        async with self._lock:
            self._ahead = []
            await self._call(self._real.close)


class Iterator(_Ahead[_T]):
    """An asynchronous iterator; made by ``iterator``. ``prev`` goes back."""

    __slots__ = ()
    _real: esker.Iterator[_T]

    def _fetch(self, count: int) -> list[_T]:
        return self._real.fetch(count)

    async def _settle(self) -> None:
        """Takes the real iterator back to what was seen of it."""
        back, self._ahead, self._count = len(self._ahead), [], _FETCH_FIRST

        def step() -> None:
            for _ in range(back):
                self._real.prev()

        if back:
            await self._call(step)

    async def prev(self) -> _T:
        """The entry before the present position; ``StopAsyncIteration`` if there is none."""
        async with self._lock:
            await self._settle()
            found = await self._call(_or_end, self._real.prev)
            if found is _END:
                raise StopAsyncIteration
            return cast(_T, found)

    async def seek(self, target: Buffer) -> None:
        """As :meth:`esker.Iterator.seek`."""
        async with self._lock:
            self._ahead, self._count = [], _FETCH_FIRST
            await self._call(self._real.seek, target)

    async def seek_to_start(self) -> None:
        """As :meth:`esker.Iterator.seek_to_start`."""
        async with self._lock:
            self._ahead, self._count = [], _FETCH_FIRST
            await self._call(self._real.seek_to_start)

    async def seek_to_stop(self) -> None:
        """As :meth:`esker.Iterator.seek_to_stop`."""
        async with self._lock:
            self._ahead, self._count = [], _FETCH_FIRST
            await self._call(self._real.seek_to_stop)


class TransactionIterator(_Ahead[_T]):
    """An asynchronous iterator over what a transaction sees; made by its ``iterator``. What it has
    fetched counts as read, which may be more than it has returned: sixteen entries at first, then
    four times as many as before, up to 1,024."""

    __slots__ = ()
    _real: esker.TransactionIterator[_T]

    def _fetch(self, count: int) -> list[_T]:
        return list(itertools.islice(self._real, count))


_END: Any = object()


def _or_end(call: Callable[[], Any]) -> Any:
    # A future cannot carry StopIteration.
    try:
        return call()
    except StopIteration:
        return _END


class _Reader(_Calls):
    """The common part of databases, keyspaces and snapshots."""

    __slots__ = ("_real",)
    _real: Any

    async def get(self, key: Buffer, default: Any = None) -> Any:
        """The value under ``key``, or ``default``."""
        return await self._call(self._real.get, key, default)

    async def get_buffer(self, key: Buffer) -> memoryview | None:
        """A view of the value under ``key``, or ``None``, as :meth:`esker.DB.get_buffer`."""
        view: memoryview | None = await self._call(self._real.get_buffer, key)
        return view

    async def multi_get(self, keys: Iterable[Buffer]) -> list[bytes | None]:
        """The values under ``keys``, as of one moment."""
        found: list[bytes | None] = await self._call(self._real.multi_get, list(keys))
        return found

    async def contains(self, key: Buffer) -> bool:
        """Whether ``key`` exists."""
        return await self._call(self._real.__contains__, key)

    async def explain_get(self, key: Buffer) -> dict[str, Any]:
        """What reading ``key`` does, as :meth:`esker.DB.explain_get`."""
        explanation: dict[str, Any] = await self._call(self._real.explain_get, key)
        return explanation

    def iterator(self, **options: Any) -> Iterator[Any]:
        """An asynchronous iterator, with the options of :meth:`esker.DB.iterator`."""
        return Iterator(self._pool, functools.partial(self._real.iterator, **options))

    def __aiter__(self) -> AsyncIterator[tuple[bytes, bytes]]:
        return self.iterator()


def _real(keyspace: Store | None) -> esker.Store | None:
    return None if keyspace is None else keyspace._real


class WriteBatch(_Calls):
    """A write batch: filled at once, written by an awaited call or at the end of the block."""

    __slots__ = ("_real", "_transaction")

    def __init__(self, pool: ThreadPoolExecutor, real: esker.WriteBatch, transaction: bool) -> None:
        super().__init__(pool)
        self._real = real
        self._transaction = transaction

    def put(
        self,
        key: Buffer,
        value: Buffer,
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> None:
        """Adds the insertion of a value under a key."""
        self._real.put(key, value, keyspace=_real(keyspace), ttl=ttl)

    def merge(self, key: Buffer, operand: Buffer, *, keyspace: Store | None = None) -> None:
        """Adds an operand for the merge operator."""
        self._real.merge(key, operand, keyspace=_real(keyspace))

    def delete(self, key: Buffer, *, keyspace: Store | None = None) -> None:
        """Adds the removal of a key."""
        self._real.delete(key, keyspace=_real(keyspace))

    def delete_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        keyspace: Store | None = None,
    ) -> None:
        """Adds a range delete of all keys from ``start`` up to, not including, ``stop``."""
        self._real.delete_range(start, stop, keyspace=_real(keyspace))

    def delete_prefix(self, prefix: Buffer, *, keyspace: Store | None = None) -> None:
        """Adds a range delete of all keys that begin with ``prefix``."""
        self._real.delete_prefix(prefix, keyspace=_real(keyspace))

    def clear(self) -> None:
        """Removes all operations."""
        self._real.clear()

    def append(self, source: WriteBatch) -> None:
        """Adds the operations of another batch."""
        self._real.append(source._real)

    def approximate_size(self) -> int:
        """About how many bytes the batch has."""
        return self._real.approximate_size()

    def __len__(self) -> int:
        return len(self._real)

    async def write(self) -> None:
        """Writes the batch."""
        await self._call(self._real.write)

    async def try_write(self) -> None:
        """Writes the batch, or raises :class:`esker.WouldBlockError`."""
        await self._call(self._real.try_write)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is None or not self._transaction:
            await self.write()
        self.clear()


class Snapshot(_Reader, _Closable):
    """The state of a database at one moment."""

    __slots__ = ()

    def __init__(self, pool: ThreadPoolExecutor, real: esker.Snapshot) -> None:
        super().__init__(pool)
        self._real = real

    def keyspace(self, name: str) -> Opening[Snapshot]:
        """The state of another keyspace at the same moment."""

        async def opening() -> Snapshot:
            return Snapshot(self._pool, await self._call(self._real.keyspace, name))

        return Opening(opening())

    async def close(self) -> None:
        """Releases the snapshot."""
        await self._call(self._real.close)

    release = close


class Store(_Reader):
    """The common part of databases and keyspaces."""

    __slots__ = ()

    async def put(
        self, key: Buffer, value: Buffer, *, sync: bool = False, ttl: float | None = None
    ) -> None:
        """Puts ``value`` under ``key``."""
        await self._call(self._real.put, key, value, sync=sync, ttl=ttl)

    async def try_put(self, key: Buffer, value: Buffer) -> None:
        """Puts ``value`` under ``key``, or raises :class:`esker.WouldBlockError`."""
        await self._call(self._real.try_put, key, value)

    async def try_delete(self, key: Buffer) -> None:
        """Removes ``key``, or raises :class:`esker.WouldBlockError`."""
        await self._call(self._real.try_delete, key)

    async def merge(self, key: Buffer, operand: Buffer, *, sync: bool = False) -> None:
        """Writes ``operand`` for the merge operator."""
        await self._call(self._real.merge, key, operand, sync=sync)

    async def compare_and_set(
        self, key: Buffer, expected: Buffer | None, new: Buffer | None
    ) -> bool:
        """Puts ``new`` under ``key`` if its value is ``expected``; returns whether it was put."""
        done: bool = await self._call(self._real.compare_and_set, key, expected, new)
        return done

    async def insert_if_absent(self, key: Buffer, value: Buffer) -> bool:
        """Puts ``value`` under ``key`` if the key has none; returns whether it was put."""
        done: bool = await self._call(self._real.insert_if_absent, key, value)
        return done

    async def update_with(
        self, key: Buffer, function: Callable[[bytes | None], Buffer | None]
    ) -> bytes | None:
        """Replaces the value under ``key`` by the result of ``function`` on it, which runs on a
        thread of the pool."""
        new: bytes | None = await self._call(self._real.update_with, key, function)
        return new

    async def delete(self, key: Buffer, *, sync: bool = False) -> None:
        """Removes ``key``, if it exists."""
        await self._call(self._real.delete, key, sync=sync)

    async def delete_range(
        self, start: Buffer | None = None, stop: Buffer | None = None, *, sync: bool = False
    ) -> None:
        """Removes all keys from ``start`` up to, not including, ``stop``."""
        await self._call(self._real.delete_range, start, stop, sync=sync)

    async def delete_prefix(self, prefix: Buffer, *, sync: bool = False) -> None:
        """Removes all keys that begin with ``prefix``."""
        await self._call(self._real.delete_prefix, prefix, sync=sync)

    async def clear(self) -> None:
        """Removes everything."""
        await self._call(self._real.clear)

    def write_batch(
        self, *, transaction: bool = True, sync: bool = False, durability: Any = None
    ) -> WriteBatch:
        """Makes a batch of writes that are applied together or not at all. If its block raises, it
        is dropped, unless ``transaction`` is false."""
        real = self._real.write_batch(transaction=transaction, sync=sync, durability=durability)
        return WriteBatch(self._pool, real, transaction)

    def snapshot(self, *, label: str | None = None) -> Opening[Snapshot]:
        """Takes a snapshot: the state at this moment. The statistics show its label."""

        async def opening() -> Snapshot:
            return Snapshot(self._pool, await self._call(self._real.snapshot, label=label))

        return Opening(opening())

    async def put_from(self, key: Buffer, file: Any) -> int:
        """Puts what ``file`` holds under ``key``, as :meth:`esker.DB.put_from`; ``file.read`` runs on
        a thread of the pool. Returns the number of bytes."""
        size: int = await self._call(self._real.put_from, key, file)
        return size

    def open_value(self, key: Buffer) -> Opening[ValueReader | None]:
        """A reader of the value under ``key``, or ``None``; as :meth:`esker.DB.open_value`."""

        async def opening() -> ValueReader | None:
            real = await self._call(self._real.open_value, key)
            return None if real is None else ValueReader(self._pool, real)

        return Opening(opening())

    def ingestion(self) -> Opening[Ingestion]:
        """Begins an ingestion of entries in order, as :meth:`esker.DB.ingestion`."""

        async def opening() -> Ingestion:
            return Ingestion(self._pool, await self._call(self._real.ingestion))

        return Opening(opening())

    async def ingest_sorted(
        self, entries: Iterable[tuple[Buffer, Buffer]], *, ttl: float | None = None
    ) -> int:
        """Ingests entries in order, as :meth:`esker.DB.ingest_sorted`; ``entries`` is iterated on a
        thread of the pool."""
        count: int = await self._call(self._real.ingest_sorted, entries, ttl=ttl)
        return count

    async def approximate_size(self, start: Buffer, stop: Buffer) -> int:
        """About how many bytes the entries between two keys take."""
        size: int = await self._call(self._real.approximate_size, start, stop)
        return size

    async def approximate_sizes(self, *ranges: tuple[Buffer, Buffer]) -> list[int]:
        """About how many bytes the entries of each range take."""
        sizes: list[int] = await self._call(self._real.approximate_sizes, *ranges)
        return sizes

    async def explain_scan(
        self, start: Buffer | None = None, stop: Buffer | None = None, *, limit: int = 100
    ) -> dict[str, Any]:
        """What a scan does, as :meth:`esker.DB.explain_scan`."""
        call = self._real.explain_scan
        explanation: dict[str, Any] = await self._call(call, start, stop, limit=limit)
        return explanation

    async def explain_put(self, key: Buffer, value: Buffer) -> dict[str, Any]:
        """Puts ``value`` under ``key`` and says what that did, as :meth:`esker.DB.explain_put`."""
        explanation: dict[str, Any] = await self._call(self._real.explain_put, key, value)
        return explanation

    async def compact_range(
        self, *, start: Buffer | None = None, stop: Buffer | None = None
    ) -> None:
        """Compacts the entries between two keys."""
        await self._call(self._real.compact_range, start=start, stop=stop)


class ValueReader(_Calls, _Closable):
    """A value that is read piece by piece; made by ``open_value``."""

    __slots__ = ("_real",)

    def __init__(self, pool: ThreadPoolExecutor, real: esker.ValueReader) -> None:
        super().__init__(pool)
        self._real = real

    async def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, or all that are left."""
        return await self._call(self._real.read, size) or b""

    async def seek(self, offset: int, whence: int = 0) -> int:
        """Moves to another place of the value."""
        return await self._call(self._real.seek, offset, whence)

    async def close(self) -> None:
        """Gives the value up."""
        await self._call(self._real.close)


class Ingestion(_Calls, _Closable):
    """Entries that come in order and take effect together; made by ``ingestion``. The end of its
    block commits it, an exception drops it."""

    __slots__ = ("_real",)

    def __init__(self, pool: ThreadPoolExecutor, real: esker.Ingestion) -> None:
        super().__init__(pool)
        self._real = real

    async def put(
        self,
        key: Buffer,
        value: Buffer,
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> None:
        """Adds an entry, whose key follows those before it."""
        await self._call(self._real.put, key, value, keyspace=_real(keyspace), ttl=ttl)

    async def put_many(
        self,
        entries: Iterable[tuple[Buffer, Buffer]],
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> int:
        """Adds entries, in one trip to the pool; returns their number."""
        return await self._call(self._real.put_many, entries, keyspace=_real(keyspace), ttl=ttl)

    async def merge(self, key: Buffer, operand: Buffer, *, keyspace: Store | None = None) -> None:
        """Adds an operand for the merge operator."""
        await self._call(self._real.merge, key, operand, keyspace=_real(keyspace))

    async def delete(self, key: Buffer, *, keyspace: Store | None = None) -> None:
        """Adds the removal of a key."""
        await self._call(self._real.delete, key, keyspace=_real(keyspace))

    async def delete_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        keyspace: Store | None = None,
    ) -> None:
        """Adds the removal of what a range held before."""
        await self._call(self._real.delete_range, start, stop, keyspace=_real(keyspace))

    async def sync(self) -> None:
        """Makes what was added so far durable, though not visible."""
        await self._call(self._real.sync)

    async def join(self, other: Ingestion) -> None:
        """Takes over what another ingestion added; both then take effect together."""
        await self._call(self._real.join, other._real)

    async def commit(self) -> None:
        """Lets everything take effect."""
        await self._call(self._real.commit)

    async def close(self) -> None:
        """Drops what was not committed."""
        await self._call(self._real.close)

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._call(self._real.__exit__, exc_type, exc_value, traceback)


class PrefixedDB(Store):
    """The part of a database or keyspace whose keys begin with a prefix, without that prefix."""

    __slots__ = ()

    def __init__(self, pool: ThreadPoolExecutor, real: esker.PrefixedDB) -> None:
        super().__init__(pool)
        self._real = real

    @property
    def prefix(self) -> bytes:
        """The prefix."""
        return self._real.prefix  # type: ignore[no-any-return]

    @property
    def real(self) -> esker.PrefixedDB:
        """The object itself, whose calls block."""
        return self._real  # type: ignore[no-any-return]

    def prefixed_db(self, prefix: Buffer) -> PrefixedDB:
        """The part whose keys begin with this prefix, too."""
        return PrefixedDB(self._pool, self._real.prefixed_db(prefix))


class Keyspace(Store):
    """A keyspace of a database."""

    __slots__ = ()

    def __init__(self, pool: ThreadPoolExecutor, real: esker.Keyspace) -> None:
        super().__init__(pool)
        self._real = real

    @property
    def name(self) -> str:
        """The name of the keyspace."""
        return self._real.name  # type: ignore[no-any-return]

    @property
    def real(self) -> esker.Keyspace:
        """The keyspace itself, whose calls block."""
        return self._real  # type: ignore[no-any-return]

    @property
    def ttl(self) -> float | None:
        """The seconds after which later writes expire, if they do."""
        return self.real.ttl

    @property
    def merge_operator(self) -> str | None:
        """The name of the merge operator, if there is one."""
        return self.real.merge_operator

    async def set_ttl(self, ttl: float | None) -> None:
        """Lets later writes expire after ``ttl`` seconds, or not."""
        await self._call(self.real.set_ttl, ttl)

    async def length(self) -> int:
        """How many entries there are, as ``len`` of an :class:`esker.Keyspace`."""
        return await self._call(self.real.__len__)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """An asynchronous iterator over the entries, in the order of their keys."""
        return self.iterator()

    def keys(self) -> Iterator[bytes]:
        """An asynchronous iterator over the keys, in order."""
        return self.iterator(include_value=False)

    def values(self) -> Iterator[bytes]:
        """An asynchronous iterator over the values, in the order of their keys."""
        return self.iterator(include_key=False)

    async def pop(self, key: Buffer, *default: Any) -> Any:
        """Removes ``key`` and returns its value, or ``default``; without one ``KeyError``."""
        return await self._call(self.real.pop, key, *default)

    async def popitem(self) -> tuple[bytes, bytes]:
        """Removes the first entry and returns it; ``KeyError`` if there is none."""
        return await self._call(self.real.popitem)

    async def setdefault(self, key: Buffer, default: Buffer) -> bytes:
        """The value under ``key``; if there is none, puts ``default`` there and returns it."""
        value: bytes = await self._call(self.real.setdefault, key, default)
        return value

    async def update(self, other: Any = ()) -> None:
        """Puts all entries of another mapping, or of pairs, or none; an iterable is iterated on a
        thread of the pool."""
        await self._call(self.real.update, other)


class Transaction(_Calls, _Closable):
    """A transaction: commits at the end of the block, rolls back after an exception."""

    __slots__ = ("_real",)

    def __init__(self, pool: ThreadPoolExecutor, real: esker.Transaction) -> None:
        super().__init__(pool)
        self._real = real

    async def get(self, key: Buffer, default: Any = None, *, keyspace: Store | None = None) -> Any:
        """The value under ``key`` as the transaction sees it, or ``default``."""
        return await self._call(self._real.get, key, default, keyspace=_real(keyspace))

    async def get_for_update(
        self, key: Buffer, default: Any = None, *, keyspace: Store | None = None
    ) -> Any:
        """Like ``get``, for a value that is to be changed: a pessimistic transaction locks it."""
        return await self._call(self._real.get_for_update, key, default, keyspace=_real(keyspace))

    async def get_for_share(
        self, key: Buffer, default: Any = None, *, keyspace: Store | None = None
    ) -> Any:
        """Like ``get_for_update``, with a lock that others may share."""
        return await self._call(self._real.get_for_share, key, default, keyspace=_real(keyspace))

    async def put(
        self,
        key: Buffer,
        value: Buffer,
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> None:
        """Puts ``value`` under ``key``; it expires ``ttl`` seconds after the commit."""
        await self._call(self._real.put, key, value, keyspace=_real(keyspace), ttl=ttl)

    async def merge(self, key: Buffer, operand: Buffer, *, keyspace: Store | None = None) -> None:
        """Writes ``operand`` for the merge operator."""
        await self._call(self._real.merge, key, operand, keyspace=_real(keyspace))

    async def delete(self, key: Buffer, *, keyspace: Store | None = None) -> None:
        """Removes ``key``, if it exists."""
        await self._call(self._real.delete, key, keyspace=_real(keyspace))

    async def delete_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        keyspace: Store | None = None,
    ) -> None:
        """Removes all keys from ``start`` up to, not including, ``stop``."""
        await self._call(self._real.delete_range, start, stop, keyspace=_real(keyspace))

    async def delete_prefix(self, prefix: Buffer, *, keyspace: Store | None = None) -> None:
        """Removes all keys that begin with ``prefix``."""
        await self._call(self._real.delete_prefix, prefix, keyspace=_real(keyspace))

    async def contains(self, key: Buffer) -> bool:
        """Whether ``key`` exists as the transaction sees it."""
        return await self._call(self._real.__contains__, key)

    async def multi_get(
        self, keys: Iterable[Buffer], *, keyspace: Store | None = None
    ) -> list[bytes | None]:
        """The values under ``keys`` as the transaction sees them."""
        return await self._call(self._real.multi_get, list(keys), keyspace=_real(keyspace))

    async def savepoint(self) -> esker.Savepoint:
        """Marks a point to which ``rollback_to`` goes back."""
        return await self._call(self._real.savepoint)

    async def rollback_to(self, savepoint: esker.Savepoint) -> None:
        """Takes back what was written since the savepoint."""
        await self._call(self._real.rollback_to, savepoint)

    def iterator(
        self, *, keyspace: Store | None = None, **options: Any
    ) -> TransactionIterator[Any]:
        """An asynchronous iterator over a range as the transaction sees it, with its own writes so
        far, with the options of :meth:`esker.Transaction.iterator`."""
        make = functools.partial(self._real.iterator, keyspace=_real(keyspace), **options)
        return TransactionIterator(self._pool, make)

    def __aiter__(self) -> AsyncIterator[tuple[bytes, bytes]]:
        return self.iterator()

    async def entries(self, *, keyspace: Store | None = None, **options: Any) -> list[Any]:
        """The entries of a range as the transaction sees them, with the options of
        :meth:`esker.Transaction.iterator`."""
        real = _real(keyspace)
        return await self._call(lambda: list(self._real.iterator(keyspace=real, **options)))

    async def commit(self) -> None:
        """Commits."""
        await self._call(self._real.commit)

    async def _commit_if_open(self) -> None:
        await self._call(self._real.__exit__, None, None, None)

    async def rollback(self) -> None:
        """Rolls back all writes."""
        await self._call(self._real.rollback)

    close = rollback

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._call(self._real.__exit__, exc_type, exc_value, traceback)


class DB(Store, _Closable):
    """An open database; made by :func:`open`."""

    __slots__ = ()

    def __init__(self, pool: ThreadPoolExecutor, real: esker.DB) -> None:
        super().__init__(pool)
        self._real = real

    @property
    def real(self) -> esker.DB:
        """The database itself, whose calls block."""
        return self._real  # type: ignore[no-any-return]

    @property
    def closed(self) -> bool:
        """Whether the database was closed."""
        return self.real.closed

    def keyspace(self, name: str, **options: Any) -> Opening[Keyspace]:
        """Opens the keyspace of this name, and makes it on first use."""

        async def opening() -> Keyspace:
            return Keyspace(self._pool, await self._call(self._real.keyspace, name, **options))

        return Opening(opening())

    async def keyspaces(self) -> list[str]:
        """The names of all keyspaces."""
        return await self._call(self.real.keyspaces)

    async def drop_keyspace(self, name: str) -> bool:
        """Drops a keyspace with all its entries."""
        return await self._call(self.real.drop_keyspace, name)

    def transaction(self, **options: Any) -> Opening[Transaction]:
        """Begins a transaction, with the options of :meth:`esker.DB.transaction`."""

        async def opening() -> Transaction:
            return Transaction(self._pool, await self._call(self.real.transaction, **options))

        return Opening(opening())

    def prefixed_db(self, prefix: Buffer) -> PrefixedDB:
        """The part of the database whose keys begin with a prefix."""
        return PrefixedDB(self._pool, self.real.prefixed_db(prefix))

    @overload
    async def transact(
        self, function: Callable[[Transaction], Coroutine[Any, Any, _R]], **options: Any
    ) -> _R: ...
    @overload
    async def transact(self, function: Callable[[esker.Transaction], _R], **options: Any) -> _R: ...
    async def transact(self, function: Callable[[Any], Any], **options: Any) -> Any:
        """As :meth:`esker.DB.transact`. An ``async`` function gets a :class:`Transaction` and is
        awaited here; any other function gets an :class:`esker.Transaction` and runs on a thread of
        the pool."""
        if not inspect.iscoroutinefunction(function):
            return await self._call(self.real.transact, function, **options)
        attempts = options.pop("attempts", 1000)
        if attempts < 1:
            raise esker.InvalidArgumentError("'attempts' must be at least 1")
        while True:
            attempts -= 1
            transaction = await self.transaction(**options)
            try:
                result = await function(transaction)
                await transaction._commit_if_open()
                return result
            except (esker.ConflictError, esker.DeadlockError):
                await transaction.rollback()
                if attempts == 0:
                    raise
            except BaseException:
                await transaction.rollback()
                raise

    def _beside(self, call: Callable[[str], esker.DB], name: str) -> Opening[DB]:
        async def opening() -> DB:
            return DB(self._pool, await self._call(call, name))

        return Opening(opening(), closes=False)

    def branch(self, name: str) -> Opening[DB]:
        """Makes a branch of this database as it is now. Its ``close`` closes the database for all;
        the end of its block does not."""
        return self._beside(self.real.branch, name)

    def open_branch(self, name: str) -> Opening[DB]:
        """Opens a branch that was made before; closing as of :meth:`branch`."""
        return self._beside(self.real.open_branch, name)

    async def branches(self) -> list[str]:
        """The names of all branches."""
        return await self._call(self.real.branches)

    async def drop_branch(self, name: str) -> bool:
        """Drops a branch and all its entries."""
        return await self._call(self.real.drop_branch, name)

    @property
    def branch_name(self) -> str | None:
        """The name of the branch or named snapshot that this is, if it is one."""
        return self.real.branch_name

    async def snapshot_named(self, name: str) -> None:
        """Keeps the present state under a name."""
        await self._call(self.real.snapshot_named, name)

    def open_named_snapshot(self, name: str) -> Opening[DB]:
        """Opens a named snapshot, for reading; closing as of :meth:`branch`."""
        return self._beside(self.real.open_named_snapshot, name)

    async def named_snapshots(self) -> list[str]:
        """The names of all named snapshots."""
        return await self._call(self.real.named_snapshots)

    async def drop_named_snapshot(self, name: str) -> bool:
        """Drops a named snapshot."""
        return await self._call(self.real.drop_named_snapshot, name)

    async def checkpoint(self, path: Any) -> None:
        """Copies the present state of the database into another directory."""
        await self._call(self.real.checkpoint, path)

    async def sync(self) -> None:
        """Makes everything written so far survive power loss."""
        await self._call(self._real.sync)

    async def flush(self) -> None:
        """Writes what is in memory to files."""
        await self._call(self._real.flush)

    async def wait_until_idle(self) -> None:
        """Waits until flushes and compactions have nothing to do."""
        await self._call(self.real.wait_until_idle)

    async def get_property(self, name: Buffer) -> bytes | None:
        """A property by LevelDB's names for them."""
        return await self._call(self.real.get_property, name)

    async def stats(self) -> dict[str, Any]:
        """The database's statistics."""
        return await self._call(self.real.stats)

    async def openmetrics(self) -> str:
        """The statistics as text in the format OpenMetrics 1.0."""
        return await self._call(self.real.openmetrics)

    async def verify(self) -> dict[str, Any]:
        """Reads everything that is stored and reports damage."""
        return await self._call(self.real.verify)

    async def close(self) -> None:
        """Closes the database and its pool. Calls under way end first or fail as closed."""
        await self._call(self._real.close)
        self._pool.shutdown(wait=False)


def open(name: Any, *, threads: int = THREADS, **options: Any) -> Opening[DB]:
    """Opens a database, with the options of :class:`esker.DB`."""

    async def opening() -> DB:
        pool = ThreadPoolExecutor(threads, thread_name_prefix="esker-aio")
        calls = _Calls(pool)
        try:
            return DB(pool, await calls._call(esker.DB, name, **options))
        except BaseException:
            pool.shutdown(wait=False)
            raise

    return Opening(opening())
