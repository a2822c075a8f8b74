"""Damage is answered with 'unavailable'; it never frees a lock and is never written over."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from app.errors import LeaseNotFound, NotHolder, StoreUnavailable
from app.lease import Lease
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock

RESOURCES = [f"resource {number:03d} " + "x" * 200 for number in range(100)]

OPERATIONS = {
    "acquire": lambda store: store.acquire("fresh", "o", 60),
    "acquire again": lambda store: store.acquire(RESOURCES[0], "holder", 60),
    "acquire a held resource": lambda store: store.acquire(RESOURCES[1], "contender", 60),
    "read": lambda store: store.read(RESOURCES[0]),
    "renew": lambda store: store.renew(RESOURCES[0], "holder", 60),
    "release": lambda store: store.release(RESOURCES[0], "holder"),
    "list": lambda store: store.list_live("", 1000, ""),
    "check": lambda store: store.check(),
    "clean up": lambda store: store.delete_expired(0, 100),
}


WHOLE_FILE_DAMAGE = {
    "header overwritten": lambda whole: b"x" * 100 + whole[100:],
    "magic overwritten": lambda whole: b"\0" * 16 + whole[16:],
    "schema page overwritten": lambda whole: whole[:100] + b"\xff" * 3996 + whole[4096:],
    "NULs": lambda whole: b"\0" * len(whole),
    "text": lambda whole: b"550 quota exceeded\n" * 100,
    "cut to half a page": lambda whole: whole[:2048],
    "cut to the first page": lambda whole: whole[:4096],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A state folder with a hundred leases, of which each test gets a copy."""
    folder = tmp_path_factory.mktemp("whole")
    store = SqliteLockStore(str(folder), ManualClock())
    for resource in RESOURCES:
        store.acquire(resource, "holder", 60)
    return folder


@pytest.fixture
def database(whole, tmp_path):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return tmp_path / "locks.sqlite3"


@pytest.mark.parametrize("damage", WHOLE_FILE_DAMAGE.values(), ids=WHOLE_FILE_DAMAGE.keys())
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_database_damaged_at_its_head_is_unavailable_and_left_as_it_is(store, database, damage, operation):
    damaged = damage(database.read_bytes())
    database.write_bytes(damaged)

    with pytest.raises(StoreUnavailable) as refusal:
        operation(store)

    assert refusal.value.reason == "corrupt"
    assert database.read_bytes() == damaged


def pages_zeroed(whole: bytes, first: int, behind: int) -> bytes:
    return whole[: first * 4096] + b"\0" * ((behind - first) * 4096) + whole[behind * 4096 :]


INNER_DAMAGE = {
    "truncated in the middle": lambda whole: whole[: len(whole) // 2],
    "truncated within a page": lambda whole: whole[: len(whole) // 2 + 1000],
    "last page missing": lambda whole: whole[:-4096],
    "second half zeroed": lambda whole: pages_zeroed(whole, len(whole) // 8192, len(whole) // 4096),
    "all but the head zeroed": lambda whole: pages_zeroed(whole, 1, len(whole) // 4096),
    **{
        f"page {number} zeroed": (lambda whole, number=number: pages_zeroed(whole, number, number + 1))
        for number in range(1, 14)
    },
    **{
        f"page {number} of random bytes": (
            lambda whole, number=number: (
                whole[: number * 4096] + bytes(range(255, -1, -1)) * 16 + whole[number * 4096 + 4096 :]
            )
        )
        for number in range(1, 14)
    },
}


@pytest.mark.parametrize("damage", INNER_DAMAGE.values(), ids=INNER_DAMAGE.keys())
def test_damage_in_the_middle_never_frees_a_lock(store, database, damage):
    whole = database.read_bytes()
    database.write_bytes(damage(whole))

    for resource in RESOURCES:
        try:
            answer = store.acquire(resource, "thief", 60)
        except StoreUnavailable:
            continue
        assert not isinstance(answer, Lease)


@pytest.mark.parametrize("damage", INNER_DAMAGE.values(), ids=INNER_DAMAGE.keys())
def test_damage_in_the_middle_raises_nothing_but_unavailable(store, database, damage):
    database.write_bytes(damage(database.read_bytes()))

    for operation in OPERATIONS.values():
        try:
            operation(store)
        except StoreUnavailable:
            continue


def test_a_restored_backup_works_again(store, database):
    backup = database.read_bytes()
    database.write_bytes(b"x" * 5000)
    with pytest.raises(StoreUnavailable):
        store.read(RESOURCES[0])

    database.write_bytes(backup)

    assert store.read(RESOURCES[0]).owner == "holder"
    assert len(store.list_live("", 1000, "")) == 100


def test_another_programs_database_is_unavailable_and_left_as_it_is(store, database):
    database.unlink()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE wp_options (name TEXT)")
    before = database.read_bytes()

    for operation in OPERATIONS.values():
        with pytest.raises(StoreUnavailable):
            operation(store)

    assert database.read_bytes() == before


@pytest.mark.parametrize("column", ["expires_at", "acquired_at", "set_at"])
@pytest.mark.parametrize(
    "value", ["", "soon", "9999-99-99", "2099-12-01 04:05:06", "9999", "\u0662\u0660\u0662\u0666", "z" * 24]
)
def test_a_row_whose_instant_is_none_raises_nothing_but_unavailable(store, database, column, value):
    """Somebody has edited the database by hand."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"UPDATE distributed_locks SET {column} = ?", (value,))
        connection.commit()

    for operation in OPERATIONS.values():
        try:
            operation(store)
        except (LeaseNotFound, NotHolder, StoreUnavailable):
            continue


def test_text_that_is_no_utf_8_is_unavailable(store, database):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE distributed_locks SET owner = CAST(x'ff' AS TEXT)")
        connection.commit()

    with pytest.raises(StoreUnavailable):
        store.read(RESOURCES[0])
