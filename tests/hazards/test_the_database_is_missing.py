"""An empty database would silently free every lock: one that has been there is never made anew unasked."""

from __future__ import annotations

import pytest

from app.errors import LeaseNotFound, StoreUnavailable
from app.lease import Held
from app.sqlite_locks import SqliteLockStore

OPERATIONS = {
    "acquire": lambda store: store.acquire("r", "thief", 60),
    "read": lambda store: store.read("r"),
    "renew": lambda store: store.renew("r", "holder", 60),
    "release": lambda store: store.release("r", "holder"),
    "list": lambda store: store.list_live("", 1000, ""),
    "check": lambda store: store.check(),
    "clean up": lambda store: store.delete_expired(0, 100),
}


@pytest.fixture
def database(store, tmp_path):
    store.acquire("r", "holder", 60)
    return tmp_path / "locks.sqlite3"


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_deleted_database_is_unavailable_and_not_made_anew(store, database, operation):
    database.unlink()

    for _ in range(2):
        with pytest.raises(StoreUnavailable) as refusal:
            operation(store)
        assert refusal.value.reason == "missing"
    assert not database.exists()


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_database_of_zero_bytes_is_unavailable_and_stays_empty(store, database, operation):
    """What a broken upload or a restore on a full disk leaves."""
    database.write_bytes(b"")

    for _ in range(2):
        with pytest.raises(StoreUnavailable) as refusal:
            operation(store)
        assert refusal.value.reason == "missing"
    assert database.read_bytes() == b""


def test_the_next_process_is_refused_too(database, tmp_path, clock):
    database.unlink()

    with pytest.raises(StoreUnavailable):
        SqliteLockStore(str(tmp_path), clock).acquire("r", "thief", 60)


def test_a_database_put_back_works_with_its_leases(store, database, tmp_path):
    database.rename(tmp_path / "moved")
    with pytest.raises(StoreUnavailable):
        store.acquire("r", "thief", 60)

    (tmp_path / "moved").rename(database)

    assert isinstance(store.acquire("r", "thief", 60), Held)


@pytest.mark.parametrize("left", [None, b""], ids=["deleted", "zero bytes"])
def test_the_operators_word_makes_one_new_database_with_higher_tokens(store, clock, database, tmp_path, left):
    before = store.read("r").fencing_token
    database.unlink()
    if left is not None:
        database.write_bytes(left)
    (tmp_path / "locks.created").unlink()
    clock.advance(1)

    granted = store.acquire("r", "next", 60)

    assert granted.fencing_token > before
    assert (tmp_path / "locks.created").exists()
    database.unlink()
    with pytest.raises(StoreUnavailable):
        store.acquire("r", "thief", 60)


def test_the_operators_word_beside_a_whole_database_frees_nothing(store, database, tmp_path):
    (tmp_path / "locks.created").unlink()

    assert isinstance(store.acquire("r", "thief", 60), Held)


def test_a_marker_that_got_lost_is_made_again_before_the_next_grant(store, database, tmp_path):
    (tmp_path / "locks.created").unlink()

    store.acquire("another", "o", 60)

    database.unlink()
    with pytest.raises(StoreUnavailable):
        store.acquire("r", "thief", 60)


def test_tokens_rise_where_the_whole_state_folder_was_lost_unnoticed(store, clock, database, tmp_path):
    before = store.read("r").fencing_token
    for path in list(tmp_path.iterdir()):
        path.unlink()
    clock.advance(1)

    assert store.acquire("r", "o", 60).fencing_token > before


def test_the_first_start_needs_nothing_but_the_folder(tmp_path, clock):
    store = SqliteLockStore(str(tmp_path), clock)

    with pytest.raises(LeaseNotFound):
        store.read("r")
    assert store.list_live("", 10, "") == []
    store.check()
    assert store.acquire("r", "o", 60).fencing_token >= 1


def test_a_first_start_cut_off_before_the_table_was_made_is_finished_by_the_next(tmp_path, clock):
    (tmp_path / "locks.sqlite3").write_bytes(b"")

    assert SqliteLockStore(str(tmp_path), clock).acquire("r", "o", 60).owner == "o"
