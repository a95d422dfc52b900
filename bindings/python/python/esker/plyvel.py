"""plyvel's names, for programs that were written for it.

>>> import esker.plyvel as plyvel, tempfile
>>> directory = tempfile.TemporaryDirectory()
>>> db = plyvel.DB(directory.name, create_if_missing=True)
>>> with db.write_batch() as batch:
...     batch.put(b"key", b"value")
>>> list(db.iterator(prefix=b"k"))
[(b'key', b'value')]
>>> db.close()
>>> directory.cleanup()

The databases are Esker's: a directory that LevelDB wrote is refused and left alone.
"""

from typing import Any, Self

from . import DB as _DB
from . import (
    CorruptionError,
    Error,
    IOError,
    IteratorInvalidError,
    destroy_db,
    repair_db,
)
from . import __version__ as __version__

#: The version of LevelDB whose interface this is.
__leveldb_version__ = "1.23"



class DB(_DB):
    """As :class:`esker.DB`, but a write batch whose block raises is written with what it holds, as
    plyvel does, unless it was made with ``transaction=True``."""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        db = super().__new__(cls, *arguments, **options)
        db._write_failed_batches()
        return db


__all__ = [
    "DB",
    "CorruptionError",
    "Error",
    "IOError",
    "IteratorInvalidError",
    "destroy_db",
    "repair_db",
]
