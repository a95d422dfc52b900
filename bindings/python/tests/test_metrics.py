"""The statistics: as a dict, and as OpenMetrics text, which a parser that is not ours reads."""

import math

import esker
from prometheus_client.openmetrics.parser import text_string_to_metric_families


def families(db):
    """The metrics of the text, by name."""
    parsed = list(text_string_to_metric_families(db.openmetrics()))
    by_name = {family.name: family for family in parsed}
    assert len(by_name) == len(parsed)
    return by_name


def values(family, **labels):
    """The values of a family's samples that have these labels, by the sample's name."""
    chosen = [s for s in family.samples if labels.items() <= s.labels.items()]
    return {sample.name: sample.value for sample in chosen}


def test_the_text_says_what_the_dict_says(db):
    db.put(b"k", b"value")
    db.get(b"k")
    db.flush()
    db.sync()
    names = families(db)
    stats = db.stats()
    assert values(names["esker_puts"]) == {"esker_puts_total": stats["puts"]}
    for purpose, count in stats["written"].items():
        shown = values(names["esker_written_bytes"], purpose=purpose)
        assert shown == {"esker_written_bytes_total": count}
    for cause, waited in stats["waits"].items():
        shown = values(names["esker_wait_seconds"], cause=cause)
        assert shown["esker_wait_seconds_count"] == waited["count"]
        assert math.isclose(shown["esker_wait_seconds_sum"], waited["total"], abs_tol=1e-12)
        buckets = [
            (float(sample.labels["le"]), sample.value)
            for sample in names["esker_wait_seconds"].samples
            if sample.labels["cause"] == cause and "le" in sample.labels
        ]
        assert dict(buckets) == waited["buckets"]
        assert buckets[-1] == (math.inf, waited["count"])
    assert stats["waits"]["sync"]["count"] == 1
    runs = names["esker_level_runs"]
    levels = values(runs, keyspace="default", level="delta_0")
    levels |= values(runs, keyspace="default", level="base")
    assert levels == {"esker_level_runs": 1}


def test_every_metric_has_type_help_and_the_unit_in_its_name(db):
    names = families(db)
    assert len(names) > 50
    for name, family in names.items():
        assert name.startswith("esker_") and family.documentation.endswith(".")
        if family.unit:
            assert name.endswith("_" + family.unit)
    kinds = {family.type for family in names.values()}
    assert kinds == {"counter", "gauge", "summary", "histogram", "stateset"}


def test_names_that_programs_choose_are_escaped(db):
    name = 'a "name"\\with\nlines'
    db.keyspace(name).put(b"k", b"v")
    with db.snapshot(label=name):
        names = families(db)
        [age] = names["esker_snapshot_age_seconds"].samples
        assert age.labels["label"] == name
        assert db.stats()["snapshots"][0]["label"] == name
    keyspaces = {s.labels["keyspace"] for s in names["esker_keyspace_partitions"].samples}
    assert keyspaces == {"default", name}
    assert families(db)["esker_snapshot_age_seconds"].samples == []


def test_states_are_named(db):
    modes = families(db)["esker_pace_mode"].samples
    assert {s.labels["esker_pace_mode"]: s.value for s in modes}["open"] == 1
    assert sum(sample.value for sample in modes) == 1
    assert db.stats()["pace"] == {"mode": "open", "limit": 0}
    db.put(b"k", b"v")
    assert db.stats()["log"]["holder"] == "memtable"


def test_a_lock_that_is_waited_for_is_counted(db):
    with db.transaction(pessimistic=True, lock_timeout=0.001) as first:
        first.put(b"k", b"1")
        second = db.transaction(pessimistic=True, lock_timeout=0.001)
        try:
            second.put(b"k", b"2")
            raise AssertionError("the lock was given twice")
        except esker.LockTimeoutError:
            pass
        finally:
            second.rollback()
    waited = db.stats()["waits"]["lock"]
    assert waited["count"] == 1 and waited["total"] >= 0.001
