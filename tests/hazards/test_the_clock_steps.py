"""The wall clock of a rented server is set by others, and sometimes by an hour.

Going by it, nobody can tell how much of a lease is over after a step back. The promise kept is: a holder is never cut
short by a step back, nobody else is let in before the length that was promised has truly passed, and that length,
counted from when the step is first seen by a contender, is also the longest that it can last.
"""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import LeaseNotFound, NotHolder
from app.file_rate_limits import FileRateLimitStorage
from app.lease import Held, Lease, ms_from_instant
from app.memory_stores import InMemoryLockStore
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock

HOUR = 3600


@pytest.fixture(params=["sqlite", "memory"])
def store(request, tmp_path, clock):
    if request.param == "sqlite":
        return SqliteLockStore(str(tmp_path), clock)
    return InMemoryLockStore(clock)


def seconds_until_granted(store, clock, at_most: int) -> int:
    """How many seconds a contender that asks once a second is kept out."""
    for waited in range(at_most):
        if isinstance(store.acquire("r", "contender", 60), Lease):
            return waited
        clock.advance(1)
    raise AssertionError(f"still held after {at_most} s")


@pytest.mark.parametrize("step", [-0.001, -1, -59, -60, -HOUR, -365 * 24 * HOUR])
def test_after_a_step_back_at_once_the_lease_lasts_its_length(store, clock, step):
    store.acquire("r", "holder", 60)
    clock.advance(step)

    assert seconds_until_granted(store, clock, 200) == 60


def test_the_length_counts_from_when_a_contender_first_sees_the_step(store, clock):
    store.acquire("r", "holder", 60)
    clock.advance(20)
    clock.advance(-HOUR)
    clock.advance(15)

    assert seconds_until_granted(store, clock, 200) == 60


def test_a_contender_is_told_no_longer_wait_than_the_leases_length(store, clock):
    store.acquire("r", "holder", 60)
    clock.advance(-HOUR)

    held = store.acquire("r", "contender", 5)

    assert isinstance(held, Held)
    assert held.retry_after_seconds == 60


def test_a_step_back_is_not_added_to_a_renewed_lease(store, clock):
    """The grant lies in the past, only the renewal lies in the future."""
    store.acquire("r", "holder", 60)
    clock.advance(30)
    store.renew("r", "holder", 90)
    clock.advance(-20)

    assert seconds_until_granted(store, clock, 200) == 90


def test_a_lease_granted_again_lasts_the_length_of_its_last_grant(store, clock):
    store.acquire("r", "holder", 600)
    store.acquire("r", "holder", 60)
    clock.advance(-HOUR)

    assert seconds_until_granted(store, clock, 700) == 60


def test_a_second_step_back_starts_the_length_again_and_no_more(store, clock):
    store.acquire("r", "holder", 60)
    clock.advance(-HOUR)
    assert isinstance(store.acquire("r", "contender", 60), Held)
    clock.advance(30)
    clock.advance(-HOUR)

    assert seconds_until_granted(store, clock, 200) == 60


def test_a_step_forth_and_back_that_nobody_saw_changes_nothing(store, clock):
    granted = store.acquire("r", "holder", 60)
    clock.advance(10)
    clock.advance(HOUR)
    clock.advance(-HOUR)

    assert store.read("r").expires_at == granted.expires_at
    assert seconds_until_granted(store, clock, 200) == 50


def test_who_took_over_after_a_step_forth_keeps_the_lock_through_the_step_back(store, clock):
    store.acquire("r", "first", 60)
    clock.advance(HOUR)
    second = store.acquire("r", "second", 60)
    assert isinstance(second, Lease)
    clock.advance(-HOUR)

    for _ in range(59):
        clock.advance(1)
        with pytest.raises(NotHolder):
            store.renew("r", "first", 60)
        with pytest.raises(NotHolder):
            store.release("r", "first")
        assert isinstance(store.acquire("r", "first", 60), Held)
        assert store.read("r").owner == "second"
        assert store.read("r").fencing_token == second.fencing_token
    renewed = store.renew("r", "second", 60)
    assert renewed.fencing_token == second.fencing_token


