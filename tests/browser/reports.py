"""Reports as `esker bench --json` writes them, made for the tests of their page, and the figures that a
page has to show of them, computed a second time from the same JSON.
"""

import json
import math
import random
import statistics

HOSTILE = "<script>document.title='broken'</script>\"'><img src=x onerror=\"document.title='broken'\">"



def read_amplification(step):
    """Device bytes read for a byte that went in or came out."""
    if step.get("mb_per_second") and step.get("device_bytes_read") is not None:
        return step["device_bytes_read"] / (step["mb_per_second"] * 1e6 * step["seconds"])
    return None


# Measures as the page names them: where a round has them, and whether more is better.
MEASURES = {
    "Operations a second": (("ops_per_second",), True),
    "Time taken": (("seconds",), False),
    "Median latency": (("latency", "p50_us"), False),
    "90th percentile of latency": (("latency", "p90_us"), False),
    "99th percentile of latency": (("latency", "p99_us"), False),
    "99.9th percentile of latency": (("latency", "p999_us"), False),
    "99.99th percentile of latency": (("latency", "p9999_us"), False),
    "Longest latency": (("latency", "max_us"), False),
    "Longest pause": (("longest_pause_ms",), False),
    "Lowest rate of a second": (("rate_min",), True),
    "Median rate of a second": (("rate_median",), True),
    "CPU time for an operation": (("cpu_us_per_op",), False),
    "Context switches for an operation": (("context_switches_per_op",), False),
    "Write amplification": (("write_amplification_since_open",), False),
    "Read amplification": (read_amplification, False),
    "Space amplification": (("space_amplification",), False),
    "Size on disk": (("disk_bytes",), False),
    "Peak memory of the process": (("peak_memory_bytes",), False),
}
# Measures that the page shows in megabytes.
MEGABYTES = ("Size on disk", "Peak memory of the process")

SPEEDS = {
    "esker": {"fillseq": 700e3, "overwrite": 300e3, "readrandom": 500e3, "seekrandom": 150e3},
    "rocksdb": {"fillseq": 350e3, "overwrite": 290e3, "readrandom": 900e3, "seekrandom": 90e3},
    "lmdb": {"fillseq": 40e3, "overwrite": 20e3, "readrandom": 1500e3, "seekrandom": 500e3},
    "mem": {"fillseq": 800e3, "overwrite": 900e3, "readrandom": 550e3, "seekrandom": 160e3},
}
LABELS = {"esker": "Esker", "rocksdb": "RocksDB", "lmdb": "LMDB", "mem": "mem"}


def step(chance, name, rate, seconds, **more):
    """One workload of one round."""
    latency = {"samples": 1000, "operations_per_sample": 1, "mean_us": 2e6 / rate}
    curve = []
    for percentile in [0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.999, 99.9999]:
        nines = -math.log10(1 - percentile / 100) if percentile else 0
        curve.append([percentile, 1e6 / rate * (0.6 + nines**3 * chance.uniform(0.8, 1.2))])
    curve.sort(key=lambda point: point[1])
    curve = [[p, v] for (p, _), (_, v) in zip(sorted(curve), curve)]
    at = dict((p, v) for p, v in curve)
    latency.update(p50_us=at[50], p90_us=at[90], p99_us=at[99], p999_us=at[99.9], p9999_us=at[99.99])
    latency["max_us"] = curve[-1][1] * 3
    curve.append([100, latency["max_us"]])
    rates = []
    for second in range(1, seconds + 1):
        # One second stands still, so that the picture has a pause.
        now = 0 if second == seconds // 2 and rate < 100_000 else rate * chance.uniform(0.7, 1.3)
        rates.append({"seconds": second, "operations": second * rate, "ops_per_second": now})
    return {
        "name": name, "maintenance": False, "threads": 1, "seconds": seconds,
        "operations": int(rate * seconds), "ops_per_second": rate, "mb_per_second": rate * 116 / 1e6,
        "cpu_us_per_op": 1.4e6 / rate, "context_switches_per_op": 90 / rate, "latency": latency,
        "latency_curve": curve, "longest_pause_ms": 8e6 / rate, "idle_gap_ms": 1.0, "rates": rates,
        "user_bytes_written": 1000, "device_bytes_read": 0, "disk_bytes": 3_000_000,
        "peak_memory_bytes": 40_000_000, **more,
    }


