"""On a full disk nothing is half done, reads go on, and the clean-up still has room to make room."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.bootstrap import build_sweeper
from app.errors import LeaseNotFound, RateLimitUnavailable, StoreUnavailable
from app.file_rate_limits import FileRateLimitStorage
from app.lease import Held, Lease
from app.sqlite_locks import SqliteLockStore

PAGE_BYTES = 4096


def fill(disk: Path, free_pages: int = 0) -> None:
    """Leave so many pages free."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * PAGE_BYTES)
        except OSError:
            pass
        file.truncate(max(0, file.tell() // PAGE_BYTES - free_pages) * PAGE_BYTES)


@pytest.fixture
def store(small_disk, clock) -> SqliteLockStore:
    return SqliteLockStore(str(small_disk), clock)


def rows(store: SqliteLockStore) -> list[tuple[str, str, str, str, int]]:
    return [
        (lease.resource, lease.owner, lease.acquired_at, lease.expires_at, lease.fencing_token)
        for lease in store.list_live("", 1000, "")
    ]


def test_a_grant_on_a_full_disk_is_unavailable_and_reads_go_on(store, small_disk):
    store.acquire("r", "holder", 60)
    before = rows(store)
    fill(small_disk)

    with pytest.raises(StoreUnavailable) as refusal:
        store.acquire("fresh", "o", 60)
    assert refusal.value.reason == "full"
    with pytest.raises(StoreUnavailable):
        store.renew("r", "holder", 600)
    with pytest.raises(StoreUnavailable):
        store.release("r", "holder")
    with pytest.raises(StoreUnavailable):
        store.check()

    assert store.read("r").owner == "holder"
    assert rows(store) == before
    (small_disk / "filler").unlink()
    assert rows(store) == before
    assert isinstance(store.acquire("r", "thief", 60), Held)
    assert isinstance(store.acquire("fresh", "o", 60), Lease)


@pytest.mark.parametrize("free_pages", range(12))
def test_a_grant_that_runs_out_of_space_at_any_point_is_done_or_not_done(store, small_disk, free_pages):
    """Names of many pages, so that the journal, the database and the end of the commit each meet the full disk."""
    for number in range(40):
        store.acquire(f"{number:03d}" + "x" * 252, "holder", 60)
    fill(small_disk, free_pages)
    before = rows(store)

    for number in range(40, 80):
        name = f"{number:03d}" + "y" * 252
        try:
            granted = store.acquire(name, "o", 60)
        except StoreUnavailable:
            assert rows(store) == before
            with pytest.raises(LeaseNotFound):
                store.read(name)
            break
        assert isinstance(granted, Lease)
        assert rows(store)[-1][-1] == granted.fencing_token
        before = rows(store)
    else:
        pytest.fail("the disk was not full")

    (small_disk / "filler").unlink()
    assert rows(store) == before
    assert isinstance(store.acquire(name, "o", 60), Lease)


def test_the_reserve_lets_a_clean_up_delete_on_a_full_disk(store, small_disk, clock):
    for number in range(150):
        store.acquire(f"{number:03d}" + "x" * 252, "o", 1)
    clock.advance(10)
    fill(small_disk)
    with pytest.raises(StoreUnavailable):
        store.delete_expired(0, 100)

    (small_disk / "locks.reserve").unlink()

    assert store.delete_expired(0, 100) == 100
    assert store.delete_expired(0, 100) == 50
    assert isinstance(store.acquire("fresh", "o", 60), Lease)


def test_a_first_start_on_a_full_disk_is_unavailable_and_works_once_there_is_space(store, small_disk):
    fill(small_disk)
    with pytest.raises(StoreUnavailable) as refusal:
        store.acquire("r", "o", 60)
    assert refusal.value.reason == "full"

    (small_disk / "filler").unlink()

    assert isinstance(store.acquire("r", "o", 60), Lease)


@pytest.mark.parametrize("free_pages", range(1, 24))
def test_a_first_start_that_runs_out_of_space_at_any_point_is_finished_later(store, small_disk, free_pages):
    fill(small_disk, free_pages)
    try:
        store.acquire("r", "o", 60)
    except StoreUnavailable:
        pass

    (small_disk / "filler").unlink()

    assert isinstance(store.acquire("r", "o", 60), Lease)
    assert isinstance(store.acquire("r", "thief", 60), Held)


def test_a_new_window_on_a_full_disk_is_refused_and_a_living_one_counts_on(small_disk, clock):
    storage = FileRateLimitStorage(str(small_disk), clock)
    storage.hit("k", 60)
    fill(small_disk)

    with pytest.raises(RateLimitUnavailable):
        storage.hit("new", 60)
    assert storage.hit("k", 60)[0] == 2

    os.unlink(small_disk / "filler")
    assert storage.hit("new", 60)[0] == 1
    assert storage.hit("new", 60)[0] == 2
    assert storage.hit("k", 60)[0] == 3


def test_a_sweep_on_a_full_disk_deletes_ended_leases_and_keeps_the_living(store, small_disk, clock):
    for number in range(150):
        store.acquire(f"{number:03d}" + "x" * 252, "o", 1)
    store.acquire("r", "holder", 100_000)
    clock.advance(7200)
    fill(small_disk)

    assert build_sweeper(str(small_disk), clock).sweep().leases == 150

    assert [lease.resource for lease in store.list_live("", 10, "")] == ["r"]
