"""CONTRACT 2, acquire: who is granted what, and what a refused contender is told."""

from __future__ import annotations

import pytest

from tests.doors import UNLIMITED
from tests.http.shape import assert_lock, instant


def test_a_free_name_is_granted_and_the_whole_lock_comes_back(door):
    now = door.clock.now_ms()
    answer = door.acquire("payment:42", "worker-1", 60)
    assert answer.status == 200
    assert answer.media_type == "application/json"
    assert list(answer.json()) == ["acquired", "lock"]
    assert answer.json()["acquired"] is True
    assert_lock(
        answer.json()["lock"],
        resource="payment:42",
        owner="worker-1",
        acquired_at=instant(now),
        expires_at=instant(now + 60_000),
    )
    assert answer.header("Retry-After") is None


def test_a_grant_is_stored_as_the_five_columns_say(door):
    lock = door.granted("payment:42", "worker-1", 60)
    [row] = door.site.stored()
    assert row[:5] == (lock["fencing_token"], "payment:42", "worker-1", lock["expires_at"], lock["acquired_at"])


def test_the_table_of_locks_has_the_five_columns_of_the_page(door):
    door.granted("x")
    [(statement,)] = door.site._query("SELECT sql FROM sqlite_master WHERE name = 'distributed_locks'")
    words = " ".join(statement.split())
    assert "AUTOINCREMENT" in words
    columns = door.site._query("PRAGMA table_info(distributed_locks)")
    assert [(name, kind, required) for _, name, kind, required, _, key in columns if not key][:4] == [
        ("resource", "TEXT", 1),
        ("owner", "TEXT", 1),
        ("expires_at", "TEXT", 1),
        ("acquired_at", "TEXT", 1),
    ]
    assert [name for _, name, _, _, _, key in columns if key] == ["id"]


@pytest.mark.parametrize("milliseconds", [0, 1, 7, 10, 99, 100, 500, 999])
def test_instants_have_exactly_three_decimals(door, milliseconds):
    door.clock.set_ms(1_796_097_906_000 + milliseconds)
    lock = door.granted("x", ttl_seconds=1)
    assert lock["acquired_at"] == f"2026-12-01T04:05:06.{milliseconds:03d}Z"
    assert lock["expires_at"] == f"2026-12-01T04:05:07.{milliseconds:03d}Z"


