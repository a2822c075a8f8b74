"""The rules of the lock store, for every implementation."""

from __future__ import annotations

import datetime

import pytest

from app.errors import CapacityReached, LeaseNotFound, NotHolder
from app.lease import Held, Lease


def instant(now_ms: int) -> str:
    """RFC 3339, written by the standard library and not by the code under test."""
    moment = datetime.datetime.fromtimestamp(0, datetime.timezone.utc) + datetime.timedelta(milliseconds=now_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def facts(lease: Lease) -> tuple[str, str, str, str, int]:
    """What a caller sees of a lease."""
    return lease.resource, lease.owner, lease.acquired_at, lease.expires_at, lease.fencing_token


def names(leases: list[Lease]) -> list[str]:
    return [lease.resource for lease in leases]


# Acquire


def test_the_first_acquire_grants_a_lease_of_exactly_the_asked_length(store, clock):
    lease = store.acquire("payment:42", "worker-1", 60)

    assert isinstance(lease, Lease)
    assert lease.resource == "payment:42"
    assert lease.owner == "worker-1"
    assert lease.acquired_at == instant(clock.now_ms())
    assert lease.expires_at == instant(clock.now_ms() + 60_000)
    assert type(lease.fencing_token) is int
    assert lease.fencing_token >= 1


@pytest.mark.parametrize("now_ms", [0, 1, 999, 951_782_399_999, 951_782_400_000, 1_709_164_800_010, 4_102_444_799_100])
def test_instants_have_three_decimals_at_any_moment(store, clock, now_ms):
    clock.set_ms(now_ms)

    lease = store.acquire("r", "o", 1)

    assert (lease.acquired_at, lease.expires_at) == (instant(now_ms), instant(now_ms + 1000))


@pytest.mark.parametrize("ttl_seconds", [1, 59, 86_400, 604_800])
def test_a_lease_lasts_as_long_as_asked(store, clock, ttl_seconds):
    granted = store.acquire("r", "o", ttl_seconds)
    clock.advance(ttl_seconds - 0.001)
    assert facts(store.read("r")) == facts(granted)

    clock.advance(0.001)
    with pytest.raises(LeaseNotFound):
        store.read("r")


def test_a_held_lease_is_not_granted_to_another_and_does_not_change(store, clock):
    granted = store.acquire("r", "holder", 60)
    clock.advance(1)

    assert isinstance(store.acquire("r", "contender", 600), Held)

    assert facts(store.read("r")) == facts(granted)
    assert [facts(lease) for lease in store.list_live("", 10, "")] == [facts(granted)]


@pytest.mark.parametrize(
    ("passed_seconds", "retry_after_seconds"),
    [(0, 60), (0.001, 60), (0.999, 60), (1, 59), (1.001, 59), (58, 2), (58.5, 2), (59, 1), (59.5, 1), (59.999, 1)],
)
def test_retry_after_is_the_remaining_time_rounded_up(store, clock, passed_seconds, retry_after_seconds):
    store.acquire("r", "holder", 60)
    clock.advance(passed_seconds)

    held = store.acquire("r", "contender", 5)

    assert isinstance(held, Held)
    assert held.retry_after_seconds == retry_after_seconds
    assert type(held.retry_after_seconds) is int


def test_the_same_owner_is_granted_again_with_the_same_token_and_both_instants_moved(store, clock):
    first = store.acquire("r", "o", 60)
    clock.advance(10.5)

    again = store.acquire("r", "o", 30)

    assert isinstance(again, Lease)
    assert again.fencing_token == first.fencing_token
    assert again.acquired_at == instant(clock.now_ms())
    assert again.expires_at == instant(clock.now_ms() + 30_000)
    assert facts(store.read("r")) == facts(again)


def test_the_same_owner_one_millisecond_before_the_end_keeps_the_token(store, clock):
    first = store.acquire("r", "o", 60)
    clock.advance(59.999)

    assert store.acquire("r", "o", 60).fencing_token == first.fencing_token


def test_the_same_owner_at_the_instant_of_expiry_gets_a_new_lease_with_a_higher_token(store, clock):
    first = store.acquire("r", "o", 60)
    clock.advance(60)

    assert store.acquire("r", "o", 60).fencing_token > first.fencing_token


def test_another_owner_is_refused_one_millisecond_before_the_end_and_granted_at_it(store, clock):
    first = store.acquire("r", "holder", 60)
    clock.advance(59.999)
    assert isinstance(store.acquire("r", "contender", 60), Held)

    clock.advance(0.001)
    second = store.acquire("r", "contender", 60)

    assert isinstance(second, Lease)
    assert second.owner == "contender"
    assert second.acquired_at == first.expires_at
    assert second.fencing_token > first.fencing_token
    assert facts(store.read("r")) == facts(second)


def test_resources_do_not_touch_each_other(store):
    first = store.acquire("a", "o", 60)
    second = store.acquire("b", "p", 60)

    assert facts(store.read("a")) == facts(first)
    assert facts(store.read("b")) == facts(second)
    store.release("a", "o")
    assert facts(store.read("b")) == facts(second)


# Names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("job", "JOB"),
        ("caf\u00e9", "cafe\u0301"),
        ("stra\u00dfe", "strasse"),
        ("a", "a "),
        ("a", " a"),
        ("1", "1.0"),
        ("1", "01"),
        ("\ufb01", "fi"),
        ("%61", "a"),
        ("null", "NULL"),
    ],
)
def test_names_are_compared_as_given(store, one, other):
    store.acquire(one, "o", 60)
    with pytest.raises(LeaseNotFound):
        store.read(other)
    assert isinstance(store.acquire(other, "p", 60), Lease)

    store.acquire("owned", one, 60)
    assert isinstance(store.acquire("owned", other, 60), Held)
    with pytest.raises(NotHolder):
        store.renew("owned", other, 60)
    with pytest.raises(NotHolder):
        store.release("owned", other)
    assert store.read("owned").owner == one


