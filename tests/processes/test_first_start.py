"""The first visitors of a new installation come all at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from time import monotonic

from app.clock import SystemClock
from app.sqlite_locks import SqliteLockStore

STARTERS = 20
INSTALLATIONS = 6
GAP_SECONDS = 0.4


def test_twenty_processes_at_the_first_start_make_one_database_and_unique_tokens(start, tmp_path):
    folders = [tmp_path / f"installation {number}" for number in range(INSTALLATIONS)]
    first_at = monotonic() + 2.5
    starters = [start("start_first", f"o{number}", first_at, GAP_SECONDS, *folders) for number in range(STARTERS)]

    tokens_of_starters = [starter.report() for starter in starters]

    for folder, tokens in zip(folders, zip(*tokens_of_starters)):
        assert len(set(tokens)) == STARTERS
        store = SqliteLockStore(str(folder), SystemClock())
        assert {lease.owner: lease.fencing_token for lease in store.list_live("", 100, "")} == {
            f"o{number}": token for number, token in enumerate(tokens)
        }
        with closing(sqlite3.connect(folder / "locks.sqlite3")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert sorted(path.name for path in folder.iterdir()) == [
            "locks.created",
            "locks.reserve",
            "locks.sqlite3",
            "locks.sqlite3-journal",
        ]
        assert (folder / "locks.created").stat().st_size > 0