@pytest.mark.parametrize(
    ("now", "ttl_seconds", "end"),
    [
        ("2027-12-31T23:59:59.500Z", 1, "2028-01-01T00:00:00.500Z"),
        ("2028-02-28T23:59:59.999Z", 1, "2028-02-29T00:00:00.999Z"),
        ("2027-02-28T23:59:59.999Z", 1, "2027-03-01T00:00:00.999Z"),
        ("2028-02-29T12:00:00.001Z", 604800, "2028-03-07T12:00:00.001Z"),
        ("2038-01-19T03:14:07.000Z", 1, "2038-01-19T03:14:08.000Z"),
        ("2100-02-28T00:00:00.000Z", 86400, "2100-03-01T00:00:00.000Z"),
    ],
)
def test_a_lease_ends_exactly_ttl_seconds_after_its_first_grant_across_every_calendar_edge(door, now, ttl_seconds, end):
    import datetime

    moment = datetime.datetime.strptime(now, "%Y-%m-%dT%H:%M:%S.%fZ") - datetime.datetime(1970, 1, 1)
    door.clock.set_ms(moment // datetime.timedelta(milliseconds=1))
    lock = door.granted("x", ttl_seconds=ttl_seconds)
    assert (lock["acquired_at"], lock["expires_at"]) == (now, end)


def test_an_operation_uses_one_now_even_if_the_clock_moves_at_each_look(open_site):
    class Restless:
        def __init__(self):
            self.value = 1_796_097_906_123

        def now_ms(self):
            self.value += 137
            return self.value

    door = open_site(clock=Restless(), RATE_LIMITS=UNLIMITED)
    lock = door.granted("x", ttl_seconds=5)
    assert lock["acquired_at"][17:] > "00.000Z"

    def ms(text):
        return (int(text[14:16]) * 60 + int(text[17:19])) * 1000 + int(text[20:23])

    assert ms(lock["expires_at"]) - ms(lock["acquired_at"]) == 5000


def test_another_owner_is_told_false_and_nothing_else_with_status_200(door):
    door.granted("x", "alice", 60)
    before = door.site.stored()
    answer = door.acquire("x", "bob", 60)
    assert answer.status == 200
    assert answer.media_type == "application/json"
    assert answer.json() == {"acquired": False, "resource": "x"}
    assert door.site.stored() == before


def test_a_refused_contender_gets_the_resource_as_it_is_named_not_as_it_was_encoded(door):
    door.granted("a bé%", "alice")
    answer = door.acquire("a bé%", "bob")
    assert answer.json() == {"acquired": False, "resource": "a bé%"}


@pytest.mark.parametrize(
    ("passed", "retry_after"),
    [
        (0, "60"),
        (0.001, "60"),
        (0.999, "60"),
        (1, "59"),
        (1.001, "59"),
        (58, "2"),
        (58.5, "2"),
        (59, "1"),
        (59.999, "1"),
    ],
)
def test_retry_after_says_the_whole_seconds_to_the_end_rounded_up_and_at_least_one(door, passed, retry_after):
    door.granted("x", "alice", 60)
    door.clock.advance(passed)
    assert door.acquire("x", "bob").header("Retry-After") == retry_after


def test_retry_after_follows_a_renewal(door):
    door.granted("x", "alice", 60)
    door.renew("x", "alice", 300)
    assert door.acquire("x", "bob").header("Retry-After") == "300"


def test_who_comes_back_after_retry_after_is_granted(door):
    door.granted("x", "alice", 5)
    door.clock.advance(0.4)
    door.clock.advance(int(door.acquire("x", "bob").header("Retry-After")))
    assert door.acquire("x", "bob").json()["acquired"] is True


def test_the_same_owner_is_granted_again_with_the_same_token_and_both_instants_moved(door):
    first = door.granted("x", "alice", 60)
    door.clock.advance(10.5)
    now = door.clock.now_ms()
    second = door.granted("x", "alice", 30)
    assert second["fencing_token"] == first["fencing_token"]
    assert second["acquired_at"] == instant(now)
    assert second["expires_at"] == instant(now + 30_000)
    assert door.read("x").json() == second


def test_a_grant_again_may_shorten_the_lease(door):
    door.granted("x", "alice", 600)
    door.granted("x", "alice", 1)
    door.clock.advance(1)
    assert door.read("x").status == 404


def test_a_retry_after_a_lost_answer_changes_nothing(door):
    first = door.acquire("x", "alice", 60)
    again = door.acquire("x", "alice", 60)
    assert first.json() == again.json()


def test_one_owner_may_hold_many_names_and_they_do_not_touch_each_other(door):
    locks = {name: door.granted(name) for name in ("a", "b", "c")}
    door.delete("b")
    assert door.read("a").json() == locks["a"]
    assert door.read("c").json() == locks["c"]


@pytest.mark.parametrize("passed", [59.999, 59.5, 1, 0])
def test_a_lease_lives_until_its_last_millisecond(door, passed):
    door.granted("x", "alice", 60)
    door.clock.advance(passed)
    assert door.read("x").status == 200
    assert door.acquire("x", "bob").json()["acquired"] is False


@pytest.mark.parametrize("passed", [60, 60.001, 61, 86_400, 10_000_000])
def test_at_the_instant_of_its_end_and_after_it_a_lease_does_not_exist_for_anyone(door, passed):
    old = door.granted("x", "alice", 60)
    door.clock.advance(passed)
    assert door.read("x").status == 404
    assert door.renew("x", "alice").status == 404
    assert door.delete("x", "alice").status == 404
    assert door.release("x", "alice").status == 404
    assert door.renew("x", "bob").status == 404
    assert door.delete("x", "bob").status == 404
    assert door.list().json()["locks"] == []
    assert door.granted("x", "bob")["fencing_token"] > old["fencing_token"]


def test_the_same_owner_after_expiry_gets_a_new_lease_with_a_higher_token(door):
    old = door.granted("x", "alice", 60)
    door.clock.advance(60)
    assert door.granted("x", "alice", 60)["fencing_token"] > old["fencing_token"]


def test_a_stale_holder_can_neither_release_nor_renew_the_next_holders_lease(door):
    door.granted("x", "alice", 60)
    door.clock.advance(60)
    lock = door.granted("x", "bob", 60)
    before = door.site.stored()
    assert door.renew("x", "alice").status == 403
    assert door.delete("x", "alice").status == 403
    assert door.release("x", "alice").status == 403
    assert door.acquire("x", "alice").json()["acquired"] is False
    assert door.site.stored() == before
    assert door.read("x").json() == lock