@pytest.mark.parametrize(
    "name",
    [
        "resource'; DROP TABLE distributed_locks; --",
        "' OR '1'='1",
        '"; DELETE FROM distributed_locks',
        "%",
        "_",
        "*",
        "?",
        "[a-z]",
        "\\",
        ":1",
        "..",
        ".",
        "0",
        "\u95c2",
        "\U0001f512" * 255,
        "\u202e",
        "\ufeff",
        "\uffff",
        "\U0010ffff",
    ],
)
def test_any_name_is_a_literal_name(store, name):
    bystander = store.acquire("bystander", "somebody", 60)

    granted = store.acquire(name, name, 60)

    assert (granted.resource, granted.owner) == (name, name)
    assert facts(store.read(name)) == facts(granted)
    assert names(store.list_live(name, 10, "")) == [name]
    assert store.renew(name, name, 60).resource == name
    store.release(name, name)
    with pytest.raises(LeaseNotFound):
        store.read(name)
    assert [facts(lease) for lease in store.list_live("", 10, "")] == [facts(bystander)]


# Read


def test_reading_an_unknown_resource_finds_nothing(store):
    with pytest.raises(LeaseNotFound):
        store.read("nothing")


def test_reading_returns_what_was_granted_and_changes_nothing(store, clock):
    granted = store.acquire("r", "o", 60)
    clock.advance(30)

    assert facts(store.read("r")) == facts(granted)
    assert facts(store.read("r")) == facts(granted)


# Renew


def test_renew_replaces_the_end_and_never_adds(store, clock):
    granted = store.acquire("r", "o", 60)
    clock.advance(10)

    renewed = store.renew("r", "o", 60)

    assert renewed.expires_at == instant(clock.now_ms() + 60_000)
    assert renewed.acquired_at == granted.acquired_at
    assert renewed.fencing_token == granted.fencing_token
    assert (renewed.resource, renewed.owner) == ("r", "o")
    assert facts(store.read("r")) == facts(renewed)


