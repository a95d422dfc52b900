"""The asyncio face."""

from __future__ import annotations

import asyncio

import pytest

import esker
from esker import aio


def run(program):
    """Runs a program in a new event loop, where forgotten tasks and slow callbacks are shown."""
    return asyncio.run(program, debug=True)


def opened(path):
    return aio.open(path, create_if_missing=True, memory=32 << 20)


def test_calls(path):
    async def program():
        async with opened(path) as db:
            await db.put(b"a", b"1", sync=True)
            await db.put(b"b", b"2")
            assert await db.get(b"a") == b"1"
            assert await db.get(b"x", b"default") == b"default"
            assert await db.contains(b"b") and not await db.contains(b"x")
            assert await db.multi_get(key for key in (b"b", b"x")) == [b"2", None]
            await db.delete(b"a")
            fruit = await db.keyspace("fruit")
            assert fruit.name == "fruit"
            await fruit.put(b"pear", b"green")
            async with db.snapshot() as snapshot:
                await fruit.delete_prefix(b"a")
                await fruit.delete_range()
                await fruit.clear()
                then = await snapshot.keyspace("fruit")
                assert [entry async for entry in then] == [(b"pear", b"green")]
                assert [entry async for entry in fruit] == []
            assert await db.keyspaces() == ["default", "fruit"]
            assert await db.drop_keyspace("fruit")
            await db.flush()
            await db.sync()
            await db.compact_range()
            assert (await db.stats())["puts"] == 3
            assert (await db.verify())["problems"] == []
        assert db.closed
        await db.close()
        for call in (db.get(b"a"), db.put(b"a", b""), db.snapshot(), db.keyspaces()):
            with pytest.raises(esker.ClosedError):
                await call
        with pytest.raises(esker.ClosedError):
            db.iterator()

    run(program())
    with esker.DB(path) as db:
        assert list(db) == [(b"b", b"2")]


def test_batches(path):
    async def program():
        async with opened(path) as db:
            fruit = await db.keyspace("fruit")
            await fruit.put(b"plum", b"blue")
            async with db.write_batch() as batch:
                batch.put(b"a", b"1")
                batch.put(b"pear", b"green", keyspace=fruit)
                batch.delete(b"b")
                batch.delete_prefix(b"pl", keyspace=fruit)
                assert len(batch) == 4
            with pytest.raises(ZeroDivisionError):
                async with db.write_batch(transaction=True) as batch:
                    batch.put(b"b", b"2")
                    batch.delete_range(b"a", b"b")
                    1 / 0
            assert [entry async for entry in db] == [(b"a", b"1")]
            assert [entry async for entry in fruit] == [(b"pear", b"green")]

    run(program())


def test_transactions(path):
    async def program():
        async with opened(path) as db:
            fruit = await db.keyspace("fruit")
            async with db.transaction() as tx:
                await tx.put(b"a", b"1")
                await tx.put(b"pear", b"green", keyspace=fruit)
                await tx.delete(b"b")
                assert await tx.get(b"a") == b"1" and await db.get(b"a") is None
                assert await tx.entries(keyspace=fruit) == [(b"pear", b"green")]
            with pytest.raises(ZeroDivisionError):
                async with db.transaction() as tx:
                    await tx.put(b"a", b"2")
                    1 / 0
            with pytest.raises(esker.ConflictError):
                async with db.transaction() as tx:
                    await tx.get(b"a")
                    await db.put(b"a", b"3")
                    await tx.put(b"a", b"4")
            assert await db.get(b"a") == b"3"
            assert await db.transact(lambda tx: tx.get(b"a")) == b"3"

            tries = 0

            async def work(tx):
                nonlocal tries
                tries += 1
                before = await tx.get(b"a")
                if tries < 3:
                    await db.put(b"a", b"%d" % tries)
                await tx.put(b"a", before + b"!")
                return before

            assert await db.transact(work) == b"2"
            assert (tries, await db.get(b"a")) == (3, b"2!")
            with pytest.raises(TypeError, match="awaitable"):
                await db.transact(lambda tx: work(tx))
            await db.put(b"a", b"3")

            async def fails(tx):
                await tx.put(b"a", b"lost")
                1 / 0

            with pytest.raises(ZeroDivisionError):
                await db.transact(fails)
            assert await db.get(b"a") == b"3"
            await db.checkpoint(str(path) + "-copy")
            trial = await db.branch("trial")
            await trial.put(b"a", b"5")
            assert (await db.get(b"a"), await trial.get(b"a")) == (b"3", b"5")
            assert await (await db.open_branch("trial")).get(b"a") == b"5"
            assert await db.branches() == ["trial"] and await db.drop_branch("trial")
            counters = await db.keyspace("counters", merge_operator="esker.max")
            await counters.merge(b"k", b"2")
            async with counters.write_batch() as batch:
                batch.merge(b"k", b"1")
                batch.put(b"gone", b"", ttl=0)
            assert [entry async for entry in counters] == [(b"k", b"2")]

    run(program())


