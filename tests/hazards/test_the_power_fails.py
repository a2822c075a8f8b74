"""A grant that a power cut forgets is a double grant; a journal in WAL mode corrupts on the NFS homes of hosts."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from app.sqlite_locks import SqliteLockStore

SYNCHRONOUS_FULL = 2
TEMP_STORE_MEMORY = 2


class WatchedConnection(sqlite3.Connection):
    """Notes its settings when the write lock is taken and at its end, through the connection itself."""

    seen: list[dict[str, object]] = []

    def execute(self, statement, *parameters):
        if statement.startswith("BEGIN"):
            self.note()
        return super().execute(statement, *parameters)

    def close(self) -> None:
        self.note()
        super().close()

    def note(self) -> None:
        pragmas = ("journal_mode", "synchronous", "temp_store", "busy_timeout")
        self.seen.append(
            {name: super(WatchedConnection, self).execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas}
        )


@pytest.fixture
def seen(monkeypatch):
    connect = sqlite3.connect

    def watched(*args, **kwargs):
        return connect(*args, factory=WatchedConnection, **kwargs)

    monkeypatch.setattr(WatchedConnection, "seen", [])
    monkeypatch.setattr(sqlite3, "connect", watched)
    return WatchedConnection


def every_operation(store: SqliteLockStore) -> None:
    store.acquire("r", "o", 60)
    store.acquire("r", "o", 60)
    store.acquire("r", "contender", 60)
    store.read("r")
    store.renew("r", "o", 60)
    store.list_live("", 10, "")
    store.check()
    store.delete_expired(0, 100)
    store.release("r", "o")


def test_every_connection_syncs_fully_keeps_a_rollback_journal_and_waits_for_its_turn(seen, tmp_path, clock):
    every_operation(SqliteLockStore(str(tmp_path), clock, busy_timeout_seconds=3))

    assert seen.seen
    for settings in seen.seen:
        assert settings["synchronous"] == SYNCHRONOUS_FULL
        assert settings["journal_mode"] in ("delete", "truncate")
        assert settings["temp_store"] == TEMP_STORE_MEMORY
        assert settings["busy_timeout"] == 3000


def test_no_operation_leaves_the_files_of_a_write_ahead_log(tmp_path, clock):
    every_operation(SqliteLockStore(str(tmp_path), clock))

    assert not [name for name in os.listdir(tmp_path) if name.endswith(("-wal", "-shm"))]
    with closing(sqlite3.connect(tmp_path / "locks.sqlite3")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal"


def test_a_write_ahead_log_that_somebody_switched_on_is_switched_off(tmp_path, clock):
    store = SqliteLockStore(str(tmp_path), clock)
    granted = store.acquire("r", "o", 60)
    with closing(sqlite3.connect(tmp_path / "locks.sqlite3")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")

    assert store.read("r").fencing_token == granted.fencing_token
    store.renew("r", "o", 60)

    assert not [name for name in os.listdir(tmp_path) if name.endswith(("-wal", "-shm"))]


def test_no_operation_leaves_a_connection_or_a_descriptor_open(tmp_path, clock):
    store = SqliteLockStore(str(tmp_path), clock)
    every_operation(store)
    before = sorted(os.listdir("/proc/self/fd"))

    every_operation(store)

    assert sorted(os.listdir("/proc/self/fd")) == before