def report(seed=7, rounds=3, speeds=None, labels=None, faster=None):
    """Four engines, if no others are given; Esker wins, loses and ties among them.

    `faster` says by engine how many times as fast all of it is.
    """
    chance = random.Random(seed)
    speeds, labels, faster = speeds or SPEEDS, labels or LABELS, faster or {}
    runs = []
    for turn in range(rounds):
        for engine, rates in speeds.items():
            workloads = []
            for name, rate in rates.items():
                rate *= faster.get(engine, 1)
                written = {"esker": 1.6, "rocksdb": 2.9, "lmdb": 9.5, "mem": 0}.get(engine, 4)
                space = {"esker": 1.5, "rocksdb": 1.1, "lmdb": 1.9, "mem": None}.get(engine, 1.2)
                workloads.append(step(
                    chance, name, rate * chance.uniform(0.9, 1.1), 40,
                    write_amplification_since_open=written * chance.uniform(0.98, 1.02),
                    space_amplification=space,
                    batched_instead=engine == "lmdb" and name in ("fillseq", "overwrite"),
                ))
            workloads.append({
                "name": "compact", "maintenance": True, "threads": 1, "operations": 1,
                "seconds": chance.uniform(1.9, 2.1) * (2 if engine == "esker" else 1),
                "ops_per_second": 0.5, "latency": None, "rates": [],
            })
            runs.append({
                "engine": engine, "version": f"{labels[engine]} 1.2.3", "round": turn + 1,
                "settings": [["cache", "6319128576 bytes"], ["a setting", "of the engine"]],
                "workloads": workloads, "close_seconds": 0.1,
            })
    return {
        "format": 2, "command": "compare", "complete": True, "stopped": None, "kept": None,
        "rules": ["The order of engines rotates from round to round."],
        "machine": {"cores": 2, "processor": "A processor", "memory": 25276514304,
                    "system": "linux 6.1 x86_64", "debug_build": False},
        "settings": {"engines": list(speeds), "num": 1000000, "key_size": 16, "value_size": 100,
                     "durability": "process", "rounds": rounds, "seed": 42},
        "engines": [{"name": name, "label": labels[name], "kind": name, "version": f"{labels[name]} 1.2.3",
                     "tuning": "default", "note": None} for name in speeds],
        "agreements": [{"round": 1, "step": 3, "workload": "readrandom", "engines": list(speeds),
                        "agree": True}],
        "runs": runs, "comparison": [],
    }


def wide():
    """Eight engines with long names, and workloads with long names."""
    chance = random.Random(11)
    labels = {"esker": "Esker"}
    for number in range(1, 8):
        labels[f"rocksdb-{number}"] = f"RocksDB TransactionDB (RocksDB 10.{number}.1)"
    names = ["fillrandom", "readwhilewriting:16@80%", "seekrandomwhilewriting:128@1250000/s",
             "multireadrandom_with_a_name_that_has_no_place_to_break:64", "deleterandom"]
    speeds = {
        engine: {name: 10 ** chance.uniform(3, 6.5) for name in names} for engine in labels
    }
    return report(seed=12, speeds=speeds, labels=labels)


def alone():
    """One engine."""
    data = report(seed=13, speeds={"esker": SPEEDS["esker"]})
    data["rules"], data["agreements"] = [], []
    return data


def now_and_then():
    """A report and its baseline, of which Esker has become faster and LMDB slower; the system of the
    machine has changed, and mem is new."""
    now = report(seed=14)
    then = report(
        seed=15, rounds=4, speeds={name: SPEEDS[name] for name in ("esker", "rocksdb", "lmdb")},
        faster={"esker": 0.5, "lmdb": 1.6},
    )
    then["machine"]["system"] = "linux 6.0 x86_64"
    for run in then["runs"]:
        run["version"] = run["version"].replace("1.2.3", "1.2.2")
    return now, then


