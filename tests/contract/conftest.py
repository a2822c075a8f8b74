"""Every implementation of the two storage interfaces, behind one fixture each."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.file_rate_limits import FileRateLimitStorage
from app.memory_stores import InMemoryLockStore, InMemoryRateLimitStorage
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock


class SqliteLocks:
    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self._folder = folder
        self._clock = clock

    def open(self, max_locks: int = 10000):
        return SqliteLockStore(str(self._folder), self._clock, max_locks=max_locks)

    def reopen(self, store):
        return self.open()


class InMemoryLocks:
    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def open(self, max_locks: int = 10000):
        return InMemoryLockStore(self._clock, max_locks=max_locks)

    def reopen(self, store):
        return store


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "memory"])
def locks(request, tmp_path, clock):
    """Makes lock stores; reopen() is what the next process of the service sees."""
    if request.param == "sqlite":
        return SqliteLocks(tmp_path, clock)
    return InMemoryLocks(clock)


@pytest.fixture
def store(locks):
    return locks.open()


@pytest.fixture(params=["file", "memory"])
def storage(request, tmp_path, clock):
    if request.param == "file":
        return FileRateLimitStorage(str(tmp_path), clock)
    return InMemoryRateLimitStorage(clock)
