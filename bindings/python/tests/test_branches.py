"""Branches and named snapshots."""

from __future__ import annotations

import pytest

import esker


def test_branches_go_their_own_way(path):
    with esker.DB(path, create_if_missing=True) as db:
        db.put(b"price", b"10")
        db.keyspace("stock")[b"nails"] = b"100"
        trial = db.branch("trial")
        assert (trial.branch_name, db.branch_name, trial.name) == ("trial", None, path)
        trial.put(b"price", b"12")
        trial.keyspace("stock").clear()
        trial.keyspace("new")[b"k"] = b"v"
        assert (db.get(b"price"), trial.get(b"price")) == (b"10", b"12")
        assert db.keyspace("stock") == {b"nails": b"100"}
        assert "new" not in db.keyspaces() and "new" in trial.keyspaces()
        with trial.transaction() as tx:
            tx.put(b"price", b"%d" % (int(tx.get(b"price")) + 1))
        with trial.snapshot() as snapshot:
            assert list(snapshot.keyspace("new")) == [(b"k", b"v")]
        with db.write_batch() as batch:
            batch.put(b"both", b"1")
            batch.put(b"both", b"2", keyspace=trial)
        assert (db.get(b"both"), trial.get(b"both")) == (b"1", b"2")
        with pytest.raises(esker.BranchExistsError) as caught:
            db.branch("trial")
        assert (caught.value.kind, caught.value.branch) == ("branch-exists", "trial")
    with pytest.raises(esker.ClosedError):
        trial.get(b"price")
    with esker.DB(path) as db:
        assert db.branches() == ["trial"]
        trial = db.open_branch("trial")
        assert trial.get(b"price") == b"13"
        assert db.drop_branch("trial") and not db.drop_branch("trial")
        with pytest.raises(esker.Error):
            trial.put(b"price", b"1")
        with pytest.raises(esker.BranchMissingError):
            db.open_branch("trial")


def test_named_snapshots_stay(path):
    with esker.DB(path, create_if_missing=True) as db:
        db.put(b"stock", b"100")
        db.snapshot_named("monday")
        db.put(b"stock", b"40")
    with esker.DB(path) as db:
        assert db.named_snapshots() == ["monday"]
        monday = db.open_named_snapshot("monday")
        assert list(monday) == [(b"stock", b"100")]
        with pytest.raises(esker.ReadOnlyError):
            monday.put(b"stock", b"0")
        assert db.drop_named_snapshot("monday")
        assert not db.drop_named_snapshot("monday")


def test_a_branch_keeps_the_order(path):
    def backwards(a, b):
        return (a < b) - (a > b)

    with esker.DB(
        path, create_if_missing=True, comparator=backwards, comparator_name=b"backwards"
    ) as db:
        db.put(b"a", b"")
        branch = db.branch("other")
        branch.put(b"b", b"")
        assert [key for key, _ in branch] == [b"b", b"a"]
        assert [key for key, _ in db] == [b"a"]
