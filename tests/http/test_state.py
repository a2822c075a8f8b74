"""CONTRACT 8: where the state is, who may read it, and what happens when it is lost, busy or broken."""

from __future__ import annotations

import os
import sqlite3
import threading

import pytest

from tests.doors import UNLIMITED, modes_below
from tests.http.shape import BROWSER, assert_page, assert_problem

BODY = {"owner": "alice", "ttl_seconds": 60}

#: every request that needs the store
NEEDS_STORE = [
    ("POST", "/locks/x", BODY),
    ("GET", "/locks/x", b""),
    ("GET", "/locks", b""),
    ("POST", "/locks/x/renew", BODY),
    ("POST", "/locks/x/release", {"owner": "alice"}),
    ("DELETE", "/locks/x", {"owner": "alice"}),
]


def database_files(door):
    return [path for path in door.site.var.iterdir() if path.name.startswith("locks.sqlite3")]


def lose_database(door):
    for path in database_files(door):
        path.unlink()


def assert_out_of_order(door):
    """Every request that needs the store is told so, health too, and nobody learns a path."""
    for method, target, body in NEEDS_STORE:
        answer = door.request(method, target, body)
        assert_problem(answer, "unavailable")
        assert str(door.site.root) not in answer.text()
        assert ".sqlite" not in answer.text()
    health = door.request("GET", "/health")
    assert health.status == 503
    assert health.json()["status"] == "fail"
    assert len(health.json()) > 1
    assert str(door.site.root) not in health.text()
    assert ".sqlite" not in health.text()
    assert door.request("HEAD", "/health").status == 503
    page = door.request("GET", "/locks/x", b"", BROWSER)
    assert page.status == 503
    assert_page(page)


@pytest.mark.parametrize("umask", [0o022, 0, 0o077])
def test_all_state_is_under_var_which_is_0700_with_files_of_0600(open_site, umask):
    before = os.umask(umask)
    try:
        door = open_site()
        door.site.var.chmod(0o755)
        door.granted("x")
        door.read("x")
        door.renew("x")
        door.acquire("x", "bob", remote_addr="2001:db8::1")
        door.delete("x")
    finally:
        os.umask(before)
    assert [path.name for path in door.site.root.iterdir()] == ["var"]
    assert door.site.var.stat().st_mode & 0o7777 == 0o700
    modes = modes_below(door.site.var)
    assert "locks.sqlite3" in modes
    assert any(name.startswith("rate-limits/") for name in modes)
    for name, mode in modes.items():
        assert mode == (0o700 if (door.site.var / name).is_dir() else 0o600), name


def test_locks_survive_a_restart(open_site):
    door = open_site()
    lock = door.granted("x", "alice", 60)
    door = open_site(clock=door.clock)
    assert door.read("x").json() == lock
    assert door.acquire("x", "bob").json()["acquired"] is False
    assert door.renew("x", "alice").status == 200


def test_a_database_of_only_the_five_columns_rows_is_shown_as_it_is(door):
    lock = door.granted("x", "alice", 60)
    with sqlite3.connect(door.site.database) as connection:
        connection.execute(
            "INSERT INTO distributed_locks (resource, owner, expires_at, acquired_at) VALUES ('y', 'bob', ?, ?)",
            (lock["expires_at"], lock["acquired_at"]),
        )
    connection.close()
    assert door.read("y").json()["owner"] == "bob"
    assert door.acquire("y", "alice").json()["acquired"] is False
    assert door.renew("y", "bob", 90).status == 200
    assert door.delete("y", "bob").status == 204


def test_a_missing_database_where_one_has_been_is_503_because_an_empty_one_would_free_every_lock(open_site):
    door = open_site()
    door.granted("x", "alice", 60)
    lose_database(door)
    assert_out_of_order(door)
    door = open_site(clock=door.clock)
    assert_out_of_order(door)
    assert not door.site.database.exists()


