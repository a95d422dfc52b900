"""What tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import esker


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def db(path: Path) -> Iterator[esker.DB]:
    with esker.DB(path, create_if_missing=True, memory=64 << 20) as db:
        yield db
