"""Measures ``get`` and ``put`` beside plyvel on stock LevelDB, in one process.

The two take turns on the same keys, in pairs, so that whatever else the machine does meets both;
which one begins a pair changes every time. Reported are the medians over the pairs and their ratio.
Each round of puts writes to a new database; gets read, in random order, from one that was filled
and flushed before.

    python bindings/python/bench.py [--num 200000] [--pairs 7] [--json]

It needs plyvel, whose wheel from the package index brings LevelDB with it.

With ``--threads`` it measures how gets of several threads add up instead, in Esker and in a ``dict``
with the same keys, in turns:

    python bindings/python/bench.py --threads 1,2,8 [--num 200000] [--pairs 7] [--json]

Every thread gets every key once, in an order of its own, from memory. ``dict.get`` waits for nothing
but the interpreter's lock, so its figures say what the interpreter itself leaves of several threads.
A ratio is the rate of all threads together to the rate of one thread in the same round.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plyvel

import esker


def timed(work: Callable[[Any, Any], None], db: Any, keys: Any) -> float:
    """Operations a second of one round."""
    gc.collect()
    gc.disable()
    begin = time.perf_counter()
    work(db, keys)
    seconds = time.perf_counter() - begin
    gc.enable()
    return len(keys) / seconds


def put_all(db: Any, pairs: list[tuple[bytes, bytes]]) -> None:
    put = db.put
    for key, value in pairs:
        put(key, value)


def get_all(db: Any, keys: list[bytes]) -> None:
    get = db.get
    for key in keys:
        if get(key) is None:
            raise AssertionError(f"{key!r} is missing")


def batch_all(db: Any, pairs: list[tuple[bytes, bytes]]) -> None:
    for begin in range(0, len(pairs), 1000):
        with db.write_batch() as batch:
            put = batch.put
            for key, value in pairs[begin : begin + 1000]:
                put(key, value)


def scan_all(db: Any, keys: list[bytes]) -> None:
    if sum(1 for _ in db.iterator()) < len(keys):
        raise AssertionError("entries are missing")


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """The rates of every round, by workload and engine."""
    chance = random.Random(arguments.seed)
    keys = [b"%016d" % number for number in range(arguments.num)]
    value = chance.randbytes(arguments.value_bytes)
    shuffled = chance.sample(keys, len(keys))
    pairs = [(key, value) for key in shuffled]
    engines = {"esker": esker.DB, "plyvel": plyvel.DB}
    rates: dict[str, dict[str, list[float]]] = {
        workload: {name: [] for name in engines} for workload in ("put", "batch", "get", "scan")
    }
    root = Path(tempfile.mkdtemp(prefix="esker-bench-", dir=arguments.directory))
    try:
        full = {}
        for name, kind in engines.items():
            full[name] = kind(str(root / f"full-{name}"), create_if_missing=True)
            batch_all(full[name], pairs)
            full[name].compact_range()
            get_all(full[name], keys)
        for round in range(arguments.pairs):
            order = list(engines) if round % 2 == 0 else list(reversed(engines))
            for workload, work in (("put", put_all), ("batch", batch_all)):
                for name in order:
                    path = str(root / f"{workload}-{name}-{round}")
                    db = engines[name](path, create_if_missing=True)
                    rates[workload][name].append(timed(work, db, pairs))
                    db.close()
                    shutil.rmtree(path)
            for workload, work, given in (("get", get_all, shuffled), ("scan", scan_all, keys)):
                for name in order:
                    rates[workload][name].append(timed(work, full[name], given))
        for db in full.values():
            db.close()
    finally:
        shutil.rmtree(root)
    return rates


def report(arguments: argparse.Namespace, rates: dict[str, Any]) -> dict[str, Any]:
    """Medians, spreads and ratios."""
    figures = {}
    for workload, of in rates.items():
        median = {name: statistics.median(each) for name, each in of.items()}
        ratios = [mine / theirs for mine, theirs in zip(of["esker"], of["plyvel"], strict=True)]
        figures[workload] = {
            "esker": median["esker"],
            "plyvel": median["plyvel"],
            "ratio": median["esker"] / median["plyvel"],
            "pair_ratios": [min(ratios), statistics.median(ratios), max(ratios)],
        }
    return {
        "esker": esker.__version__,
        "plyvel": plyvel.__version__,
        "leveldb": plyvel.__leveldb_version__,
        "python": platform.python_version(),
        "num": arguments.num,
        "value_bytes": arguments.value_bytes,
        "pairs": arguments.pairs,
        "seed": arguments.seed,
        "ops_per_second": figures,
    }


def together(store: Any, orders: list[list[bytes]]) -> float:
    """Gets a second of threads that begin together, each with its own order of the keys."""
    barrier = threading.Barrier(len(orders))
    spans: list[tuple[float, float]] = []

    def work(keys: list[bytes]) -> None:
        barrier.wait()
        begin = time.perf_counter()
        get_all(store, keys)
        spans.append((begin, time.perf_counter()))

    threads = [threading.Thread(target=work, args=(keys,)) for keys in orders]
    gc.collect()
    gc.disable()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.enable()
    if len(spans) < len(orders):
        raise AssertionError("a thread failed")
    seconds = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return sum(map(len, orders)) / seconds


def measure_threads(arguments: argparse.Namespace) -> dict[str, dict[int, list[float]]]:
    """The gets a second of every round, by store and number of threads."""
    chance = random.Random(arguments.seed)
    keys = [b"%016d" % number for number in range(arguments.num)]
    value = chance.randbytes(arguments.value_bytes)
    orders = [chance.sample(keys, len(keys)) for _ in range(max(arguments.threads))]
    rates: dict[str, dict[int, list[float]]] = {
        name: {count: [] for count in arguments.threads} for name in ("esker", "dict")
    }
    root = tempfile.mkdtemp(prefix="esker-bench-", dir=arguments.directory)
    try:
        with esker.DB(f"{root}/db", create_if_missing=True) as db:
            batch_all(db, [(key, value) for key in keys])
            db.compact_range()
            get_all(db, keys)
            stores = {"esker": db, "dict": dict.fromkeys(keys, value)}
            for round in range(arguments.pairs):
                for count in arguments.threads:
                    order = list(stores) if round % 2 == 0 else list(reversed(stores))
                    for name in order:
                        rates[name][count].append(together(stores[name], orders[:count]))
    finally:
        shutil.rmtree(root)
    return rates


def report_threads(
    arguments: argparse.Namespace, rates: dict[str, dict[int, list[float]]]
) -> dict[str, Any]:
    """Medians, and ratios to one thread: lowest, median and highest of the rounds."""
    figures: dict[int, dict[str, Any]] = {count: {} for count in arguments.threads}
    for name, of in rates.items():
        for count, each in of.items():
            ratios = [many / one for many, one in zip(each, of[1], strict=True)]
            figures[count][name] = statistics.median(each)
            figures[count][f"{name}_ratios"] = [
                min(ratios), statistics.median(ratios), max(ratios)
            ]
    return {
        "esker": esker.__version__,
        "python": platform.python_version(),
        "num": arguments.num,
        "value_bytes": arguments.value_bytes,
        "rounds": arguments.pairs,
        "seed": arguments.seed,
        "gets_per_second_by_threads": figures,
    }


def print_threads(result: dict[str, Any]) -> None:
    """The table of a report."""
    print(
        f"gets a second of all threads together, esker {result['esker']}, "
        f"Python {result['python']}; {result['num']} keys, {result['rounds']} rounds"
    )
    heads = "".join(f"{name:>14}   to one (low, median, high)" for name in ("esker", "dict"))
    print(f"{'threads':8}{heads}")
    for count, figure in result["gets_per_second_by_threads"].items():
        line = f"{count:<8}"
        for name in ("esker", "dict"):
            low, middle, high = figure[f"{name}_ratios"]
            line += f"{figure[name]:>14,.0f}   {f'{low:.2f}, {middle:.2f}, {high:.2f}':<26}"
        print(line.rstrip())


def counts_of_threads(text: str) -> list[int]:
    """The numbers in a list such as ``1,2,8``; 1, to which the others are compared, is always there."""
    counts = {1, *(int(part) for part in text.split(","))}
    if min(counts) < 1:
        raise ValueError(text)
    return sorted(counts)


def main() -> int:
    """Runs the program and returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num", type=int, default=200_000, help="keys of 16 bytes")
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=7, help="rounds of each engine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", help="where the databases are made")
    parser.add_argument(
        "--threads", type=counts_of_threads, help="gets of so many threads, such as 1,2,8"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.num < 1 or arguments.pairs < 1:
        parser.error("--num and --pairs must be at least 1")
    if arguments.threads:
        result = report_threads(arguments, measure_threads(arguments))
        if arguments.json:
            print(json.dumps(result))
        else:
            print_threads(result)
        return 0
    result = report(arguments, measure(arguments))
    if arguments.json:
        print(json.dumps(result))
        return 0
    print(
        f"esker {result['esker']} beside plyvel {result['plyvel']} (LevelDB {result['leveldb']}), "
        f"Python {result['python']}; {result['num']} keys, {result['pairs']} pairs"
    )
    print(f"{'':8}{'esker':>12}{'plyvel':>12}{'ratio':>8}   (lowest, median, highest of the pairs)")
    for workload, figure in result["ops_per_second"].items():
        low, middle, high = figure["pair_ratios"]
        print(
            f"{workload:8}{figure['esker']:>12,.0f}{figure['plyvel']:>12,.0f}"
            f"{figure['ratio']:>8.2f}   ({low:.2f}, {middle:.2f}, {high:.2f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
