"""Threads, forks, the interpreter's lock, and what is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref

import pytest

import esker


def in_threads(count, work):
    """Runs ``work(number)`` on several threads that begin together; raises what any raised."""
    barrier, errors = threading.Barrier(count), []

    def run(number):
        try:
            barrier.wait()
            work(number)
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_many_threads_on_one_database(db):
    def work(number):
        for step in range(300):
            key = b"%d/%d" % (number, step)
            db.put(key, key * 3)
            assert db.get(key) == key * 3
            if step % 50 == 0:
                with db.write_batch() as batch:
                    batch.put(key + b"+", b"")
                assert db.multi_get([key, key + b"+"]) == [key * 3, b""]
                assert len(list(db.iterator(prefix=b"%d/" % number))) >= step

    in_threads(8, work)
    assert len(db.keyspace("default")) == 8 * 306


def test_one_iterator_for_many_threads(db):
    keys = [b"%05d" % number for number in range(2000)]
    with db.write_batch() as batch:
        for key in keys:
            batch.put(key, b"")
    iterator, parts = db.iterator(include_value=False), [[] for _ in range(4)]
    in_threads(4, lambda number: parts[number].extend(iterator))
    assert sorted(sum(parts, [])) == keys
    assert all(part == sorted(part) for part in parts)


def test_one_batch_for_many_threads(db):
    batch = db.write_batch()

    def work(number):
        for step in range(200):
            batch.put(b"%d/%d" % (number, step), b"")

    in_threads(4, work)
    batch.write()
    assert len(batch) == len(list(db)) == 800


def test_closing_while_others_work(path):
    for _ in range(10):
        db = esker.DB(path, create_if_missing=True, memory=16 << 20)
        started = threading.Barrier(4)

        def work(db=db, started=started):
            started.wait()
            try:
                while True:
                    db.put(b"k", b"v")
                    db.get(b"k")
                    list(db)
                    db.snapshot().get(b"k")
            except esker.ClosedError:
                pass

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        started.wait()
        db.close()
        for thread in threads:
            thread.join()


CALLS = {
    "get": lambda db, _: db.get(b"b"),
    "put": lambda db, _: db.put(b"b", b""),
    "delete": lambda db, _: db.delete(b"b"),
    "batch": lambda db, batch: batch.write(),
    "multi_get": lambda db, _: db.multi_get([b"b"]),
    "contains": lambda db, _: b"b" in db,
    "iterator": lambda db, _: list(db.iterator(start=b"a")),
    "raw_iterator": lambda db, _: db.raw_iterator().seek(b"b"),
    "flush": lambda db, _: (db.put(b"c", b""), db.flush()),
    "compact": lambda db, _: db.compact_range(),
    "sizes": lambda db, _: db.approximate_size(b"a", b"z"),
    "compare_and_set": lambda db, _: db.compare_and_set(b"b", b"other", b""),
    "insert_if_absent": lambda db, _: db.insert_if_absent(b"b", b""),
    "update_with": lambda db, _: db.update_with(b"b", lambda value: b""),
    "transaction": lambda db, _: db.transaction().put(b"b", b"", ttl=60),
    "arrow": lambda db, _: __import__("pyarrow").table(db.arrow(start=b"a")),
}


@pytest.fixture
def no_forced_switches():
    """The interpreter's lock changes hands only where a thread lets go of it by itself."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10_000)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("name", CALLS)
def test_other_threads_go_on_during_a_call(db, no_forced_switches, name):
    """A call is repeated until another thread has got on. Nothing else in the loop lets go of the
    lock, and nobody is forced to, so if the call did not either, the other thread would stand."""
    for key in (b"a", b"b", b"d"):
        db.put(key, b"")
    batch = db.write_batch()
    batch.put(b"b", b"")
    steps, ended = [0], [False]
    started = threading.Event()

    def other():
        started.set()
        while not ended[0]:
            steps[0] += 1
            time.sleep(0)

    call = CALLS[name]
    call(db, batch)
    thread = threading.Thread(target=other)
    thread.start()
    started.wait()
    before = steps[0]
    for _ in range(1_000_000):
        call(db, batch)
        if steps[0] != before:
            break
    after = steps[0]
    ended[0] = True
    thread.join()
    assert after != before


