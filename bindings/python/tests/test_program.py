"""`python -m esker`, and the program that the guide begins with."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import esker

GUIDE = Path(__file__).parents[3] / "docs" / "python.md"
README = Path(__file__).parents[1] / "README.md"


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "esker", *map(str, arguments)],
        capture_output=True,
        text=True,
    )


def test_versions():
    answer = run()
    assert answer.returncode == 0 and not answer.stderr
    assert answer.stdout.startswith(f"esker {esker.__version__}, file format {esker.FORMAT_VERSION}\n")


def test_statistics_of_a_database(path):
    with esker.DB(path, create_if_missing=True) as db:
        db.keyspace("things").put(b"k", b"v")
        db.flush()
    before = sorted((file, file.stat().st_mtime_ns) for file in path.rglob("*"))
    answer = run(path)
    assert answer.returncode == 0 and not answer.stderr
    report = json.loads(answer.stdout)
    assert report["format"] == esker.FORMAT_VERSION
    tree = report["stats"]["keyspaces"]["things"]
    assert tree["base"]["entries"] + sum(delta["entries"] for delta in tree["deltas"]) == 1
    assert sorted((file, file.stat().st_mtime_ns) for file in path.rglob("*")) == before


def test_a_database_that_is_not_there(path):
    answer = run(path)
    assert answer.returncode == 1 and not answer.stdout
    assert answer.stderr.startswith("esker: there is no database at ")
    assert not path.exists()


def printed_by(page, place):
    """What the program prints that a page begins with, run in a directory."""
    program = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL).group(1)
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stderr == ""
    return answer.stdout


def test_the_program_that_the_guide_begins_with(tmp_path):
    printed = re.search(r"```text\n(.*?)```", GUIDE.read_text(), re.DOTALL).group(1)
    assert printed_by(GUIDE, tmp_path) == printed


def test_the_program_that_the_readme_shows(tmp_path):
    assert printed_by(README, tmp_path) == "b'world'\n"
