"""Values that come from files and are read as files."""

import io

import esker
import pytest

PIECE = 256 << 10


def noise(length):
    return bytes((number * number >> 7) % 251 for number in range(1000)) * (length // 1000) + b"x" * (length % 1000)


@pytest.mark.parametrize("length", [0, 10, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 17])
def test_a_file_is_put_and_read(db, length):
    data = noise(length)
    assert db.put_from(b"k", io.BytesIO(data)) == length
    assert db.get(b"k") == data
    with db.open_value(b"k") as reader:
        assert isinstance(reader, esker.ValueReader)
        assert len(reader) == length
        assert reader.read() == data
        assert reader.read() == b""
        middle = reader.seek(-(length // 2), io.SEEK_END)
        assert middle == length - length // 2 == reader.tell()
        assert io.BufferedReader(reader).read() == data[middle:]
    with pytest.raises(ValueError, match="closed"):
        reader.read()


def test_a_reader_keeps_what_it_sees(db):
    data = noise(5 * PIECE)
    db.put_from(b"k", io.BytesIO(data))
    reader = db.open_value(b"k")
    db.put(b"k", b"new")
    assert db.get(b"k") == b"new"
    buffer = bytearray(1000)
    assert reader.readinto(buffer) == 1000
    assert buffer == data[:1000]
    assert reader.readall() == data[1000:]
    assert db.open_value(b"missing") is None


def test_a_file_that_raises_puts_nothing(db):
    class Failing:
        def __init__(self, left):
            self.left = left

        def read(self, size):
            if self.left == 0:
                msg = "no more"
                raise KeyError(msg)
            given = min(size, self.left)
            self.left -= given
            return b"y" * given

    db.put(b"k", b"old")
    for length in (0, 10, 3 * PIECE):
        with pytest.raises(KeyError, match="no more"):
            db.put_from(b"k", Failing(length))
        assert db.get(b"k") == b"old"


def test_a_file_that_gives_too_much_is_refused(db):
    class Generous:
        def read(self, size):
            return b"z" * (size + 1)

    with pytest.raises(esker.InvalidArgumentError, match="more bytes"):
        db.put_from(b"k", Generous())


def test_a_reader_ends_with_its_database(db):
    db.put_from(b"k", io.BytesIO(noise(3 * PIECE)))
    reader = db.open_value(b"k")
    db.close()
    with pytest.raises(esker.ClosedError):
        reader.read(1)
    reader.close()


def test_prefixes_and_keyspaces_have_them(db):
    inner = db.prefixed_db(b"p:")
    inner.put_from(b"k", io.BytesIO(b"value"))
    assert db.open_value(b"p:k").read() == b"value"
    assert inner.open_value(b"k").read() == b"value"
