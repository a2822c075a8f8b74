"""The first visitors of a new installation come all at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from time import monotonic

STARTERS = 20


def test_twenty_processes_at_the_first_start_make_one_database_and_unique_tokens(start, store, tmp_path):
    first_at = monotonic() + 2.5
    starters = [start("contend", tmp_path, f"o{number}", first_at, 0, f"r{number}") for number in range(STARTERS)]

    grants = [grant for starter in starters for grant in starter.report()]

    assert len({token for _, token, _, _ in grants}) == STARTERS
    assert {lease.resource: lease.fencing_token for lease in store.list_live("", 100, "")} == {
        resource: token for resource, token, _, _ in grants
    }
    with closing(sqlite3.connect(tmp_path / "locks.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "locks.created",
        "locks.reserve",
        "locks.sqlite3",
        "locks.sqlite3-journal",
    ]
    assert (tmp_path / "locks.created").stat().st_size > 0
