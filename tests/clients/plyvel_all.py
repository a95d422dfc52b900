"""Every function of plyvel 1.5.0, on whichever libleveldb.so.1d it finds: plyvel_all.py DIR

Run by the system's Python with Debian's python3-plyvel, unchanged. Each check that fails is told;
the last line counts them.
"""

import contextlib
import os
import struct
import sys
import threading

import plyvel

checks = failures = 0


def check(condition, what):
    global checks, failures
    checks += 1
    if not condition:
        failures += 1
        line = sys._getframe(1).f_lineno
        print(f"line {line}: not so: {what}")


def equal(found, expected):
    global checks, failures
    checks += 1
    if found != expected:
        failures += 1
        line = sys._getframe(1).f_lineno
        print(f"line {line}: {found!r} is not {expected!r}")


def raises(error, call, *arguments, **named):
    global checks, failures
    checks += 1
    try:
        call(*arguments, **named)
    except error:
        return
    except Exception as other:  # noqa: BLE001
        failures += 1
        print(f"line {sys._getframe(1).f_lineno}: {other!r} instead of {error}")
        return
    failures += 1
    print(f"line {sys._getframe(1).f_lineno}: no error")


def closing_db(*arguments, **named):
    return contextlib.closing(plyvel.DB(*arguments, **named))


def pairs(*numbers):
    return [(b"%04d" % number, b"v%d" % number) for number in numbers]


def opening(base):
    raises(plyvel.Error, plyvel.DB, base + "/missing")
    raises(plyvel.Error, plyvel.DB, base + "/missing", create_if_missing=False)
    path = base + "/opening"
    db = plyvel.DB(path, create_if_missing=True)
    equal(db.name, path)
    check(not db.closed, "it is open")
    check("opening" in repr(db), repr(db))
    raises(plyvel.IOError, plyvel.DB, path)
    db.close()
    check(db.closed, "it is closed")
    db.close()
    raises(RuntimeError, db.get, b"k")
    raises(plyvel.Error, plyvel.DB, path, error_if_exists=True)
    with closing_db(
        path,
        paranoid_checks=True,
        write_buffer_size=1 << 20,
        max_open_files=20,
        lru_cache_size=1 << 20,
        block_size=4096,
        block_restart_interval=16,
        max_file_size=1 << 21,
        compression="snappy",
        bloom_filter_bits=10,
    ) as db:
        db.put(b"k", b"v")
        equal(db.get(b"k"), b"v")
    check(db.closed, "it was closed")
    with closing_db(path, compression=None) as db:
        equal(db.get(b"k"), b"v")
    raises(Exception, plyvel.DB, path, compression="none such")


def entries(db):
    equal(db.get(b"none"), None)
    equal(db.get(b"none", b"default"), b"default")
    equal(db.get(b"none", default=b"default"), b"default")
    db.put(b"key", b"value")
    equal(db.get(b"key", verify_checksums=True, fill_cache=False), b"value")
    db.put(b"key", b"other", sync=True)
    equal(db.get(b"key"), b"other")
    db.put(b"", b"")
    equal(db.get(b""), b"")
    db.put(b"zero\0byte", b"\0\xff")
    equal(db.get(b"zero\0byte"), b"\0\xff")
    big = os.urandom(1 << 20)
    db.put(b"big", big)
    check(db.get(b"big") == big, "a value of 1 MiB")
    for key in (b"key", b"", b"zero\0byte", b"big"):
        db.delete(key)
        equal(db.get(key), None)
    db.delete(b"none", sync=True)
    raises(TypeError, db.put, "text", b"v")
    raises(TypeError, db.get, None)


