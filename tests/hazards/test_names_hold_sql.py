"""A name is data: whatever it holds, the tables stay as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from app.errors import LeaseNotFound, NotHolder

NAMES = [
    "resource'; DROP TABLE distributed_locks; --",
    "x'); DELETE FROM distributed_locks; --",
    "' OR '1'='1",
    '" OR ""="',
    "' UNION SELECT 1,2,3,4,5,6 --",
    "\\'; DROP TABLE distributed_locks; --",
    "?1",
    ":resource",
    "@resource",
    "$resource",
    "%s",
    "{0}",
    "CAST(x'00' AS TEXT)",
    "NULL",
    "distributed_locks",
]


def schema(folder) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(folder / "locks.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


@pytest.mark.parametrize("name", NAMES)
def test_sql_in_names_is_a_literal_name_in_every_operation(store, tmp_path, name):
    store.acquire("bystander", "somebody", 60)
    before = schema(tmp_path)

    assert store.acquire(name, name, 60).resource == name
    assert store.read(name).owner == name
    store.renew(name, name, 60)
    assert [lease.resource for lease in store.list_live(name, 10, "")] == [name]
    assert [lease.resource for lease in store.list_live("", 10, name) if lease.resource == name] == []
    with pytest.raises(NotHolder):
        store.release("bystander", name)
    with pytest.raises(NotHolder):
        store.renew("bystander", name, 60)
    store.release(name, name)
    with pytest.raises(LeaseNotFound):
        store.read(name)

    assert schema(tmp_path) == before
    assert [lease.resource for lease in store.list_live("", 10, "")] == ["bystander"]


def test_the_table_has_the_promised_columns(store, tmp_path):
    granted = store.acquire("r", "o", 60)
    with closing(sqlite3.connect(tmp_path / "locks.sqlite3")) as connection:
        row = connection.execute(
            "SELECT id, resource, owner, expires_at, acquired_at FROM distributed_locks"
        ).fetchall()
        table = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'distributed_locks'").fetchone()[0]

    assert row == [(granted.fencing_token, "r", "o", granted.expires_at, granted.acquired_at)]
    assert "AUTOINCREMENT" in table