def test_a_get_in_memory_keeps_the_interpreters_lock(db, no_forced_switches):
    """Threads that hand the lock to each other at each get would do less together than one alone."""
    keys = [b"%05d" % number for number in range(500)]
    with db.write_batch() as batch:
        for number, key in enumerate(keys):
            batch.put(key, key * (number % 100))
    db.flush()
    assert [db.get(key) for key in keys] == [key * (n % 100) for n, key in enumerate(keys)]
    turns, ended = [0], [False]

    def other():
        while not ended[0]:
            turns[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=other)
    thread.start()
    while turns[0] == 0:
        time.sleep(0)
    before = turns[0]
    for _ in range(10):
        for key in keys:
            db.get(key)
        db.get(b"absent")
    during = turns[0] - before
    ended[0] = True
    thread.join()
    # One call in 128 is timed, and lets it go.
    assert during <= 10 * len(keys) / 64


def test_nothing_that_python_does_itself_counts_as_letting_go(no_forced_switches):
    """The test of the test: the same loop without a call of the database."""
    steps, ended = [0], [False]
    started = threading.Event()

    def other():
        started.set()
        while not ended[0]:
            steps[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=other)
    thread.start()
    started.wait()
    before = steps[0]
    for _ in range(1_000_000):
        b"".join((b"a", b"b"))
        if steps[0] != before:
            break
    after = steps[0]
    ended[0] = True
    thread.join()
    assert after == before


def test_threads_of_the_engine_call_python_while_their_caller_waits(path):
    """A flush waits for a worker, which needs the comparator, which needs the lock."""

    def compare(a, b):
        return (a > b) - (a < b)

    with esker.DB(
        path, create_if_missing=True, comparator=compare, comparator_name=b"c", memory=16 << 20
    ) as db:
        for round in range(3):
            for number in range(300):
                db.put(b"%d" % number, b"%d" % round)
            db.flush()
        db.compact_range()
        assert len(list(db)) == 300


def test_the_interpreter_goes_on_while_the_engine_waits(db):
    """A transaction waits in the engine for the lock of another, which this thread could not give
    back if the engine held the interpreter's lock meanwhile."""
    holder = db.transaction(pessimistic=True)
    holder.put(b"k", b"held")
    waits = threading.Event()

    def wait():
        waiter = db.transaction(pessimistic=True, lock_timeout=3600)
        waits.set()
        waiter.put(b"k", b"waited")
        waiter.commit()

    thread = threading.Thread(target=wait)
    thread.start()
    waits.wait()
    assert thread.is_alive()
    holder.commit()
    thread.join()
    assert db.get(b"k") == b"waited"