def batches(db):
    batch = db.write_batch()
    batch.put(b"b1", b"1")
    batch.put(b"b2", b"2")
    batch.delete(b"b1")
    check(batch.approximate_size() > 12, "a batch has a size")
    equal(db.get(b"b2"), None)
    batch.write()
    equal([db.get(b"b1"), db.get(b"b2")], [None, b"2"])
    batch.clear()
    equal(batch.approximate_size(), 12)
    batch.write()
    more = db.write_batch()
    more.put(b"b3", b"3")
    batch.append(more)
    batch.write()
    equal(db.get(b"b3"), b"3")
    with db.write_batch(sync=True) as batch:
        batch.put(b"b4", b"4")
        batch.delete(b"b3")
    equal([db.get(b"b3"), db.get(b"b4")], [None, b"4"])
    try:
        with db.write_batch(transaction=True) as batch:
            batch.put(b"b5", b"5")
            raise ValueError
    except ValueError:
        pass
    equal(db.get(b"b5"), None)
    try:
        with db.write_batch() as batch:
            batch.put(b"b5", b"5")
            raise ValueError
    except ValueError:
        pass
    equal(db.get(b"b5"), b"5")
    for key in (b"b2", b"b4", b"b5"):
        db.delete(key)


def fill(db, prefix=b""):
    with db.write_batch() as batch:
        for number in range(100):
            batch.put(prefix + b"%04d" % number, b"v%d" % number)


def iterators(db):
    everything = pairs(*range(100))
    equal(list(db), everything)
    equal(list(db.iterator()), everything)
    equal(list(db.iterator(reverse=True)), everything[::-1])
    equal(list(reversed(list(db.iterator(reverse=True)))), everything)
    equal(list(db.iterator(start=b"0095")), pairs(95, 96, 97, 98, 99))
    equal(list(db.iterator(stop=b"0003")), pairs(0, 1, 2))
    equal(list(db.iterator(start=b"0010", stop=b"0012")), pairs(10, 11))
    bounds = dict(start=b"0010", stop=b"0012")
    equal(list(db.iterator(**bounds, include_start=False, include_stop=True)), pairs(11, 12))
    equal(list(db.iterator(**bounds, reverse=True)), pairs(11, 10))
    equal(list(db.iterator(**bounds, reverse=True, include_stop=True)), pairs(12, 11, 10))
    equal(list(db.iterator(**bounds, reverse=True, include_start=False)), pairs(11))
    equal(list(db.iterator(start=b"00105", stop=b"00125")), pairs(11, 12))
    equal(list(db.iterator(start=b"00105", stop=b"00125", reverse=True)), pairs(12, 11))
    equal(list(db.iterator(prefix=b"001")), pairs(*range(10, 20)))
    equal(list(db.iterator(prefix=b"001", reverse=True)), pairs(*range(19, 9, -1)))
    equal(list(db.iterator(prefix=b"x")), [])
    equal(list(db.iterator(**bounds, include_value=False)), [b"0010", b"0011"])
    equal(list(db.iterator(**bounds, include_key=False)), [b"v10", b"v11"])
    equal(list(db.iterator(**bounds, include_key=False, include_value=False)), [None, None])
    equal(list(db.iterator(start=b"5", stop=b"4")), [])
    raises(TypeError, db.iterator, prefix=b"0", start=b"0")
    with db.iterator(verify_checksums=True, fill_cache=False) as iterator:
        equal(next(iterator), pairs(0)[0])
        equal(next(iterator), pairs(1)[0])
        equal(iterator.prev(), pairs(1)[0])
        equal(iterator.prev(), pairs(0)[0])
        raises(StopIteration, iterator.prev)
        iterator.seek(b"0050")
        equal(next(iterator), pairs(50)[0])
        iterator.seek(b"00505")
        equal(next(iterator), pairs(51)[0])
        iterator.seek_to_stop()
        raises(StopIteration, next, iterator)
        equal(iterator.prev(), pairs(99)[0])
        iterator.seek_to_start()
        equal(next(iterator), pairs(0)[0])
    raises(RuntimeError, next, iterator)
    iterator.close()
    backward = db.iterator(reverse=True, start=b"0010", stop=b"0020")
    equal(next(backward), pairs(19)[0])
    backward.seek(b"0015")
    equal(next(backward), pairs(14)[0])
    equal(backward.prev(), pairs(14)[0])
    equal(backward.prev(), pairs(15)[0])
    backward.seek_to_stop()
    equal(next(backward), pairs(19)[0])
    backward.seek_to_start()
    raises(StopIteration, next, backward)
    equal(backward.prev(), pairs(10)[0])
    # It shows the moment at which it was made.
    iterator = db.iterator(start=b"0098")
    db.put(b"0099x", b"later")
    equal(list(iterator), pairs(98, 99))
    db.delete(b"0099x")


