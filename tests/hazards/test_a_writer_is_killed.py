"""A host kills processes at any moment; one that was writing leaves a hot journal and a half-written database."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from app.lease import Held
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock

# A cache of one page makes SQLite write changed pages into the database long before the commit.
KILLED_IN_MID_WRITE = """
connection.execute("PRAGMA journal_mode=TRUNCATE")
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE distributed_locks SET owner = 'thief', expires_at = '9999-01-01T00:00:00.000Z'")
connection.execute("DELETE FROM distributed_locks WHERE id % 2")
os.kill(os.getpid(), signal.SIGKILL)
"""
# A file may not grow beyond the limit, and whoever tries is killed: that is a kill in mid-commit, at a chosen page.
KILLED_AT_A_PAGE = """
import resource, signal, sys
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock
store = SqliteLockStore(sys.argv[1], ManualClock(int(sys.argv[2])))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
store.delete_expired(0, 3)
"""
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    store = SqliteLockStore(str(folder), ManualClock())
    for number in range(200):
        store.acquire(f"resource {number:03d} " + "x" * 200, "holder", 60)
    return folder


@pytest.fixture
def torn(before, tmp_path, sqlite_elsewhere):
    """A database of which a killed writer has overwritten a part."""
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    whole = (tmp_path / "locks.sqlite3").read_bytes()
    process = sqlite_elsewhere(tmp_path / "locks.sqlite3", KILLED_IN_MID_WRITE)
    assert process.wait() == -9
    assert (tmp_path / "locks.sqlite3-journal").read_bytes()[:8] == JOURNAL_MAGIC
    assert (tmp_path / "locks.sqlite3").read_bytes() != whole
    return tmp_path


@pytest.fixture
def store(torn, clock):
    return SqliteLockStore(str(torn), clock)


def test_a_read_sees_the_state_before_the_killed_write(store):
    leases = store.list_live("", 1000, "")

    assert len(leases) == 200
    assert {lease.owner for lease in leases} == {"holder"}


def test_a_contender_is_kept_out_after_a_killed_write(store):
    assert isinstance(store.acquire("resource 001 " + "x" * 200, "thief", 60), Held)
    assert isinstance(store.acquire("resource 000 " + "x" * 200, "thief", 60), Held)


def test_after_a_killed_write_tokens_go_on_rising(store):
    assert store.acquire("fresh", "o", 60).fencing_token > max(
        lease.fencing_token for lease in store.list_live("resource", 1000, "")
    )


def test_the_database_is_whole_after_the_next_operation(store, torn):
    store.check()
    with closing(sqlite3.connect(torn / "locks.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    """A state folder with three ended leases, at the beginning, in the middle and at the end of the file."""
    folder = tmp_path_factory.mktemp("spread")
    store = SqliteLockStore(str(folder), ManualClock())
    for number in range(200):
        store.acquire(f"resource {number:03d} " + "x" * 200, "holder", 1 if number in (3, 100, 190) else 3600)
    return folder


@pytest.mark.parametrize("part", [0.35, 0.5, 0.65, 0.8, 0.95])
def test_a_write_of_the_store_that_is_cut_off_in_mid_commit_is_undone(spread, tmp_path, part):
    shutil.copytree(spread, tmp_path, dirs_exist_ok=True)
    database = tmp_path / "locks.sqlite3"
    whole = database.read_bytes()
    clock = ManualClock()
    clock.advance(10)

    command = [sys.executable, "-c", KILLED_AT_A_PAGE, str(tmp_path), str(clock.now_ms()), str(int(len(whole) * part))]
    killed = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True)

    assert killed.returncode == -signal.SIGXFSZ, killed.stderr
    assert database.read_bytes() != whole, "it was not killed between two pages"
    store = SqliteLockStore(str(tmp_path), clock)
    assert len(store.list_live("", 1000, "")) == 197
    assert store.delete_expired(0, 100) == 3
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
