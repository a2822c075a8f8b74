"""Modes after an upload are often wrong, and hosts in trouble mount homes read-only: reads go on, grants do not."""

from __future__ import annotations

import os
import subprocess

import pytest

from app.errors import RateLimitUnavailable, StoreUnavailable
from app.file_rate_limits import FileRateLimitStorage
from app.sqlite_locks import SqliteLockStore
from tests.parts import requires

WRITES = {
    "acquire a free resource": lambda store: store.acquire("fresh", "o", 60),
    "acquire again": lambda store: store.acquire("r", "holder", 60),
    "renew": lambda store: store.renew("r", "holder", 60),
    "release": lambda store: store.release("r", "holder"),
    "check": lambda store: store.check(),
}


def assert_reads_go_on_and_writes_do_not(store: SqliteLockStore, reasons: set[str]) -> None:
    for write in WRITES.values():
        with pytest.raises(StoreUnavailable) as refusal:
            write(store)
        assert refusal.value.reason in reasons
    assert store.read("r").owner == "holder"
    assert [lease.resource for lease in store.list_live("", 10, "")] == ["r"]


@pytest.fixture
def read_only_disk(small_disk):
    """Makes the small disk read-only."""

    def remount() -> None:
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    return remount


def test_on_a_read_only_disk_reads_go_on_and_grants_are_unavailable(small_disk, read_only_disk, clock):
    store = SqliteLockStore(str(small_disk), clock)
    store.acquire("r", "holder", 60)
    read_only_disk()

    assert_reads_go_on_and_writes_do_not(store, {"read-only"})


def test_a_first_start_on_a_read_only_disk_is_unavailable(small_disk, read_only_disk, clock):
    read_only_disk()

    with pytest.raises(StoreUnavailable) as refusal:
        SqliteLockStore(str(small_disk), clock).acquire("r", "o", 60)
    assert refusal.value.reason == "read-only"


def test_a_window_on_a_read_only_disk_is_refused(small_disk, read_only_disk, clock):
    storage = FileRateLimitStorage(str(small_disk), clock)
    storage.hit("k", 60)
    read_only_disk()

    for key in ["k", "new"]:
        with pytest.raises(RateLimitUnavailable):
            storage.hit(key, 60)


@pytest.mark.parametrize(
    ("folder_mode", "database_mode"),
    [(0o500, 0o600), (0o500, 0o400), (0o700, 0o400)],
    ids=["folder", "folder and database", "database"],
)
def test_without_the_write_bit_reads_go_on_and_grants_are_unavailable(
    open_folder, unprivileged, clock, folder_mode, database_mode
):
    with unprivileged():
        store = SqliteLockStore(str(open_folder), clock)
        store.acquire("r", "holder", 60)
        (open_folder / "locks.sqlite3-journal").unlink()
        (open_folder / "locks.sqlite3").chmod(database_mode)
        open_folder.chmod(folder_mode)

        assert_reads_go_on_and_writes_do_not(store, {"read-only", "unreadable"})

        open_folder.chmod(0o700)
        (open_folder / "locks.sqlite3").chmod(0o600)
        assert store.renew("r", "holder", 60).owner == "holder"


@pytest.mark.parametrize("mode", [0o000, 0o400], ids=["nothing", "no search"])
def test_a_folder_that_cannot_be_entered_is_unavailable_and_not_taken_for_an_empty_one(
    open_folder, unprivileged, clock, mode
):
    with unprivileged():
        store = SqliteLockStore(str(open_folder), clock)
        store.acquire("r", "holder", 60)
        open_folder.chmod(mode)

        with pytest.raises(StoreUnavailable):
            store.acquire("r", "thief", 60)
        with pytest.raises(StoreUnavailable):
            store.read("r")

        open_folder.chmod(0o700)
        assert store.read("r").owner == "holder"


def test_a_first_start_in_a_folder_of_another_user_is_unavailable(open_folder, unprivileged, clock):
    requires(os.geteuid() == 0, "root, to make a folder that belongs to another user")
    (open_folder / "var").mkdir(mode=0o755)

    with unprivileged(), pytest.raises(StoreUnavailable):
        SqliteLockStore(str(open_folder / "var"), clock).acquire("r", "o", 60)

    assert list((open_folder / "var").iterdir()) == []


def test_a_database_that_is_a_folder_is_unavailable(store, tmp_path):
    (tmp_path / "locks.sqlite3").mkdir()

    with pytest.raises(StoreUnavailable):
        store.acquire("r", "o", 60)


def test_a_state_folder_that_is_a_file_is_unavailable(tmp_path, clock):
    (tmp_path / "var").write_bytes(b"")

    with pytest.raises(StoreUnavailable):
        SqliteLockStore(str(tmp_path / "var"), clock).acquire("r", "o", 60)
