"""Readers of values that are too large for memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._esker import _ValueSource


class ValueReader(io.RawIOBase):
    """One value of a database as a binary file that can seek and cannot be written.

    It gives the value as of the call that made it. ``len`` is the number of its bytes.

    >>> import esker, tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> db = esker.DB(directory.name, create_if_missing=True)
    >>> db.put(b"poem", b"roses and violets")
    >>> with db.open_value(b"poem") as poem:
    ...     print(len(poem), poem.read(5), poem.seek(-7, 2), poem.read())
    17 b'roses' 10 b'violets'
    >>> db.close()
    >>> directory.cleanup()
    """

    def __init__(self, source: _ValueSource) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether it can seek: always."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next ``size`` bytes, or all that are left."""
        self._check()
        return self._source.read(len(self) if size is None or size < 0 else size)

    def readall(self) -> bytes:
        """Return all bytes that are left."""
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill a buffer; return how many bytes there were."""
        self._check()
        view = memoryview(buffer).cast("B")
        read = self._source.read(len(view))
        view[: len(read)] = read
        return len(read)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place, counted from the start, from here or from the end."""
        self._check()
        return self._source.seek(offset, whence)

    def close(self) -> None:
        """Let the value go."""
        if not self.closed:
            self._source.close()
        super().close()

    def _check(self) -> None:
        if self.closed:
            msg = "I/O operation on closed file."
            raise ValueError(msg)
