"""Another process holds the write lock: an upload, a backup, a request that the host has frozen."""

from __future__ import annotations

import threading

import pytest

from app.errors import StoreUnavailable
from app.lease import Lease
from app.sqlite_locks import SqliteLockStore

HOLDS_THE_WRITE_LOCK = """
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE distributed_locks SET owner = 'never committed'")
print(flush=True)
sys.stdin.read()
"""
READS_FOR_LONG = """
connection.execute("BEGIN")
connection.execute("SELECT * FROM distributed_locks").fetchall()
print(flush=True)
sys.stdin.read()
"""

WRITES = {
    "acquire a free resource": lambda store: store.acquire("fresh", "o", 60),
    "acquire again": lambda store: store.acquire("r", "holder", 600),
    "renew": lambda store: store.renew("r", "holder", 600),
    "release": lambda store: store.release("r", "holder"),
    "clean up": lambda store: store.delete_expired(0, 100),
}


def rows(store: SqliteLockStore) -> list[tuple[str, str, str, int]]:
    return [
        (lease.resource, lease.owner, lease.expires_at, lease.fencing_token) for lease in store.list_live("", 100, "")
    ]


@pytest.fixture
def database(store, tmp_path, clock):
    """A database with a live and an ended lease."""
    store.acquire("ended", "o", 1)
    clock.advance(1.5)
    store.acquire("r", "holder", 60)
    return tmp_path / "locks.sqlite3"


@pytest.mark.parametrize("script", [HOLDS_THE_WRITE_LOCK, READS_FOR_LONG], ids=["writer", "reader"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_write_beyond_the_time_out_is_unavailable_and_changes_nothing(
    store, database, sqlite_elsewhere, write, script
):
    before = rows(store)
    process = sqlite_elsewhere(database, script)

    with pytest.raises(StoreUnavailable) as refusal:
        write(store)
    assert refusal.value.reason == "busy"

    process.kill()
    process.wait()
    assert rows(store) == before
    write(store)


def test_a_read_is_answered_while_a_writer_holds_the_lock(store, database, sqlite_elsewhere):
    before = rows(store)
    process = sqlite_elsewhere(database, HOLDS_THE_WRITE_LOCK)

    assert rows(store) == before
    assert store.read("r").owner == "holder"
    assert process.poll() is None


def test_a_write_within_the_time_out_waits_for_its_turn(database, tmp_path, clock, sqlite_elsewhere):
    patient = SqliteLockStore(str(tmp_path), clock, busy_timeout_seconds=30)
    process = sqlite_elsewhere(database, HOLDS_THE_WRITE_LOCK)
    answers: list[object] = []
    waiting = threading.Thread(target=lambda: answers.append(patient.acquire("fresh", "o", 60)))
    waiting.start()
    assert patient.read("r").owner == "holder"
    process.stdin.close()
    waiting.join()

    assert isinstance(answers[0], Lease)
    assert patient.read("r").owner == "holder"


def test_the_self_check_fails_while_nothing_can_be_granted(store, database, sqlite_elsewhere):
    sqlite_elsewhere(database, HOLDS_THE_WRITE_LOCK)

    with pytest.raises(StoreUnavailable):
        store.check()