def test_iterators_move_both_ways(path):
    async def program():
        async with opened(path) as db:
            keys = [b"%04d" % number for number in range(5000)]
            async with db.write_batch() as batch:
                for key in keys:
                    batch.put(key, b"")
            assert [key async for key in db.iterator(include_value=False)] == keys
            async with db.iterator(include_value=False, start=b"1000") as iterator:
                seen = [await anext(iterator) for _ in range(30)]
                assert seen == keys[1000:1030]
                assert await iterator.prev() == b"1029"
                assert await iterator.prev() == b"1028"
                assert await anext(iterator) == b"1028"
                await iterator.seek(b"4000")
                assert await anext(iterator) == b"4000"
                await iterator.seek_to_stop()
                with pytest.raises(StopAsyncIteration):
                    await anext(iterator)
                assert await iterator.prev() == b"4999"
                await iterator.seek_to_start()
                with pytest.raises(StopAsyncIteration):
                    await iterator.prev()
            with pytest.raises(esker.ClosedError):
                await anext(iterator)

    run(program())


def test_an_iterator_shows_the_moment_it_was_made(path):
    async def program():
        async with opened(path) as db:
            await db.put(b"a", b"1")
            iterator = db.iterator()
            await db.put(b"b", b"2")
            assert [entry async for entry in iterator] == [(b"a", b"1")]

    run(program())


def test_many_tasks_at_once(path):
    async def program():
        async with opened(path) as db:

            async def work(number):
                for step in range(20):
                    await db.put(b"%d/%d" % (number, step), b"%d" % step)
                return [await db.get(b"%d/%d" % (number, step)) for step in range(20)]

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work(number)) for number in range(20)]
            expected = [b"%d" % step for step in range(20)]
            assert all(task.result() == expected for task in tasks)

    run(program())


def test_the_loop_goes_on_while_a_call_runs(path):
    """A comparator holds the engine's call until the loop has set an event: if the call ran on the
    loop's own thread, that would never happen."""
    import threading

    async def program():
        entered, leave = threading.Event(), threading.Event()

        def compare(a, b):
            entered.set()
            leave.wait()
            return (a > b) - (a < b)

        db = await aio.open(
            path, create_if_missing=True, comparator=compare, comparator_name=b"slow"
        )
        async with db:
            await db.put(b"a", b"1")
            pending = asyncio.create_task(db.put(b"b", b"2"))
            while not entered.is_set():
                await asyncio.sleep(0)
            assert not pending.done()
            leave.set()
            await pending

    run(program())


def test_an_error_in_open_leaves_nothing_behind(path):
    async def program():
        with pytest.raises(esker.MissingError):
            await aio.open(path)

    run(program())