def test_the_holder_can_renew_and_release_after_a_step_back(store, clock):
    granted = store.acquire("r", "holder", 60)
    clock.advance(-HOUR)

    renewed = store.renew("r", "holder", 60)

    assert renewed.fencing_token == granted.fencing_token
    assert ms_from_instant(renewed.expires_at) == clock.now_ms() + 60_000
    store.release("r", "holder")
    with pytest.raises(LeaseNotFound):
        store.read("r")


def test_what_is_shown_after_a_step_back_has_no_instant_beyond_the_promise(store, clock):
    store.acquire("r", "holder", 60)
    clock.advance(-HOUR)

    for lease in [store.read("r"), *store.list_live("", 10, "")]:
        assert ms_from_instant(lease.acquired_at) <= clock.now_ms()
        assert ms_from_instant(lease.expires_at) == clock.now_ms() + 60_000


def test_an_expired_lease_is_not_revived_by_a_step_back_once_another_has_taken_it(store, clock):
    store.acquire("r", "first", 60)
    clock.advance(60)
    store.acquire("r", "second", 10)
    clock.advance(-30)

    with pytest.raises(NotHolder):
        store.renew("r", "first", 60)
    assert seconds_until_granted(store, clock, 200) == 10


MOVES = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from([0.001, 0.5, 1, 9.999, 10, 30, 60])),
    st.tuples(st.just("step back"), st.sampled_from([0.001, 1, 10, 59.999, 60, 3600, 1e6])),
    st.tuples(st.just("acquire"), st.sampled_from(["ann", "bob", "eve"]), st.sampled_from([1, 10, 60])),
    st.tuples(st.just("renew"), st.sampled_from(["ann", "bob", "eve"]), st.sampled_from([1, 10, 60])),
    st.tuples(st.just("release"), st.sampled_from(["ann", "bob", "eve"])),
    st.tuples(st.just("clean up"), st.sampled_from([0, 5])),
)


@settings(max_examples=100, deadline=None)
@given(moves=st.lists(MOVES, max_size=40))
def test_steps_back_never_let_a_second_holder_in_before_the_promised_length_has_passed(moves):
    with tempfile.TemporaryDirectory() as folder:
        clock = ManualClock()
        store = SqliteLockStore(folder, clock)
        true_ms = 0
        holder, promised_until_ms = "", 0
        for move, *facts in moves:
            if move == "pass":
                clock.advance(facts[0])
                true_ms += round(facts[0] * 1000)
            elif move == "step back":
                clock.advance(-facts[0])
            elif move == "clean up":
                store.delete_expired(facts[0], 100)
            elif move == "release":
                try:
                    store.release("r", facts[0])
                except (LeaseNotFound, NotHolder):
                    continue
                assert facts[0] == holder
                holder, promised_until_ms = "", 0
            else:
                try:
                    lease = getattr(store, move)("r", *facts)
                except (LeaseNotFound, NotHolder):
                    continue
                if isinstance(lease, Lease):
                    assert holder == facts[0] or true_ms >= promised_until_ms, f"{holder} and {facts[0]} hold it"
                    holder, promised_until_ms = facts[0], true_ms + facts[1] * 1000


# The rate limiter


@pytest.mark.parametrize("step", [-1, -59, -HOUR, -365 * 24 * HOUR])
def test_after_a_step_back_a_refused_client_waits_no_longer_than_one_window(tmp_path, clock, step):
    storage = FileRateLimitStorage(str(tmp_path), clock)
    for _ in range(5):
        storage.hit("k", 60, ceiling=4)
    clock.advance(step)

    waited = 0
    while storage.hit("k", 60, ceiling=4)[0] == 4:
        clock.advance(1)
        waited += 1
        assert waited <= 120

    assert waited <= (60 if step <= -60 else 60 - step)


def test_an_hour_forth_and_back_never_makes_a_window_longer_than_its_length(tmp_path, clock):
    storage = FileRateLimitStorage(str(tmp_path), clock)
    storage.hit("k", 60)
    clock.advance(HOUR)
    assert storage.hit("k", 60)[0] == 1
    clock.advance(-HOUR)

    count, reset_at = storage.hit("k", 60)

    assert count == 2
    assert reset_at <= clock.now_ms() / 1000 + 60
    clock.advance(60)
    assert storage.hit("k", 60)[0] == 1