def test_renew_may_shorten(store, clock):
    store.acquire("r", "o", 600)

    renewed = store.renew("r", "o", 1)

    assert renewed.expires_at == instant(clock.now_ms() + 1000)
    clock.advance(1)
    with pytest.raises(LeaseNotFound):
        store.read("r")


def test_renew_counts_to_the_millisecond_before_the_end(store, clock):
    store.acquire("r", "o", 60)
    clock.advance(59.999)
    assert store.renew("r", "o", 60).expires_at == instant(clock.now_ms() + 60_000)

    clock.advance(59.999)
    assert store.renew("r", "o", 60).expires_at == instant(clock.now_ms() + 60_000)


def test_renew_at_the_instant_of_expiry_revives_nothing(store, clock):
    store.acquire("r", "o", 60)
    clock.advance(60)

    with pytest.raises(LeaseNotFound):
        store.renew("r", "o", 60)
    with pytest.raises(LeaseNotFound):
        store.read("r")


def test_renew_of_another_owners_expired_lease_is_not_found(store, clock):
    store.acquire("r", "holder", 60)
    clock.advance(60)

    with pytest.raises(LeaseNotFound):
        store.renew("r", "contender", 60)


def test_renew_by_another_owner_is_refused_and_changes_nothing(store, clock):
    granted = store.acquire("r", "holder", 60)
    clock.advance(1)

    with pytest.raises(NotHolder):
        store.renew("r", "contender", 600)

    assert facts(store.read("r")) == facts(granted)


def test_renew_of_an_unknown_resource_is_not_found_and_makes_nothing(store):
    with pytest.raises(LeaseNotFound):
        store.renew("r", "o", 60)
    assert store.list_live("", 10, "") == []


def test_a_stale_holder_cannot_renew_the_next_holders_lease(store, clock):
    store.acquire("r", "stale", 60)
    clock.advance(60)
    granted = store.acquire("r", "next", 60)

    with pytest.raises(NotHolder):
        store.renew("r", "stale", 600)

    assert facts(store.read("r")) == facts(granted)


def test_the_end_of_a_renewed_lease_decides_for_contenders(store, clock):
    store.acquire("r", "holder", 60)
    clock.advance(59)
    store.renew("r", "holder", 60)
    clock.advance(30)

    held = store.acquire("r", "contender", 60)

    assert isinstance(held, Held)
    assert held.retry_after_seconds == 30


# Release


def test_release_deletes_and_a_second_release_finds_nothing(store):
    store.acquire("r", "o", 60)

    assert store.release("r", "o") is None

    with pytest.raises(LeaseNotFound):
        store.read("r")
    with pytest.raises(LeaseNotFound):
        store.release("r", "o")
    assert store.list_live("", 10, "") == []


def test_a_released_lease_is_free_for_another_at_once(store):
    store.acquire("r", "o", 60)
    store.release("r", "o")

    assert store.acquire("r", "p", 60).owner == "p"


def test_release_by_another_owner_is_refused_and_changes_nothing(store):
    granted = store.acquire("r", "holder", 60)

    with pytest.raises(NotHolder):
        store.release("r", "contender")

    assert facts(store.read("r")) == facts(granted)


def test_release_of_an_unknown_resource_is_not_found(store):
    with pytest.raises(LeaseNotFound):
        store.release("r", "o")


def test_release_at_the_instant_of_expiry_is_not_found(store, clock):
    store.acquire("r", "o", 60)
    clock.advance(60)

    with pytest.raises(LeaseNotFound):
        store.release("r", "o")
    with pytest.raises(LeaseNotFound):
        store.release("r", "another")


def test_release_one_millisecond_before_the_end_counts(store, clock):
    store.acquire("r", "o", 60)
    clock.advance(59.999)

    store.release("r", "o")


def test_a_stale_holder_cannot_release_the_next_holders_lease(store, clock):
    store.acquire("r", "stale", 60)
    clock.advance(60)
    granted = store.acquire("r", "next", 60)

    with pytest.raises(NotHolder):
        store.release("r", "stale")

    assert facts(store.read("r")) == facts(granted)