def test_a_forked_child_is_refused_and_its_parent_goes_on(db):
    db.put(b"k", b"v")
    db.put(b"long", b"v" * 500)
    db.flush()
    iterator, snapshot, batch = db.iterator(), db.snapshot(), db.write_batch()
    view = db.get_buffer(b"long")
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Newer interpreters warn of forks in programs with threads, which is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        answers = []
        for call in (
            lambda: db.get(b"k"),
            lambda: db.get_buffer(b"k"),
            lambda: db.put(b"k", b"w"),
            lambda: next(iterator),
            lambda: snapshot.get(b"k"),
            lambda: batch.put(b"k", b"w"),
            lambda: list(db),
            db.stats,
            db.close,
        ):
            try:
                call()
                answers.append("nothing")
            except BaseException as error:  # noqa: BLE001 - it is told to the parent
                answers.append(type(error).__name__)
        answers.append(str(view == b"v" * 500))
        del iterator, snapshot, batch, view
        os.write(write, ",".join(answers).encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        answers = pipe.read().split(",")
    assert os.waitpid(child, 0)[1] == 0
    assert answers == ["ForkedError"] * 9 + ["True"]
    assert db.get(b"k") == b"v" and next(iterator) == (b"k", b"v")


def test_a_spawned_process_is_told_that_it_is_locked(db, path):
    program = "import esker, sys\ntry: esker.DB(sys.argv[1])\nexcept esker.LockedError: print('locked')"
    answer = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "locked\n"


def test_what_is_open_at_exit_is_closed(path):
    program = (
        "import esker, sys\n"
        "db = esker.DB(sys.argv[1], create_if_missing=True, durability='buffered',\n"
        "    comparator=lambda a, b: (a > b) - (a < b), comparator_name=b'c')\n"
        "for number in range(1000): db.put(b'%d' % number, b'')\n"
        "iterator = db.iterator(); next(iterator)\n"
        "snapshot = db.snapshot()\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(path)], check=True)
    with esker.DB(
        path, comparator=lambda a, b: (a > b) - (a < b), comparator_name=b"c"
    ) as db:
        assert len(list(db)) == 1000


def test_the_last_object_closes_the_database(path):
    db = esker.DB(path, create_if_missing=True)
    db.put(b"k", b"v")
    iterator = db.iterator()
    keyspace = db.keyspace("other")
    del db
    gc.collect()
    with pytest.raises(esker.LockedError):
        esker.DB(path)
    del keyspace
    assert next(iterator) == (b"k", b"v")
    with pytest.raises(esker.LockedError):
        esker.DB(path)
    del iterator
    gc.collect()
    esker.DB(path).close()


def test_nothing_keeps_what_it_was_given(db):
    def compare(a, b):
        return (a > b) - (a < b)

    keyspace = db.keyspace("ordered by us", comparator=compare, comparator_name=b"c")
    keyspace[b"k"] = b"v"
    default, key, value = object(), bytes(1000) + b"key", bytes(1000) + b"value"
    counted = [sys.getrefcount(each) for each in (default, key, value, compare)]
    for _ in range(1000):
        assert db.get(b"nothing", default) is default
        db.put(key, value)
        db.get(key)
        db.multi_get([key, key])
        iterator = db.iterator(start=key, stop=key, prefix=None)
        list(iterator)
        iterator.seek(key)
        batch = db.write_batch()
        batch.put(key, value)
        keyspace.get(key)
        with pytest.raises(KeyError):
            keyspace[key]
    del iterator, batch
    gc.collect()
    assert [sys.getrefcount(each) for each in (default, key, value, compare)] == counted


def test_repeated_use_takes_no_more_memory(db):
    """Blocks that Python allocated, and memory of the process: after a warm-up they stay."""

    def work():
        for number in range(2000):
            key = b"%04d" % (number % 100)
            db.put(key, b"v" * 100)
            assert db.get(key) is not None
            db.get(b"none")
        for _ in range(100):
            assert len(list(db)) == 100
            with db.snapshot() as snapshot:
                list(snapshot.iterator(reverse=True))
            with db.write_batch() as batch:
                batch.put(b"0000", b"")
            with pytest.raises(TypeError):
                db.put(b"k", 7)
            with pytest.raises(esker.KeyTooLongError):
                db.put(bytes(70_000), b"")
        gc.collect()

    work()
    work()
    before = sys.getallocatedblocks()
    for _ in range(3):
        work()
    assert sys.getallocatedblocks() - before < 500


def test_a_database_object_goes_with_its_last_reference(path):
    class Watched(dict):
        pass

    def compare(a, b):
        return (a > b) - (a < b)

    watched = weakref.ref(compare)
    db = esker.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"c")
    del compare
    gc.collect()
    assert watched() is not None
    db.put(b"k", b"v")
    db.close()
    del db
    gc.collect()
    assert watched() is None


def test_in_a_pool_of_processes(path):
    """With the method `spawn`, each child opens its own database."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        assert pool.map(_open_and_count, [str(path) + "-1", str(path) + "-2"]) == [1, 1]


def _open_and_count(path):
    with esker.DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        return len(list(db))