def raw_iterators(db):
    iterator = db.raw_iterator(verify_checksums=True, fill_cache=True)
    check(not iterator.valid(), "it stands nowhere")
    raises(plyvel.IteratorInvalidError, iterator.key)
    iterator.seek_to_first()
    check(iterator.valid(), "it stands on the first")
    equal((iterator.key(), iterator.value(), iterator.item()), (b"0000", b"v0", (b"0000", b"v0")))
    iterator.next()
    equal(iterator.key(), b"0001")
    iterator.prev()
    equal(iterator.key(), b"0000")
    iterator.prev()
    check(not iterator.valid(), "it ran off the front")
    iterator.seek_to_last()
    equal(iterator.item(), (b"0099", b"v99"))
    iterator.next()
    check(not iterator.valid(), "it ran off the end")
    iterator.seek(b"00415")
    equal(iterator.key(), b"0042")
    iterator.seek(b"zzz")
    check(not iterator.valid(), "there is nothing behind")
    raises(plyvel.IteratorInvalidError, iterator.value)
    with db.raw_iterator() as other:
        other.seek(b"0007")
        equal(other.value(), b"v7")
    iterator.close()
    raises(RuntimeError, iterator.next)


def snapshots(db):
    snapshot = db.snapshot()
    db.put(b"0000", b"changed")
    db.put(b"extra", b"1")
    db.delete(b"0001")
    db.compact_range()
    equal(snapshot.get(b"0000"), b"v0")
    equal(snapshot.get(b"0000", verify_checksums=True, fill_cache=False), b"v0")
    equal(snapshot.get(b"extra", b"none"), b"none")
    equal(list(snapshot), pairs(*range(100)))
    equal(list(snapshot.iterator(stop=b"0002")), pairs(0, 1))
    equal(list(snapshot.iterator(start=b"0098", reverse=True)), pairs(99, 98))
    raw = snapshot.raw_iterator()
    raw.seek_to_last()
    equal(raw.key(), b"0099")
    raw.close()
    snapshot.close()
    raises(RuntimeError, snapshot.get, b"0000")
    with db.snapshot() as snapshot:
        equal(snapshot.get(b"0000"), b"changed")
    db.snapshot().release()
    db.put(b"0000", b"v0")
    db.put(b"0001", b"v1")
    db.delete(b"extra")


def prefixed(db):
    inner = db.prefixed_db(b"in:")
    equal(inner.prefix, b"in:")
    check(inner.db is db, "it knows its database")
    inner.put(b"k", b"v")
    equal((inner.get(b"k"), db.get(b"in:k")), (b"v", b"v"))
    inner.delete(b"k")
    equal(inner.get(b"k", b"gone"), b"gone")
    with inner.write_batch() as batch:
        for number in range(10):
            batch.put(b"%d" % number, b"%d" % number)
    equal(list(inner.iterator(include_value=False)), [b"%d" % n for n in range(10)])
    equal(list(inner.iterator(start=b"3", stop=b"5", include_value=False)), [b"3", b"4"])
    equal(list(inner.iterator(reverse=True, stop=b"2")), [(b"1", b"1"), (b"0", b"0")])
    equal(len(list(inner)), 10)
    deeper = inner.prefixed_db(b"deep:")
    equal(deeper.prefix, b"in:deep:")
    deeper.put(b"k", b"v")
    snapshot = inner.snapshot()
    for number in range(10):
        inner.delete(b"%d" % number)
    equal(len(list(snapshot)), 11)
    equal(snapshot.get(b"7"), b"7")
    snapshot.close()
    equal(list(inner), [(b"deep:k", b"v")])
    deeper.delete(b"k")
    equal(list(inner), [])