def test_the_operator_may_accept_a_new_database_once(open_site):
    door = open_site()
    door.granted("x", "alice", 60)
    lose_database(door)
    (door.site.var / "locks.created").unlink()
    assert door.acquire("x", "bob").json()["acquired"] is True
    assert (door.site.var / "locks.created").exists()
    assert door.request("GET", "/health").status == 200
    lose_database(door)
    assert_out_of_order(door)


def test_an_emptied_database_is_503_too(open_site):
    door = open_site()
    door.granted("x", "alice", 60)
    lose_database(door)
    door.site.database.write_bytes(b"")
    assert_out_of_order(door)


@pytest.mark.parametrize(
    "content", [b"x", b"not a database, but text" * 400, b"\0" * 8192, b"SQLite format 3\0" + b"\1" * 9000]
)
def test_a_corrupt_database_is_503_and_is_left_as_it_is(open_site, content):
    door = open_site()
    door.granted("x", "alice", 60)
    lose_database(door)
    door.site.database.write_bytes(content)
    assert_out_of_order(door)
    assert door.site.database.read_bytes() == content


def test_a_folder_in_the_place_of_the_database_is_503(open_site):
    door = open_site()
    door.granted("x", "alice", 60)
    lose_database(door)
    door.site.database.mkdir()
    assert_out_of_order(door)


def test_a_fault_of_the_store_is_one_log_line_that_names_the_cause_without_the_caller(open_site, capfd, caplog):
    door = open_site()
    door.granted("x", "alice", 60)
    lose_database(door)
    capfd.readouterr()
    door.acquire("secret-name", "secret-owner", remote_addr="203.0.113.77")
    log = door.log.getvalue() + capfd.readouterr().err + caplog.text
    assert len(log.strip().splitlines()) == 1
    assert "missing" in log
    for secret in ("secret", "203.0.113.77", str(door.site.root)):
        assert secret not in log


def test_a_change_now_and_then_does_a_share_of_the_clean_up_and_a_read_never(door, monkeypatch):
    monkeypatch.setattr("app.api.CHANGES_A_SHARE", 1)
    door.granted("long ended", "alice", 1)
    door.clock.advance(100_000)
    for target in ("/locks/x", "/locks", "/health"):
        door.request("GET", target)
        door.request("HEAD", target)
        assert len(door.site.stored()) == 1
    door.acquire("x")
    assert [row[1] for row in door.site.stored()] == ["x"]


def test_pages_that_need_no_store_are_answered_without_it(open_site):
    door = open_site()
    door.granted("x")
    lose_database(door)
    assert door.request("GET", "/problems/unavailable").status == 200
    assert door.request("OPTIONS", "/locks/x").status == 204
    assert door.request("PUT", "/locks/x").status == 405
    assert door.request("POST", "/locks/x", b"{").status == 400
    assert door.request("POST", "/locks/x", {}).status == 422


@pytest.fixture
def door_without_limits(open_site):
    door = open_site(BUSY_TIMEOUT_SECONDS=1, RATE_LIMITS=UNLIMITED)
    door.granted("x", "alice", 60)
    return door


@pytest.fixture
def writer(door_without_limits):
    """Another process in the middle of a write."""
    connection = sqlite3.connect(door_without_limits.site.database, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def test_a_store_that_is_busy_for_longer_than_the_time_out_is_503_with_nothing_half_done(door_without_limits, writer):
    before = door_without_limits.site.stored()
    assert_problem(door_without_limits.acquire("y", "alice"), "unavailable")
    assert door_without_limits.site.stored() == before


def test_a_request_that_waited_for_less_than_the_time_out_is_answered(door_without_limits, writer):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(door_without_limits.acquire("y", "alice")))
    thread.start()
    writer.rollback()
    thread.join()
    assert answers[0].json()["acquired"] is True


def test_a_read_never_waits_for_a_writer(door_without_limits, writer):
    door = door_without_limits
    assert door.read("x").json()["owner"] == "alice"
    assert door.read("y").status == 404
    assert [lock["resource"] for lock in door.list().json()["locks"]] == ["x"]