# Fencing tokens


def test_tokens_rise_over_all_resources(store):
    tokens = [store.acquire(f"r{number % 7}-{number}", "o", 60).fencing_token for number in range(30)]

    assert tokens == sorted(set(tokens))


def test_tokens_rise_over_releases(store):
    tokens = []
    for _ in range(5):
        tokens.append(store.acquire("r", "o", 60).fencing_token)
        store.release("r", "o")

    assert tokens == sorted(set(tokens))


def test_tokens_rise_over_expiry(store, clock):
    tokens = []
    for number in range(5):
        tokens.append(store.acquire("r", f"o{number}", 60).fencing_token)
        clock.advance(60)

    assert tokens == sorted(set(tokens))


def test_tokens_rise_over_clean_up_of_every_row(store, clock):
    before = [store.acquire(f"r{number}", "o", 60).fencing_token for number in range(5)]
    clock.advance(61)
    assert store.delete_expired(0, 100) == 5

    assert store.acquire("r0", "o", 60).fencing_token > max(before)


def test_tokens_rise_over_reopening(locks, store):
    first = store.acquire("r", "o", 60)
    store.release("r", "o")
    store = locks.reopen(store)
    second = store.acquire("r", "o", 60)
    store.release("r", "o")
    store = locks.reopen(store)
    third = store.acquire("r2", "o", 60)

    assert first.fencing_token < second.fencing_token < third.fencing_token


def test_refusals_do_not_reuse_or_lower_a_token(store):
    first = store.acquire("r", "holder", 60)
    for _ in range(3):
        store.acquire("r", "contender", 60)
    second = store.acquire("s", "contender", 60)
    store.release("r", "holder")
    third = store.acquire("r", "contender", 60)

    assert first.fencing_token < second.fencing_token < third.fencing_token


def test_a_lease_outlives_reopening(locks, store, clock):
    granted = store.acquire("r", "o", 60)
    renewed = store.renew("r", "o", 90)
    store = locks.reopen(store)

    assert facts(store.read("r")) == facts(renewed)
    assert store.acquire("r", "o", 60).fencing_token == granted.fencing_token
    assert isinstance(store.acquire("r", "p", 60), Held)


# Capacity


@pytest.fixture
def full(locks, clock):
    """A store of three live leases that takes no more."""
    store = locks.open(max_locks=3)
    for number in range(3):
        store.acquire(f"r{number}", "o", 60)
    return store


def test_a_fresh_name_beyond_capacity_is_refused_and_nothing_is_stored(full):
    before = [facts(lease) for lease in full.list_live("", 10, "")]

    with pytest.raises(CapacityReached):
        full.acquire("one too many", "o", 60)

    assert [facts(lease) for lease in full.list_live("", 10, "")] == before
    with pytest.raises(LeaseNotFound):
        full.read("one too many")


def test_the_last_place_below_capacity_is_granted(locks):
    store = locks.open(max_locks=1)

    assert isinstance(store.acquire("r", "o", 60), Lease)


def test_at_capacity_a_live_lease_is_granted_again_to_its_owner(full, clock):
    token = full.read("r1").fencing_token
    clock.advance(1)

    again = full.acquire("r1", "o", 120)

    assert again.fencing_token == token
    assert again.expires_at == instant(clock.now_ms() + 120_000)


def test_at_capacity_another_owner_is_told_held(full):
    assert isinstance(full.acquire("r1", "contender", 60), Held)


def test_at_capacity_renew_and_release_work(full):
    full.renew("r1", "o", 90)
    full.release("r1", "o")

    assert isinstance(full.acquire("fresh", "o", 60), Lease)
    with pytest.raises(CapacityReached):
        full.acquire("one too many", "o", 60)


def test_expired_leases_do_not_count_for_capacity(full, clock):
    clock.advance(59.999)
    with pytest.raises(CapacityReached):
        full.acquire("fresh", "o", 60)

    clock.advance(0.001)
    assert isinstance(full.acquire("fresh", "o", 60), Lease)


