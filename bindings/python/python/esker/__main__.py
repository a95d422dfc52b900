"""``python -m esker [DATABASE]``: prints versions, and the statistics of a database."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence

import esker


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m esker",
        description="Prints versions, and as JSON what a database knows about itself.",
    )
    parser.add_argument("database", nargs="?", help="a database, which is opened read-only")
    given = parser.parse_args(arguments)
    if given.database is None:
        print(f"esker {esker.__version__}, file format {esker.FORMAT_VERSION}")
        print(f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}")
        return 0
    try:
        with esker.DB(given.database, read_only=True) as db:
            stats = db.stats()
    except esker.Error as error:
        print(f"esker: {error}", file=sys.stderr)
        return 1
    report = {"esker": esker.__version__, "format": esker.FORMAT_VERSION, "stats": stats}
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
