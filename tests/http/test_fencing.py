"""CONTRACT 1 and 8: the fencing token is higher for every later grant, whatever happened in between."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doors import UNLIMITED


def rising(tokens):
    return tokens == sorted(set(tokens))


def token(door, resource="x", owner="alice", ttl_seconds=60):
    return door.granted(resource, owner, ttl_seconds)["fencing_token"]


def test_tokens_rise_over_all_resources(door):
    assert rising([token(door, name) for name in ("b", "a", "c", "a b", "é")])


def test_tokens_rise_over_releases(door):
    tokens = []
    for _ in range(5):
        tokens.append(token(door))
        door.delete("x")
    assert rising(tokens)


def test_tokens_rise_over_expiry(door):
    tokens = []
    for owner in ("alice", "bob", "alice", "alice"):
        tokens.append(token(door, owner=owner))
        door.clock.advance(60)
    assert rising(tokens)


def test_tokens_rise_when_the_newest_lease_is_released_and_its_row_is_the_last_one(door):
    token(door, "a")
    newest = token(door, "b")
    door.delete("b")
    assert token(door, "c") > newest


def test_tokens_rise_over_the_clean_up_of_all_rows(door):
    newest = token(door)
    door.clock.advance(100_000)
    door.site.forget_rows()
    assert token(door, "y") > newest


def test_tokens_rise_over_restarts(open_site):
    door = open_site()
    tokens = [token(door)]
    for name in ("y", "z"):
        door = open_site(clock=door.clock)
        tokens.append(token(door, name))
    assert rising(tokens)


def test_tokens_rise_over_a_new_database_the_operator_has_accepted(open_site):
    door = open_site()
    tokens = [token(door, name) for name in "abcdef"]
    for name in ("g", "h"):
        for path in door.site.var.glob("locks.sqlite3*"):
            path.unlink()
        (door.site.var / "locks.created").unlink()
        door.clock.advance(1)
        door = open_site(clock=door.clock)
        tokens.append(token(door, name))
    assert rising(tokens)


def test_a_refused_or_repeated_request_gives_out_no_token(door):
    first = token(door)
    door.acquire("x", "bob")
    door.acquire("y", "")
    door.renew("x")
    assert token(door) == first
    door.renew("x", "alice", 600)
    assert token(door) == first
    assert door.read("x").json()["fencing_token"] == first


def test_renewals_and_reads_show_the_token_of_the_grant(door):
    first = token(door)
    assert door.renew("x").json()["fencing_token"] == first
    assert door.read("x").json()["fencing_token"] == first
    assert door.list().json()["locks"][0]["fencing_token"] == first


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "acquire", "renew", "release", "advance", "forget"]),
        st.sampled_from("abc"),
        st.sampled_from(["alice", "bob"]),
        st.integers(1, 5),
    ),
    max_size=30,
)


@given(steps=STEPS)
@settings(max_examples=25)
def test_over_any_history_a_new_holder_has_a_higher_token_and_a_lease_keeps_its_own(kept_door, steps):
    door = kept_door
    door.site.forget_rows()
    highest = max([0, *(row[0] for row in door.site.stored())])
    leases = {}  # resource -> (owner, end, token): what a reader of the page expects
    for action, name, owner, number in steps:
        now = door.clock.now_ms()
        live = {key: lease for key, lease in leases.items() if now < lease[1]}
        if action == "acquire":
            answer = door.acquire(name, owner, number).json()
            if name in live and live[name][0] != owner:
                assert answer == {"acquired": False, "resource": name}
                continue
            given_out = answer["lock"]["fencing_token"]
            if name in live:
                assert given_out == live[name][2]
            else:
                assert given_out > highest
                highest = given_out
            leases[name] = (owner, now + number * 1000, given_out)
        elif action == "advance":
            door.clock.advance(number * 0.7)
        elif action == "forget":
            ended = [key for key in leases if key not in live]
            for key in ended:
                door.site.forget_rows(f"resource = '{key}'")
        else:
            status = (door.renew(name, owner, number) if action == "renew" else door.delete(name, owner)).status
            done = 200 if action == "renew" else 204
            assert status == (404 if name not in live else 403 if live[name][0] != owner else done)
            if status == 200:
                leases[name] = (owner, now + number * 1000, live[name][2])
            elif status == 204:
                del leases[name]
    now = door.clock.now_ms()
    expected = {key: lease[0] for key, lease in leases.items() if now < lease[1]}
    assert {lock["resource"]: lock["owner"] for lock in door.list().json()["locks"]} == expected


def test_the_generated_histories_run_without_limits(kept_door):
    assert UNLIMITED["acquire"] is None
    assert kept_door.read("x").header("RateLimit") is None