def test_an_expired_lease_has_no_claim_on_its_place(locks, clock):
    store = locks.open(max_locks=2)
    store.acquire("short", "o", 10)
    store.acquire("long", "o", 600)
    clock.advance(10)
    store.acquire("next", "o", 600)

    with pytest.raises(CapacityReached):
        store.acquire("short", "o", 10)


# List


def test_a_fresh_store_lists_nothing(store):
    assert store.list_live("", 100, "") == []


def test_the_list_holds_live_leases_whole_and_ordered_by_resource(store, clock):
    granted = {name: store.acquire(name, f"owner of {name}", 60) for name in ["c", "a", "b", "B", "a:1", "\u00e9", "Z"]}

    listed = store.list_live("", 100, "")

    assert names(listed) == ["B", "Z", "a", "a:1", "b", "c", "\u00e9"]
    assert [facts(lease) for lease in listed] == [facts(granted[name]) for name in names(listed)]


def test_order_is_by_code_point_beyond_the_basic_plane_too(store):
    for name in ["\U0001f512", "\ufb01", "\ue000", "\ud7ff", "\U0010ffff", "z"]:
        store.acquire(name, "o", 60)

    assert names(store.list_live("", 100, "")) == ["z", "\ud7ff", "\ue000", "\ufb01", "\U0001f512", "\U0010ffff"]


def test_expired_leases_leave_the_list_at_the_exact_instant(store, clock):
    store.acquire("long", "o", 120)
    store.acquire("short", "o", 60)
    clock.advance(59.999)
    assert names(store.list_live("", 10, "")) == ["long", "short"]

    clock.advance(0.001)
    assert names(store.list_live("", 10, "")) == ["long"]


def test_pages_hold_limit_leases_and_continue_after_the_last_name(store):
    everything = [f"r{number:02d}" for number in range(7)]
    for name in reversed(everything):
        store.acquire(name, "o", 60)

    pages, after = [], ""
    while page := store.list_live("", 3, after):
        pages.append(names(page))
        after = page[-1].resource

    assert pages == [everything[:3], everything[3:6], everything[6:]]


def test_a_page_is_filled_with_live_leases_only(store, clock):
    for number in range(6):
        store.acquire(f"r{number}", "o", 60 if number % 2 else 10)
    clock.advance(10)

    assert names(store.list_live("", 2, "")) == ["r1", "r3"]
    assert names(store.list_live("", 2, "r3")) == ["r5"]


def test_a_page_continues_after_a_name_that_is_gone(store):
    for name in ["a", "b", "c"]:
        store.acquire(name, "o", 60)
    store.release("b", "o")

    assert names(store.list_live("", 10, "b")) == ["c"]
    assert names(store.list_live("", 10, "bb")) == ["c"]
    assert names(store.list_live("", 10, "c")) == []


def test_a_prefix_narrows_the_list_and_pages_stay_within_it(store):
    for name in ["job", "job:1", "job:2", "job:3", "jo", "joc", "k", "Job:1", "a job:1"]:
        store.acquire(name, "o", 60)

    assert names(store.list_live("job", 10, "")) == ["job", "job:1", "job:2", "job:3"]
    assert names(store.list_live("job:", 2, "")) == ["job:1", "job:2"]
    assert names(store.list_live("job:", 2, "job:2")) == ["job:3"]
    assert names(store.list_live("job:", 10, "a")) == ["job:1", "job:2", "job:3"]
    assert names(store.list_live("job:", 10, "z")) == []
    assert names(store.list_live("nothing", 10, "")) == []