def hostile():
    """The same with markup for every name, measured elsewhere: another comparison."""
    text = json.dumps(report(seed=8, rounds=1))
    data = json.loads(text)
    data["machine"]["processor"] = HOSTILE
    data["settings"][HOSTILE] = HOSTILE
    data["rules"] = [HOSTILE]
    data["complete"], data["stopped"] = False, HOSTILE
    for engine in data["engines"]:
        engine["label"] = engine["label"] + HOSTILE
    for run in data["runs"]:
        for workload in run["workloads"]:
            workload["name"] += HOSTILE
    return data


def rounds(data, workload, engine, path):
    """The values of the rounds of an engine."""
    values = []
    for run in data["runs"]:
        for step in run["workloads"]:
            if (run["engine"], step["name"]) != (engine, workload):
                continue
            value = step
            for part in () if callable(path) else path:
                value = (value or {}).get(part)
            if callable(path):
                value = path(step)
            if value is not None:
                values.append(value)
    return values


def judged(ours, theirs, more_is_better, like=True):
    """Both medians, the ratio, its range and the mark."""
    a, b = statistics.median(ours), statistics.median(theirs)
    better, worse = (ours, theirs) if more_is_better else (theirs, ours)
    ratio = a / b if more_is_better else b / a
    spread = max(max(ours) - min(ours), max(theirs) - min(theirs))
    overlap = min(ours) <= max(theirs) and min(theirs) <= max(ours)
    if not like:
        mark = "other work"
    elif min(len(ours), len(theirs)) < 2:
        mark = "one round"
    elif overlap or abs(a - b) <= spread:
        mark = "tie"
    else:
        mark = "win" if ratio > 1 else "loss"
    return a, b, ratio, (min(better) / max(worse), max(better) / min(worse)), mark


def batched(data, workload, engine):
    return any(rounds(data, workload, engine, ("batched_instead",)))


def workloads(data):
    """The workloads in their order, without those that print; whether each is a single call."""
    steps = [step for step in data["runs"][0]["workloads"] if not step.get("text")]
    return {step["name"]: step["maintenance"] for step in steps}


def engines(data):
    return [engine["name"] for engine in data["engines"]]


def expected(data, measure):
    """A table of ratios: {workload: {engine: (ours, theirs, ratio, range, mark)}}."""
    table = {}
    for workload, single in workloads(data).items():
        path, more = MEASURES["Time taken" if single and measure == "Operations a second" else measure]
        for engine in engines(data)[1:]:
            ours, theirs = (rounds(data, workload, name, path) for name in ("esker", engine))
            if ours and theirs and (max(ours) > 0 or max(theirs) > 0):
                if min(statistics.median(ours), statistics.median(theirs)) == 0:
                    continue
                like = batched(data, workload, "esker") == batched(data, workload, engine)
                table.setdefault(workload, {})[engine] = judged(ours, theirs, more, like)
    return table


def leaders(data, workload):
    """The stores that lead a workload: the best, and those that tie with it."""
    path, more = MEASURES["Time taken" if workloads(data)[workload] else "Operations a second"]
    stores = [engine for engine in engines(data) if engine != "mem"
              and batched(data, workload, engine) == batched(data, workload, "esker")]
    of = {engine: rounds(data, workload, engine, path) for engine in stores}
    best = (max if more else min)(stores, key=lambda engine: statistics.median(of[engine]))
    return {best} | {engine for engine in stores if judged(of[best], of[engine], more)[4] == "tie"}


def changes(now, then):
    """The table of changes in speed: {workload: {engine: (now, then, ratio, range, mark)}}."""
    table = {}
    for workload, single in workloads(now).items():
        path, more = MEASURES["Time taken" if single else "Operations a second"]
        for engine in engines(now):
            after, before = (rounds(data, workload, engine, path) for data in (now, then))
            if after and before:
                table.setdefault(workload, {})[engine] = judged(after, before, more)
    return table


def tenths(data, workload, engine):
    """The mean rate in each tenth of the round with the median rate; one round has 40 seconds."""
    steps = [step for run in data["runs"] if run["engine"] == engine
             for step in run["workloads"] if step["name"] == workload]
    typical = sorted(steps, key=lambda step: step["ops_per_second"])[len(steps) // 2]
    rates = [point["ops_per_second"] for point in typical["rates"]]
    return [sum(rates[at:at + 4]) / 4 for at in range(0, 40, 4)]