def test_a_cancelled_call_leaves_the_database_usable(path):
    async def program():
        async with opened(path) as db:
            task = asyncio.create_task(db.put(b"k", b"v"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await db.put(b"l", b"w")
            assert await db.get(b"l") == b"w"

    run(program())


def test_conditional_writes_and_transactions(path):
    async def program():
        async with opened(path) as db:
            assert await db.insert_if_absent(b"k", b"1")
            assert not await db.compare_and_set(b"k", b"2", b"3")
            assert await db.update_with(b"k", lambda value: value + b"!") == b"1!"
            most = await db.keyspace("most", merge_operator="esker.max")
            async with db.transaction(pessimistic=True) as tx:
                assert await tx.get_for_update(b"k") == b"1!"
                assert await tx.get_for_share(b"none", b"d") == b"d"
                await tx.put(b"gone", b"v", ttl=0)
                await tx.merge(b"a", b"5", keyspace=most)
                await tx.merge(b"a", b"3", keyspace=most)
            assert await most.get(b"a") == b"5"
            assert await db.get(b"gone") is None

    run(program())


def test_what_is_opened_can_be_awaited_or_be_a_block(path):
    async def program():
        db = await aio.open(path, create_if_missing=True)
        task = asyncio.create_task(db.snapshot())
        snapshot = await task
        await db.put(b"k", b"v")
        assert await snapshot.get(b"k") is None
        await snapshot.release()
        transaction = await db.transaction()
        await transaction.put(b"k", b"w")
        await transaction.rollback()
        async with db:
            assert await db.get(b"k") == b"v"
        assert db.closed
        with pytest.raises(esker.MissingError):
            async with aio.open(str(path) + "-none"):
                pass

    run(program())


def test_all_that_is_opened_has_one_form(path):
    async def program():
        async with opened(path) as db:
            async with db.keyspace("space", ttl=60) as space:
                assert space.ttl == 60
                await space.put(b"k", b"old")
            # A keyspace has nothing to close.
            assert await space.get(b"k") == b"old"
            await db.snapshot_named("monday")
            async with db.snapshot() as snapshot, snapshot.keyspace("space") as then:
                await space.put(b"k", b"new")
                assert await then.get(b"k") == b"old"
            for closed in (snapshot, then):
                with pytest.raises(esker.ClosedError):
                    await closed.get(b"k")
            async with db.branch("trial") as trial, trial.keyspace("space") as there:
                await there.put(b"k", b"tried")
            async with db.open_branch("trial") as trial:
                assert await (await trial.keyspace("space")).get(b"k") == b"tried"
            async with db.open_named_snapshot("monday") as monday:
                assert await (await monday.keyspace("space")).get(b"k") == b"old"
            # The ends of these blocks leave the database open, and what lives in it.
            assert not db.closed and await space.get(b"k") == b"new"
            assert trial.branch_name == "trial" and await trial.get(b"k") is None
            for missing in (db.open_branch("none"), db.open_named_snapshot("none")):
                with pytest.raises(esker.BranchMissingError):
                    async with missing:
                        pass
            # A task can be made of each, too.
            tasks = [asyncio.create_task(call) for call in (
                db.keyspace("space"), db.open_branch("trial"), db.open_value(b"k"),
            )]
            assert [type(task) for task in await asyncio.gather(*tasks)] == [
                aio.Keyspace, aio.DB, type(None)
            ]
            # ``close`` of a branch closes all.
            await trial.close()
            assert db.closed

    run(program())


def test_iterators_of_transactions(path):
    async def program():
        async with opened(path) as db:
            keys = [b"%04d" % number for number in range(3000)]
            space = await db.keyspace("space")
            await space.update((key, b"") for key in keys)
            async with db.transaction() as tx:
                await tx.put(b"0000x", b"own", keyspace=space)
                iterator = tx.iterator(keyspace=space, include_value=False)
                await tx.put(b"0000y", b"later", keyspace=space)
                seen = [key async for key in iterator]
                assert seen == [keys[0], b"0000x", *keys[1:]]
                async with tx.iterator(keyspace=space, start=b"2", reverse=True) as iterator:
                    assert await anext(iterator) == (b"2999", b"")
                    assert await anext(iterator) == (b"2998", b"")
                with pytest.raises(esker.ClosedError):
                    await anext(iterator)
                with pytest.raises(TypeError):
                    tx.iterator(beginning=b"k")
                await tx.put(b"k", b"v")
                assert [entry async for entry in tx] == [(b"k", b"v")]
                assert await tx.entries() == [(b"k", b"v")]
            with pytest.raises(esker.ClosedError):
                tx.iterator()
            # What was fetched was read: a write there is a conflict.
            with pytest.raises(esker.ConflictError):
                async with db.transaction() as tx:
                    assert (await anext(tx.iterator(keyspace=space)))[0] == keys[0]
                    await space.put(keys[5], b"of another")
                    await tx.put(b"k", b"w")
            # What was not, was not.
            async with db.transaction() as tx:
                assert (await anext(tx.iterator(keyspace=space)))[0] == keys[0]
                await space.put(keys[2000], b"of another")
                await tx.put(b"k", b"w")
            assert await db.get(b"k") == b"w"

    run(program())


def test_a_keyspace_has_the_calls_of_a_mapping(path):
    async def program():
        async with opened(path) as db:
            space = await db.keyspace("space")
            await space.update({b"a": b"1", b"b": b"2"})
            await space.update([(b"c", b"3")])
            assert [key async for key in space.keys()] == [b"a", b"b", b"c"]
            assert [value async for value in space.values()] == [b"1", b"2", b"3"]
            assert [entry async for entry in space.items()] == [
                (b"a", b"1"), (b"b", b"2"), (b"c", b"3"),
            ]
            assert await space.pop(b"b") == b"2" and await space.pop(b"b", None) is None
            with pytest.raises(KeyError):
                await space.pop(b"b")
            assert await space.setdefault(b"a", b"9") == b"1"
            assert await space.setdefault(b"d", b"4") == b"4"
            assert await space.popitem() == (b"a", b"1")
            await space.clear()
            assert await space.length() == 0
            with pytest.raises(KeyError):
                await space.popitem()

    run(program())


def test_values_in_pieces_ingestions_and_the_rest(path):
    import io

    async def program():
        async with opened(path) as db:
            content = bytes(range(256)) * 10_000
            assert await db.put_from(b"film", io.BytesIO(content)) == len(content)
            async with db.open_value(b"film") as value:
                assert await value.read(3) == b"\x00\x01\x02"
                await value.seek(-2, 2)
                assert await value.read() == b"\xfe\xff"
            with pytest.raises(ValueError, match="closed"):
                await value.read()
            async with db.open_value(b"none") as value:
                assert value is None
            assert await db.open_value(b"none") is None
            assert await db.get_buffer(b"film") == content
            cities = await db.keyspace("cities")
            async with db.ingestion() as ingestion:
                await ingestion.put(b"Bergen", b"Norway", keyspace=cities)
                pairs = [(b"Porto", b"Portugal"), (b"Turin", b"Italy")]
                assert await ingestion.put_many(pairs, keyspace=cities) == 2
            assert await cities.length() == 3
            with pytest.raises(ZeroDivisionError):
                async with db.ingestion() as ingestion:
                    await ingestion.put(b"Ulm", b"Germany", keyspace=cities)
                    1 / 0
            assert not await cities.contains(b"Ulm")
            part = db.prefixed_db(b"a:")
            await part.put(b"1", b"")
            assert await db.contains(b"a:1") and part.prefix == b"a:"
            await part.clear()
            assert not await db.contains(b"a:1")
            async with db.transaction() as tx:
                await tx.put(b"x", b"1")
                point = await tx.savepoint()
                await tx.delete_range(b"x", b"y")
                assert not await tx.contains(b"x")
                await tx.rollback_to(point)
                await tx.delete_prefix(b"x")
                assert not await tx.contains(b"x")
                await tx.rollback_to(point)
                assert await tx.multi_get([b"x", b"y"]) == [b"1", None]
            await db.snapshot_named("monday")
            assert await db.named_snapshots() == ["monday"]
            monday = await db.open_named_snapshot("monday")
            await db.delete(b"x")
            assert await monday.get(b"x") == b"1" and monday.branch_name == "monday"
            assert await db.drop_named_snapshot("monday")
            await cities.set_ttl(60)
            assert cities.ttl == 60 and cities.merge_operator is None
            await db.wait_until_idle()
            assert await db.approximate_size(b"a", b"z") > 0

    run(program())


def test_nothing_of_the_plain_interface_is_missing():
    """What blocks by its nature, or has another form here, is listed."""
    other_forms = {
        # Read by libraries that block, from the object itself (``real``).
        "arrow", "raw_iterator",
        # Properties of the object itself.
        "db", "name", "id",
        # A part of how iterators here work.
        "fetch",
        # Here it is ``contains`` and ``length``.
        "__contains__", "__len__",
    }
    pairs = [
        (esker.DB, aio.DB), (esker.Snapshot, aio.Snapshot), (esker.WriteBatch, aio.WriteBatch),
        (esker.Transaction, aio.Transaction), (esker.Ingestion, aio.Ingestion),
        (esker.PrefixedDB, aio.PrefixedDB), (esker.Keyspace, aio.Keyspace),
        (esker.Iterator, aio.Iterator), (esker.TransactionIterator, aio.TransactionIterator),
    ]
    for plain, here in pairs:
        names = {name for name in dir(plain) if not name.startswith("_")}
        assert names - other_forms <= set(dir(here)), (plain, names - other_forms - set(dir(here)))
