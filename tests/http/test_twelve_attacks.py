"""CONTRACT 9: the twelve attacks that must fail."""

from __future__ import annotations

import threading

from tests.http.shape import assert_problem


def test_atk_01_acquiring_what_another_holds_is_refused_and_changes_nothing(door):
    lock = door.granted("x", "alice")
    before = door.site.stored()
    answer = door.acquire("x", "mallory", 1)
    assert (answer.status, answer.json()) == (200, {"acquired": False, "resource": "x"})
    assert door.site.stored() == before
    assert door.read("x").json() == lock


def test_atk_02_releasing_anothers_lock_is_403(door):
    lock = door.granted("x", "alice")
    for answer in (door.delete("x", "mallory"), door.release("x", "mallory"), door.delete("x", "ALICE")):
        assert_problem(answer, "forbidden", "Owner mismatch.")
    assert door.read("x").json() == lock


def test_atk_03_who_waits_for_expiry_may_take_it_and_the_old_holder_can_do_nothing_about_it(door):
    old = door.granted("x", "alice", 60)
    door.clock.advance(59.999)
    assert door.acquire("x", "mallory").json()["acquired"] is False
    door.clock.advance(0.001)
    new = door.granted("x", "mallory", 60)
    assert new["fencing_token"] > old["fencing_token"]
    assert door.renew("x", "alice").status == 403
    assert door.delete("x", "alice").status == 403


def test_atk_04_renewing_anothers_lock_is_403(door):
    lock = door.granted("x", "alice")
    assert_problem(door.renew("x", "mallory", 604800), "forbidden", "Owner mismatch.")
    assert_problem(door.renew("x", "mallory", 1), "forbidden", "Owner mismatch.")
    assert door.read("x").json() == lock


def test_atk_05_a_ttl_of_0_or_less_is_422(door):
    door.granted("held", "alice")
    before = door.site.stored()
    for ttl_seconds in (0, -1, -604800, -(2**63)):
        for answer in (door.acquire("x", "alice", ttl_seconds), door.renew("held", "alice", ttl_seconds)):
            assert_problem(answer, "validation-failed", "Validation failed.")
            assert answer.faults() == {("ttl_seconds", "out_of_range")}
    assert door.site.stored() == before


def test_atk_06_sql_in_a_name_is_a_literal_name(door):
    attacks = [
        "resource'; DROP TABLE distributed_locks; --",
        "' OR '1'='1",
        '" OR ""="',
        "x' UNION SELECT * FROM sqlite_master --",
        "x\\'; DELETE FROM distributed_locks; --",
        "?1",
        ":resource",
        "$1",
        "x'||(SELECT owner FROM distributed_locks)||'",
    ]
    bystander = door.granted("bystander", "alice")
    for name in attacks:
        lock = door.granted(name, name)
        assert (lock["resource"], lock["owner"]) == (name, name)
        assert door.read(name).json() == lock
        assert [lock["resource"] for lock in door.list(prefix=name).json()["locks"]] == [name]
        assert door.acquire(name, "' OR '1'='1 ").json()["acquired"] is (name == "' OR '1'='1")
        assert door.delete(name, "x' OR 'x'='x").status == 403
        assert door.delete(name, name).status == 204
    assert door.list().json()["locks"] == [bystander]


def test_atk_07_an_owner_of_nothing_is_422(door):
    door.granted("held", "alice")
    before = door.site.stored()
    for owner in ("", " ", "\t", "\u3000", "\u00a0\u2003"):
        for answer in (door.acquire("x", owner), door.renew("held", owner), door.delete("held", owner)):
            assert_problem(answer, "validation-failed")
            assert answer.faults() == {("owner", "empty")}
    assert door.site.stored() == before


def test_atk_08_a_ttl_as_text_or_with_a_fraction_is_422(door):
    door.granted("held", "alice")
    before = door.site.stored()
    for ttl_seconds in ("3600", 60.5, 3600.0, True):
        for answer in (door.acquire("x", "alice", ttl_seconds), door.renew("held", "alice", ttl_seconds)):
            assert_problem(answer, "validation-failed")
            assert answer.faults() == {("ttl_seconds", "wrong_type")}
    assert door.site.stored() == before


def test_atk_09_the_same_owner_may_acquire_again(door):
    first = door.granted("x", "alice", 60)
    assert door.granted("x", "alice", 60) == first
    assert len(door.site.stored()) == 1


def race(door, contenders, **how):
    """Let threads acquire x at once; return who got it."""
    barrier = threading.Barrier(len(contenders))
    winners, faults = [], []

    def contend(owner):
        try:
            barrier.wait()
            answer = door.acquire("x", owner, **how)
            if answer.json()["acquired"]:
                winners.append((owner, answer.json()["lock"]["fencing_token"]))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=contend, args=(owner,)) for owner in contenders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    return winners


def test_atk_10_of_owners_who_race_one_wins_for_a_fresh_name_at_expiry_and_after_a_release(door):
    owners = [f"owner-{number}" for number in range(8)]
    last = 0
    for attempt in range(4):
        [(winner, fencing_token)] = race(door, owners, ttl_seconds=5)
        assert door.read("x").json()["owner"] == winner
        assert fencing_token > last
        last = fencing_token
        if attempt % 2:
            assert door.delete("x", winner).status == 204
        else:
            door.clock.advance(5)
    assert len(door.site.stored()) <= 1


def test_atk_11_a_missing_or_expired_lock_is_404_and_never_stale_data(door):
    assert_problem(door.read("x"), "not-found", "Lock not found.")
    door.granted("x", "alice-of-old", 60)
    door.clock.advance(60)
    assert len(door.site.stored()) == 1
    answer = door.read("x")
    assert_problem(answer, "not-found", "Lock not found.")
    assert b"alice-of-old" not in answer.body
    assert b"2026" not in answer.body
    door.granted("x", "bob", 60)
    assert door.read("x").json()["owner"] == "bob"


def test_atk_12_a_very_long_name_is_422(door):
    for length in (256, 257, 1000, 8000):
        for answer in (door.acquire("n" * length), door.read("n" * length), door.renew("n" * length)):
            assert_problem(answer, "validation-failed")
            assert ("resource", "too_long") in answer.faults()
        answer = door.acquire("x", "n" * length)
        assert answer.faults() == {("owner", "too_long")}
    assert door.site.stored() == []
