"""An instant from before the wait for the write lock can grant a lease that is already over, or grant it twice."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from app.errors import LeaseNotFound, StoreUnavailable
from app.lease import Lease, ms_from_instant
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock


class WatchfulClock(ManualClock):
    """Notes at each reading whether somebody else could write at that moment."""

    def __init__(self, database) -> None:
        super().__init__()
        self._database = database
        self.others_could_write: list[bool] = []

    def now_ms(self) -> int:
        connection = sqlite3.connect(self._database, isolation_level=None, timeout=0)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self.others_could_write.append(True)
        except sqlite3.OperationalError:
            self.others_could_write.append(False)
        finally:
            connection.close()
        return super().now_ms()


WRITES = {
    "acquire a free resource": lambda store: store.acquire("fresh", "o", 60),
    "acquire again": lambda store: store.acquire("held", "o", 60),
    "acquire a held resource": lambda store: store.acquire("held", "contender", 60),
    "renew": lambda store: store.renew("held", "o", 60),
    "release": lambda store: store.release("held", "o"),
    "clean up": lambda store: store.delete_expired(0, 100),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_every_write_reads_the_clock_once_and_while_it_holds_the_write_lock(store, tmp_path, write):
    store.acquire("held", "o", 60)
    clock = WatchfulClock(tmp_path / "locks.sqlite3")

    write(SqliteLockStore(str(tmp_path), clock))

    assert clock.others_could_write == [False]


def test_a_grant_that_waited_for_the_lock_counts_from_the_end_of_the_wait(store, tmp_path, clock, sqlite_elsewhere):
    store.acquire("r", "holder", 60)
    patient = SqliteLockStore(str(tmp_path), clock, busy_timeout_seconds=30)
    writer = sqlite_elsewhere(
        tmp_path / "locks.sqlite3", "connection.execute('BEGIN IMMEDIATE')\nprint(flush=True)\nsys.stdin.read()\n"
    )
    answers: list[object] = []
    waiting = threading.Thread(target=lambda: answers.append(patient.acquire("r", "contender", 60)))
    waiting.start()
    clock.advance(100)
    writer.stdin.close()
    waiting.join()

    lease = answers[0]
    assert isinstance(lease, Lease)
    assert ms_from_instant(lease.acquired_at) == clock.now_ms()
    assert ms_from_instant(lease.expires_at) == clock.now_ms() + 60_000


class GrantingClock(ManualClock):
    """While a reader reads the clock, another process grants, and the clock moves on behind the reader's value."""

    def __init__(self, folder) -> None:
        super().__init__()
        self._folder = folder
        self.granted: list[Lease] = []

    def now_ms(self) -> int:
        read_ms = super().now_ms()
        self.advance(1)
        later = ManualClock(super().now_ms())
        try:
            lease = SqliteLockStore(self._folder, later, busy_timeout_seconds=0.05).acquire("r", "o", 60)
        except StoreUnavailable:
            return read_ms
        assert isinstance(lease, Lease)
        self.granted.append(lease)
        return read_ms


def test_a_reader_never_shows_instants_that_were_not_granted(store, tmp_path):
    """A lease from behind the reader's instant would look like one from before a step of the clock."""
    store.acquire("bystander", "o", 60)
    clock = GrantingClock(str(tmp_path))
    reader = SqliteLockStore(str(tmp_path), clock)

    try:
        shown = [reader.read("r")]
    except LeaseNotFound:
        shown = []
    shown += [lease for lease in reader.list_live("", 10, "") if lease.resource == "r"]

    granted = {(lease.acquired_at, lease.expires_at) for lease in clock.granted}
    assert {(lease.acquired_at, lease.expires_at) for lease in shown} <= granted