def maintenance(db):
    fill(db, b"m")
    db.compact_range()
    db.compact_range(start=b"0", stop=b"1")
    db.compact_range(start=b"m")
    check(db.approximate_size(b"m", b"n") > 0, "what is stored takes space")
    equal(db.approximate_size(b"x", b"y"), 0)
    sizes = db.approximate_sizes((b"m", b"n"), (b"x", b"y"))
    check(sizes[0] > 0 and sizes[1] == 0, sizes)
    for name in (b"leveldb.stats", b"leveldb.sstables", b"leveldb.num-files-at-level0"):
        check(db.get_property(name), name)
    equal(db.get_property(b"none such"), None)
    for number in range(100):
        db.delete(b"m%04d" % number)


def threads(db):
    def work(which):
        for number in range(200):
            db.put(b"t%d-%d" % (which, number), b"%d" % number)

    workers = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    equal(sum(1 for _ in db.iterator(prefix=b"t")), 800)
    with db.write_batch() as batch:
        for key in db.iterator(prefix=b"t", include_value=False):
            batch.delete(key)


def comparators(base):
    def by_length(a, b):
        left, right = (len(a), a), (len(b), b)
        return (left > right) - (left < right)

    path = base + "/comparators"
    order = dict(comparator=by_length, comparator_name=b"ByLength")
    with closing_db(path, create_if_missing=True, **order) as db:
        for number in (5, 50, 6, 500, 60, 1):
            db.put(b"%d" % number, b"")
        in_order = [b"1", b"5", b"6", b"50", b"60", b"500"]
        equal(list(db.iterator(include_value=False)), in_order)
        db.compact_range()
        equal(list(db.iterator(include_value=False, reverse=True)), in_order[::-1])
        equal(list(db.iterator(start=b"6", stop=b"60", include_value=False)), [b"6", b"50"])
    raises(plyvel.Error, plyvel.DB, path)
    other = dict(comparator=by_length, comparator_name=b"Other")
    raises(plyvel.Error, plyvel.DB, path, **other)
    with closing_db(path, **order) as db:
        equal(db.get(b"500"), b"")


def managing(base):
    path = base + "/managing"
    with closing_db(path, create_if_missing=True) as db:
        fill(db)
    plyvel.repair_db(path)
    with closing_db(path) as db:
        equal(list(db), pairs(*range(100)))
    plyvel.repair_db(path, paranoid_checks=True, write_buffer_size=1 << 20)
    plyvel.destroy_db(path)
    raises(plyvel.Error, plyvel.DB, path)
    plyvel.destroy_db(path)
    for error in (plyvel.CorruptionError, plyvel.IOError, plyvel.IteratorInvalidError):
        check(issubclass(error, plyvel.Error), error)


def library():
    """The file of the library that is in use."""
    with open("/proc/self/maps") as maps:
        return {os.path.realpath(line.split()[-1]) for line in maps if "libleveldb" in line}


def main(base):
    equal(plyvel.__version__, "1.5.0")
    check(plyvel.__leveldb_version__, "a version of LevelDB")
    equal(struct.calcsize("P"), 8)
    opening(base)
    with closing_db(base + "/db", create_if_missing=True) as db:
        entries(db)
        batches(db)
        fill(db)
        iterators(db)
        raw_iterators(db)
        snapshots(db)
        prefixed(db)
        maintenance(db)
        threads(db)
    comparators(base)
    managing(base)
    print("on", *library())
    print(f"{checks} checks, {failures} failed")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
