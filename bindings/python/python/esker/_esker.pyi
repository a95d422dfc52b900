from collections.abc import Callable, Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, final, overload

from _typeshed import SupportsRead
from typing_extensions import Buffer, CapsuleType, disjoint_base

from ._mapping import Keyspace
from ._values import ValueReader

__all__ = [
    "ArrowScan",
    "DB",
    "FORMAT_VERSION",
    "Ingestion",
    "Iterator",
    "KeyspaceBase",
    "PrefixedDB",
    "RawIterator",
    "Savepoint",
    "Snapshot",
    "Store",
    "Transaction",
    "TransactionIterator",
    "WriteBatch",
    "_ValueSource",
    "__version__",
    "_close_all",
    "_forked",
    "destroy_db",
    "repair_db",
]

_D = TypeVar("_D")
_Durability = Literal["buffered", "process", "disk"]
_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Compare = Callable[[bytes, bytes], int]
_Filter = Callable[[bytes, bytes], bool | Buffer | None]
_Listener = Callable[[dict[str, Any]], object]
_Merge = Callable[[bytes, bytes | None, list[bytes]], Buffer | None]

__version__: Final[str]
FORMAT_VERSION: Final[int]

@disjoint_base
class Store:
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: _D,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | _D: ...
    def get_buffer(self, key: Buffer) -> memoryview | None: ...
    def put(
        self, key: Buffer, value: Buffer, *, sync: bool | None = False, ttl: float | None = None
    ) -> None: ...
    def put_from(self, key: Buffer, file: SupportsRead[bytes], /) -> int: ...
    def open_value(self, key: Buffer, /) -> ValueReader | None: ...
    def try_put(self, key: Buffer, value: Buffer) -> None: ...
    def try_delete(self, key: Buffer) -> None: ...
    def merge(self, key: Buffer, operand: Buffer, *, sync: bool = False) -> None: ...
    def compare_and_set(
        self, key: Buffer, expected: Buffer | None, new: Buffer | None
    ) -> bool: ...
    def insert_if_absent(self, key: Buffer, value: Buffer) -> bool: ...
    def update_with(
        self, key: Buffer, function: Callable[[bytes | None], Buffer | None]
    ) -> bytes | None: ...
    def delete(self, key: Buffer, *, sync: bool | None = False) -> None: ...
    def delete_range(
        self, start: Buffer | None = None, stop: Buffer | None = None, *, sync: bool = False
    ) -> None: ...
    def delete_prefix(self, prefix: Buffer, *, sync: bool = False) -> None: ...
    def clear(self) -> None: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def multi_get(self, keys: Iterable[Buffer]) -> list[bytes | None]: ...
    def write_batch(
        self,
        *,
        transaction: bool | None = None,
        sync: bool | None = False,
        durability: _Durability | None = None,
    ) -> WriteBatch: ...
    def ingestion(self) -> Ingestion: ...
    def ingest_sorted(
        self, entries: Iterable[tuple[Buffer, Buffer]], *, ttl: float | None = None
    ) -> int: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[False],
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[None]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[Any]: ...
    def raw_iterator(
        self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> RawIterator: ...
    def arrow(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        batch_rows: int = 8192,
        batch_bytes: int = ...,
    ) -> ArrowScan: ...
    def snapshot(self, *, label: str | None = None) -> Snapshot: ...
    def explain_get(self, key: Buffer) -> dict[str, Any]: ...
    def explain_scan(
        self, start: Buffer | None = None, stop: Buffer | None = None, *, limit: int = 100
    ) -> dict[str, Any]: ...
    def explain_put(self, key: Buffer, value: Buffer) -> dict[str, Any]: ...
    def compact_range(
        self, *, start: Buffer | None = None, stop: Buffer | None = None
    ) -> None: ...
    def approximate_size(self, start: Buffer, stop: Buffer) -> int: ...
    def approximate_sizes(self, *ranges: tuple[Buffer, Buffer]) -> list[int]: ...

@disjoint_base
class DB(Store):
    def __new__(
        cls,
        name: _Path,
        *,
        create_if_missing: bool | None = False,
        error_if_exists: bool | None = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: Literal["snappy", "auto", "lz4", "zstd"] | bytes | None = ...,
        bloom_filter_bits: int | None = None,
        comparator: _Compare | None = None,
        comparator_name: bytes | None = None,
        memory: int | None = None,
        durability: _Durability = "process",
        sync_interval: float | None = 5.0,
        read_only: bool = False,
        workers: int | None = None,
        recovery: Literal["refuse", "keep-prefix"] = "refuse",
        merge_operators: dict[str, _Merge] | None = None,
        compaction_filters: dict[str, _Filter] | None = None,
        on_event: _Listener | None = None,
        cold_after: float | None = 3600.0,
        max_space_amplification: float = 1.45,
        separate_values_from: int | None = 4096,
    ) -> Self: ...
    @property
    def name(self) -> Any: ...
    @property
    def id(self) -> bytes: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def prefixed_db(self, prefix: Buffer) -> PrefixedDB: ...
    @overload
    def keyspace(
        self,
        name: str,
        *,
        comparator: None = None,
        comparator_name: None = None,
        merge_operator: str | None = None,
        compaction_filter: str | None = None,
        ttl: float | None = None,
    ) -> Keyspace: ...
    @overload
    def keyspace(
        self,
        name: str,
        *,
        comparator: _Compare,
        comparator_name: bytes,
        merge_operator: str | None = None,
        compaction_filter: str | None = None,
        ttl: float | None = None,
    ) -> Keyspace: ...
    def keyspaces(self) -> list[str]: ...
    def drop_keyspace(self, name: str) -> bool: ...
    def transaction(
        self,
        *,
        sync: bool = False,
        durability: _Durability | None = None,
        pessimistic: bool = False,
        lock_timeout: float | None = None,
    ) -> Transaction: ...
    def transact(
        self,
        function: Callable[[Transaction], _D],
        *,
        attempts: int = 1000,
        sync: bool = False,
        durability: _Durability | None = None,
        pessimistic: bool = False,
        lock_timeout: float | None = None,
    ) -> _D: ...
    def _write_failed_batches(self) -> None: ...
    def branch(self, name: str) -> DB: ...
    def open_branch(self, name: str) -> DB: ...
    def branches(self) -> list[str]: ...
    def drop_branch(self, name: str) -> bool: ...
    def snapshot_named(self, name: str) -> None: ...
    def open_named_snapshot(self, name: str) -> DB: ...
    def named_snapshots(self) -> list[str]: ...
    def drop_named_snapshot(self, name: str) -> bool: ...
    @property
    def branch_name(self) -> str | None: ...
    def checkpoint(self, path: _Path) -> None: ...
    def sync(self) -> None: ...
    def flush(self) -> None: ...
    def wait_until_idle(self) -> None: ...
    def get_property(self, name: Buffer) -> bytes | None: ...
    def stats(self) -> dict[str, Any]: ...
    def openmetrics(self) -> str: ...
    def verify(self) -> dict[str, Any]: ...

@disjoint_base
class KeyspaceBase(Store):
    def __new__(
        cls,
        db: DB,
        name: str,
        *,
        comparator: _Compare | None = None,
        comparator_name: bytes | None = None,
        merge_operator: str | None = None,
        compaction_filter: str | None = None,
        ttl: float | None = None,
    ) -> Self: ...
    @property
    def db(self) -> DB: ...
    @property
    def name(self) -> str: ...
    @property
    def ttl(self) -> float | None: ...
    def set_ttl(self, ttl: float | None) -> None: ...
    @property
    def merge_operator(self) -> str | None: ...
    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class PrefixedDB(Store):
    def __new__(cls, *, db: DB, prefix: Buffer) -> Self: ...
    @property
    def db(self) -> DB: ...
    @property
    def prefix(self) -> bytes: ...
    def prefixed_db(self, prefix: Buffer) -> PrefixedDB: ...

@final
class Snapshot:
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: _D,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | _D: ...
    def get_buffer(self, key: Buffer) -> memoryview | None: ...
    def explain_get(self, key: Buffer) -> dict[str, Any]: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def multi_get(self, keys: Iterable[Buffer]) -> list[bytes | None]: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[False],
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[None]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[Any]: ...
    def raw_iterator(
        self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> RawIterator: ...
    def arrow(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        batch_rows: int = 8192,
        batch_bytes: int = ...,
    ) -> ArrowScan: ...
    def keyspace(self, name: str) -> Snapshot: ...
    def close(self) -> None: ...
    def release(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class WriteBatch:
    def put(
        self,
        key: Buffer,
        value: Buffer,
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> None: ...
    def merge(self, key: Buffer, operand: Buffer, *, keyspace: Store | None = None) -> None: ...
    def delete(self, key: Buffer, *, keyspace: Store | None = None) -> None: ...
    def delete_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        keyspace: Store | None = None,
    ) -> None: ...
    def delete_prefix(self, prefix: Buffer, *, keyspace: Store | None = None) -> None: ...
    def clear(self) -> None: ...
    def write(self) -> None: ...
    def try_write(self) -> None: ...
    def approximate_size(self) -> int: ...
    def append(self, source: WriteBatch) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        _exc_value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Ingestion:
    def put(
        self,
        key: Buffer,
        value: Buffer,
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> None: ...
    def put_many(
        self,
        entries: Iterable[tuple[Buffer, Buffer]],
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> int: ...
    def merge(self, key: Buffer, operand: Buffer, *, keyspace: Store | None = None) -> None: ...
    def delete(self, key: Buffer, *, keyspace: Store | None = None) -> None: ...
    def delete_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        keyspace: Store | None = None,
    ) -> None: ...
    def sync(self) -> None: ...
    def join(self, other: Ingestion) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        _exc_value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class _ValueSource:
    def read(self, size: int) -> bytes: ...
    def seek(self, offset: int, whence: int) -> int: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...

@final
class Transaction:
    @overload
    def get(
        self, key: Buffer, default: None = None, *, keyspace: Store | None = None
    ) -> bytes | None: ...
    @overload
    def get(self, key: Buffer, default: _D, *, keyspace: Store | None = None) -> bytes | _D: ...
    @overload
    def get_for_update(
        self, key: Buffer, default: None = None, *, keyspace: Store | None = None
    ) -> bytes | None: ...
    @overload
    def get_for_update(
        self, key: Buffer, default: _D, *, keyspace: Store | None = None
    ) -> bytes | _D: ...
    @overload
    def get_for_share(
        self, key: Buffer, default: None = None, *, keyspace: Store | None = None
    ) -> bytes | None: ...
    @overload
    def get_for_share(
        self, key: Buffer, default: _D, *, keyspace: Store | None = None
    ) -> bytes | _D: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def multi_get(
        self, keys: Iterable[Buffer], *, keyspace: Store | None = None
    ) -> list[bytes | None]: ...
    def put(
        self,
        key: Buffer,
        value: Buffer,
        *,
        keyspace: Store | None = None,
        ttl: float | None = None,
    ) -> None: ...
    def merge(self, key: Buffer, operand: Buffer, *, keyspace: Store | None = None) -> None: ...
    def delete(self, key: Buffer, *, keyspace: Store | None = None) -> None: ...
    def delete_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        keyspace: Store | None = None,
    ) -> None: ...
    def delete_prefix(self, prefix: Buffer, *, keyspace: Store | None = None) -> None: ...
    def __iter__(self) -> TransactionIterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        keyspace: Store | None = None,
    ) -> TransactionIterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        keyspace: Store | None = None,
    ) -> TransactionIterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        keyspace: Store | None = None,
    ) -> TransactionIterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[False],
        keyspace: Store | None = None,
    ) -> TransactionIterator[None]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        keyspace: Store | None = None,
    ) -> TransactionIterator[Any]: ...
    def savepoint(self) -> Savepoint: ...
    def rollback_to(self, savepoint: Savepoint) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        _exc_value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Savepoint: ...

