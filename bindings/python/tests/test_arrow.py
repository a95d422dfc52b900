"""Scans as Arrow streams, read by libraries that did not come with this one."""

from __future__ import annotations

import duckdb
import polars
import pyarrow
import pytest

import esker

ENTRIES = [(b"%05d" % number, b"value %d" % number) for number in range(20_000)]


@pytest.fixture
def full(db):
    with db.write_batch() as batch:
        for key, value in ENTRIES:
            batch.put(key, value)
    return db


def rows(table):
    return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_pyarrow_reads_it(full):
    table = pyarrow.table(full.arrow())
    assert table.schema == pyarrow.schema(
        [
            pyarrow.field("key", pyarrow.binary(), nullable=False),
            pyarrow.field("value", pyarrow.binary(), nullable=False),
        ]
    )
    table.validate(full=True)
    assert rows(table) == ENTRIES


def test_ranges_and_columns(full):
    def keys(**options):
        return pyarrow.table(full.arrow(include_value=False, **options))["key"].to_pylist()

    assert keys(start=b"00010", stop=b"00013") == [b"00010", b"00011", b"00012"]
    assert keys(start=b"00010", stop=b"00012", include_start=False, include_stop=True) == [
        b"00011",
        b"00012",
    ]
    assert keys(prefix=b"0001", reverse=True) == [b"%05d" % number for number in range(19, 9, -1)]
    assert keys(prefix=b"x") == []
    values = pyarrow.table(full.arrow(include_key=False, stop=b"00001"))
    assert values.column_names == ["value"] and values["value"].to_pylist() == [b"value 0"]
    neither = pyarrow.table(full.arrow(include_key=False, include_value=False))
    assert (neither.num_columns, neither.num_rows) == (0, len(ENTRIES))
    stripped = pyarrow.table(full.prefixed_db(b"000").arrow(stop=b"01"))
    assert rows(stripped) == [(b"00", b"value 0")]


def test_batches_are_bounded(full):
    reader = pyarrow.RecordBatchReader.from_stream(full.arrow(batch_rows=1000))
    assert {batch.num_rows for batch in reader} == {1000}
    reader = pyarrow.RecordBatchReader.from_stream(full.arrow(batch_bytes=1000))
    sizes = [sum(map(len, column)) for batch in reader for column in [batch["key"].to_pylist()]]
    assert sum(sizes) == 5 * len(ENTRIES) and max(sizes) <= 1000
    reader = pyarrow.RecordBatchReader.from_stream(full.arrow(batch_bytes=0))
    assert next(reader).num_rows == 1
    for wrong in ({"batch_rows": 0}, {"batch_bytes": 1 << 40}):
        with pytest.raises(esker.InvalidArgumentError):
            full.arrow(**wrong)


def test_a_scan_shows_one_moment_as_often_as_it_is_read(full):
    scan = full.arrow()
    full.delete_range()
    full.put(b"new", b"new")
    for _ in range(2):
        assert pyarrow.table(scan).num_rows == len(ENTRIES)
    with full.snapshot() as snapshot:
        full.delete(b"new")
        assert rows(pyarrow.table(snapshot.arrow())) == [(b"new", b"new")]


def test_schema(full):
    assert pyarrow.schema(full.arrow()).names == ["key", "value"]


def test_polars_reads_it(full):
    frame = polars.DataFrame(full.arrow())
    assert frame.schema == {"key": polars.Binary, "value": polars.Binary}
    assert frame.rows() == ENTRIES
    last = polars.from_arrow(pyarrow.table(full.arrow(start=b"19999")))
    assert last.rows() == ENTRIES[-1:]


def test_duckdb_reads_it(full):
    scan = full.arrow()  # noqa: F841 - duckdb finds it by its name
    connection = duckdb.connect()
    count, first = connection.execute("select count(*), min(key) from scan").fetchone()
    assert (count, first) == (len(ENTRIES), b"00000")
    again = connection.execute("select value from scan where key = '00042'::blob").fetchall()
    assert again == [(b"value 42",)]


def test_an_empty_range_has_a_schema(db):
    table = pyarrow.table(db.arrow())
    assert (table.num_rows, table.column_names) == (0, ["key", "value"])


def test_closing_while_a_stream_is_read(full):
    reader = pyarrow.RecordBatchReader.from_stream(full.arrow(batch_rows=10))
    assert next(reader).num_rows == 10
    scan = full.arrow()
    full.close()
    with pytest.raises(Exception, match="closed"):
        reader.read_all()
    with pytest.raises(esker.ClosedError):
        scan.__arrow_c_stream__()


def test_damage_is_an_error_and_not_an_end(path):
    with esker.DB(path, create_if_missing=True, memory=16 << 20, compression=None) as db:
        for key, value in ENTRIES:
            db.put(key, value)
        db.flush()
    run = max((path / "data").iterdir(), key=lambda file: file.stat().st_size)
    damaged = bytearray(run.read_bytes())
    damaged[damaged.rindex(b"value 10000")] ^= 0xFF
    run.write_bytes(damaged)
    with esker.DB(path, memory=16 << 20) as db:
        with pytest.raises(Exception, match="damaged at offset"):
            pyarrow.table(db.arrow())


def test_streams_that_nobody_reads_are_released(full):
    for _ in range(100):
        full.arrow().__arrow_c_stream__()
        full.arrow().__arrow_c_schema__()
    reader = pyarrow.RecordBatchReader.from_stream(full.arrow())
    next(reader)
    del reader