@pytest.mark.parametrize("wildcard", ["%", "_", "*", "?", "[a]", "\\", "\\%", "%%", "^", "'", "a%", "a_", "a*"])
def test_wildcards_in_a_prefix_are_ordinary_characters(store, wildcard):
    for name in ["a", "aa", "ab", "abc", "x", wildcard + "1", wildcard]:
        store.acquire(name, "o", 60)

    assert names(store.list_live(wildcard, 10, "")) == [wildcard, wildcard + "1"]


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        ("caf\u00e9", "caf\u00e9:1", "cafe\u0301:1"),
        ("a\ud7ff", "a\ud7ffz", "a\ue000"),
        ("a\U0010ffff", "a\U0010ffffz", "b"),
        ("\U0010ffff", "\U0010ffff\U0010ffff", "z"),
        ("a\x7e", "a\x7e1", "a\x80"),
        ("\uffff", "\uffff1", "\U00010000"),
        ("i", "i1", "I1"),
    ],
)
def test_a_prefix_is_compared_code_point_by_code_point(store, prefix, inside, outside):
    store.acquire(prefix, "o", 60)
    store.acquire(inside, "o", 60)
    store.acquire(outside, "o", 60)

    assert names(store.list_live(prefix, 10, "")) == [prefix, inside]


# Clean-up


def test_clean_up_deletes_what_ended_more_than_keep_seconds_ago_and_nothing_else(store, clock):
    store.acquire("old", "o", 10)
    store.acquire("younger", "o", 11)
    live = store.acquire("live", "o", 100_000)
    clock.advance(10 + 3600)
    assert store.delete_expired(3600, 100) == 0

    clock.advance(0.001)
    assert store.delete_expired(3600, 100) == 1
    assert store.delete_expired(3600, 100) == 0

    clock.advance(1)
    assert store.delete_expired(3600, 100) == 1
    assert [facts(lease) for lease in store.list_live("", 10, "")] == [facts(live)]
    assert facts(store.read("live")) == facts(live)


def test_clean_up_never_deletes_a_live_lease(store, clock):
    live = store.acquire("live", "o", 60)
    clock.advance(59.999)

    assert store.delete_expired(0, 100) == 0
    assert facts(store.read("live")) == facts(live)


def test_clean_up_goes_by_the_renewed_end(store, clock):
    store.acquire("r", "o", 10)
    renewed = store.renew("r", "o", 1000)
    clock.advance(500)

    assert store.delete_expired(0, 100) == 0
    assert facts(store.read("r")) == facts(renewed)


def test_clean_up_deletes_at_most_one_chunk_at_a_time(store, clock):
    for number in range(7):
        store.acquire(f"r{number}", "o", 10)
    clock.advance(100)

    assert [store.delete_expired(0, 3) for _ in range(4)] == [3, 3, 1, 0]


def test_clean_up_of_a_fresh_store_deletes_nothing(store):
    assert store.delete_expired(0, 100) == 0


def test_clean_up_does_not_count_released_leases(store, clock):
    store.acquire("r", "o", 10)
    store.release("r", "o")
    clock.advance(100)

    assert store.delete_expired(0, 100) == 0


# The clock steps


def test_a_lease_from_a_clock_that_ran_ahead_lasts_its_length_from_the_step_back(store, clock):
    clock.advance(3600)
    granted = store.acquire("r", "holder", 60)
    clock.advance(-3600)
    held = store.acquire("r", "contender", 60)
    assert isinstance(held, Held)
    assert held.retry_after_seconds == 60

    clock.advance(59.999)
    assert isinstance(store.acquire("r", "contender", 60), Held)
    clock.advance(0.001)
    taken = store.acquire("r", "contender", 60)

    assert isinstance(taken, Lease)
    assert taken.fencing_token > granted.fencing_token


def test_after_a_step_forth_the_lease_ends_and_stays_ended_for_renew(store, clock):
    store.acquire("r", "holder", 60)
    clock.advance(3600)
    with pytest.raises(LeaseNotFound):
        store.renew("r", "holder", 60)
    taken = store.acquire("r", "contender", 60)
    clock.advance(-3600)

    with pytest.raises(NotHolder):
        store.renew("r", "holder", 60)
    assert store.read("r").owner == taken.owner


# Self-check


def test_a_working_store_passes_its_own_check(store):
    assert store.check() is None


def test_the_check_changes_nothing(store):
    granted = store.acquire("r", "o", 60)
    store.check()

    assert [facts(lease) for lease in store.list_live("", 10, "")] == [facts(granted)]