@final
class TransactionIterator[T]:
    def __iter__(self) -> Self: ...
    def __next__(self) -> T: ...
    def close(self) -> None: ...

@final
class Iterator[T]:
    def __iter__(self) -> Self: ...
    def __next__(self) -> T: ...
    def prev(self) -> T: ...
    def fetch(self, count: int) -> list[T]: ...
    def seek_to_start(self) -> None: ...
    def seek_to_stop(self) -> None: ...
    def seek(self, target: Buffer) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class RawIterator:
    def valid(self) -> bool: ...
    def seek_to_first(self) -> None: ...
    def seek_to_last(self) -> None: ...
    def seek(self, target: Buffer) -> None: ...
    def next(self) -> None: ...
    def prev(self) -> None: ...
    def key(self) -> bytes: ...
    def value(self) -> bytes: ...
    def item(self) -> tuple[bytes, bytes]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class ArrowScan:
    def __arrow_c_stream__(self, requested_schema: object = None) -> CapsuleType: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...

def repair_db(
    name: _Path,
    *,
    paranoid_checks: bool | None = None,
    write_buffer_size: int | None = None,
    max_open_files: int | None = None,
    lru_cache_size: int | None = None,
    block_size: int | None = None,
    block_restart_interval: int | None = None,
    max_file_size: int | None = None,
    compression: Literal["snappy", "auto", "lz4", "zstd"] | bytes | None = ...,
    bloom_filter_bits: int | None = None,
    comparator: _Compare | None = None,
    comparator_name: bytes | None = None,
) -> Any: ...
def destroy_db(name: _Path) -> None: ...
def _close_all() -> None: ...
def _forked() -> None: ...
