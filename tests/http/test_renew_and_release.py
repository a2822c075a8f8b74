"""CONTRACT 2: renew, release in its three spellings, and status."""

from __future__ import annotations

import pytest

from tests.http.shape import assert_lock, assert_problem, instant


def by_delete(door, resource, owner):
    return door.delete(resource, owner)


def by_delete_query(door, resource, owner):
    return door.request("DELETE", f"/locks/{resource}?owner={owner}")


def by_post(door, resource, owner):
    return door.release(resource, owner)


def by_post_query(door, resource, owner):
    return door.request("POST", f"/locks/{resource}/release?owner={owner}")


def by_override(door, resource, owner):
    return door.request("POST", f"/locks/{resource}", {"owner": owner}, {"X-HTTP-Method-Override": "DELETE"})


def by_override_query(door, resource, owner):
    return door.request("POST", f"/locks/{resource}?owner={owner}", b"", {"X-HTTP-Method-Override": "DELETE"})


WAYS_TO_RELEASE = [by_delete, by_delete_query, by_post, by_post_query, by_override, by_override_query]
each_way = pytest.mark.parametrize("let_go", WAYS_TO_RELEASE, ids=lambda way: way.__name__)


def test_status_of_a_live_lease_is_the_lock_itself(door):
    lock = door.granted("x", "alice", 60)
    answer = door.read("x")
    assert answer.status == 200
    assert answer.media_type == "application/json"
    assert_lock(answer.json(), **lock)


def test_status_of_a_name_nobody_holds_is_404(door):
    assert_problem(door.read("x"), "not-found", "Lock not found.")


def test_renew_sets_the_end_to_now_plus_ttl_and_answers_with_the_lock(door):
    lock = door.granted("x", "alice", 60)
    door.clock.advance(20.25)
    answer = door.renew("x", "alice", 60)
    assert answer.status == 200
    assert_lock(answer.json(), **{**lock, "expires_at": instant(door.clock.now_ms() + 60_000)})
    assert door.read("x").json() == answer.json()


def test_renew_never_moves_acquired_at_nor_the_token(door):
    lock = door.granted("x", "alice", 60)
    for _ in range(5):
        door.clock.advance(30)
        renewed = door.renew("x", "alice", 60).json()
        assert renewed["acquired_at"] == lock["acquired_at"]
        assert renewed["fencing_token"] == lock["fencing_token"]


def test_renew_never_adds_to_what_is_left(door):
    door.granted("x", "alice", 600)
    for _ in range(3):
        assert door.renew("x", "alice", 60).json()["expires_at"] == instant(door.clock.now_ms() + 60_000)


def test_renew_may_shorten_a_lease(door):
    door.granted("x", "alice", 600)
    assert door.renew("x", "alice", 1).status == 200
    door.clock.advance(1)
    assert door.read("x").status == 404
    assert door.acquire("x", "bob").json()["acquired"] is True


def test_renew_keeps_a_lease_past_its_first_end(door):
    door.granted("x", "alice", 60)
    door.clock.advance(59.999)
    door.renew("x", "alice", 60)
    door.clock.advance(59.999)
    assert door.read("x").status == 200
    door.clock.advance(0.001)
    assert door.read("x").status == 404


def test_renew_never_revives_an_expired_lease(door):
    door.granted("x", "alice", 60)
    door.clock.advance(60)
    before = door.site.stored()
    assert_problem(door.renew("x", "alice", 60), "not-found", "Lock not found.")
    assert door.read("x").status == 404
    assert door.site.stored() == before


def test_renew_never_makes_a_lease(door):
    assert_problem(door.renew("x", "alice", 60), "not-found", "Lock not found.")
    assert door.read("x").status == 404


def test_renew_by_another_owner_is_403_and_changes_nothing(door):
    door.granted("x", "alice", 60)
    before = door.site.stored()
    assert_problem(door.renew("x", "bob", 60), "forbidden", "Owner mismatch.")
    assert door.site.stored() == before


@each_way
def test_release_answers_204_with_nothing_and_frees_the_name(door, let_go):
    door.granted("x", "alice", 60)
    answer = let_go(door, "x", "alice")
    assert (answer.status, answer.body) == (204, b"")
    assert answer.header("Content-Type") is None
    assert door.read("x").status == 404
    assert door.acquire("x", "bob").json()["acquired"] is True


@each_way
def test_a_second_release_answers_404(door, let_go):
    door.granted("x", "alice", 60)
    let_go(door, "x", "alice")
    assert_problem(let_go(door, "x", "alice"), "not-found", "Lock not found.")


@each_way
def test_release_by_another_owner_is_403_and_changes_nothing(door, let_go):
    door.granted("x", "alice", 60)
    before = door.site.stored()
    assert_problem(let_go(door, "x", "bob"), "forbidden", "Owner mismatch.")
    assert door.site.stored() == before


@each_way
def test_release_of_what_nobody_holds_is_404(door, let_go):
    assert_problem(let_go(door, "x", "alice"), "not-found", "Lock not found.")


@each_way
def test_release_of_an_expired_lease_is_404(door, let_go):
    door.granted("x", "alice", 60)
    door.clock.advance(60)
    assert_problem(let_go(door, "x", "alice"), "not-found", "Lock not found.")


@each_way
def test_a_released_name_is_granted_again_with_a_higher_token(door, let_go):
    old = door.granted("x", "alice", 60)
    let_go(door, "x", "alice")
    assert door.granted("x", "alice", 60)["fencing_token"] > old["fencing_token"]


def test_the_owner_in_the_query_and_the_same_in_the_body_is_fine(door):
    door.granted("x", "alice", 60)
    assert door.request("DELETE", "/locks/x?owner=alice", {"owner": "alice"}).status == 204
    door.granted("x", "alice", 60)
    assert door.request("POST", "/locks/x/release?owner=alice", {"owner": "alice"}).status == 204


@pytest.mark.parametrize("target", ["/locks/x?owner=bob", "/locks/x?owner=Alice", "/locks/x?owner=alice2"])
@pytest.mark.parametrize("method", ["DELETE", "POST"])
def test_the_owner_in_the_query_and_another_in_the_body_is_400_and_changes_nothing(door, method, target):
    door.granted("x", "alice", 60)
    before = door.site.stored()
    if method == "POST":
        target = target.replace("?", "/release?")
    assert_problem(door.request(method, target, {"owner": "alice"}), "malformed-request")
    assert door.site.stored() == before


@pytest.mark.parametrize("body", [b"", {}, {"ttl_seconds": 60}, {"Owner": "alice"}])
@pytest.mark.parametrize(("method", "target"), [("DELETE", "/locks/x"), ("POST", "/locks/x/release")])
def test_a_release_without_any_owner_is_422(door, method, target, body):
    door.granted("x", "alice", 60)
    before = door.site.stored()
    answer = door.request(method, target, body)
    assert_problem(answer, "validation-failed")
    assert answer.faults() == {("owner", "missing")}
    assert door.site.stored() == before


def test_an_empty_object_in_the_body_leaves_the_owner_of_the_query_in_force(door):
    door.granted("x", "alice", 60)
    assert door.request("DELETE", "/locks/x?owner=alice", {}).status == 204


def test_a_delete_without_a_body_may_carry_any_content_type(door):
    door.granted("x", "alice", 60)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert door.request("DELETE", "/locks/x?owner=alice", b"", form).status == 204


@pytest.mark.parametrize(
    ("owner", "in_query"),
    [
        ("a+b", "a+b"),
        ("a b", "a%20b"),
        ("a+b", "a%2Bb"),
        ("a%2Bb", "a%252Bb"),
        ("a&b=c", "a%26b%3Dc"),
        ("é", "%C3%A9"),
        ("é", "\u00c3\u00a9"),
        ("a=b", "a=b"),
        ("bob", "%20bob%E3%80%80"),
        ("a;b", "a;b"),
        ("a/b?c", "a/b?c"),
    ],
)
def test_the_owner_in_the_query_is_percent_decoded_once_and_a_plus_is_a_plus(door, owner, in_query):
    door.granted("x", owner, 60)
    assert door.request("DELETE", f"/locks/x?owner={in_query}").status == 204


@pytest.mark.parametrize(
    ("in_query", "code"),
    [
        ("", "empty"),
        ("%20%09", "empty"),
        ("a" * 256, "too_long"),
        ("a%00b", "control_character"),
        ("a%7F", "control_character"),
        ("%FF", "invalid_unicode"),
        ("%ED%A0%80", "invalid_unicode"),
    ],
)
def test_the_owner_in_the_query_is_validated_like_the_one_in_the_body(door, in_query, code):
    door.granted("x", "alice", 60)
    before = door.site.stored()
    answer = door.request("DELETE", f"/locks/x?owner={in_query}")
    assert_problem(answer, "validation-failed")
    assert answer.faults() == {("owner", code)}
    assert door.site.stored() == before


def test_the_owner_twice_in_the_query_is_400(door):
    door.granted("x", "alice", 60)
    assert_problem(door.request("DELETE", "/locks/x?owner=alice&owner=alice"), "malformed-request")
    assert_problem(door.request("DELETE", "/locks/x?owner=alice&owner=bob"), "malformed-request")
    assert door.read("x").status == 200


def test_unknown_parameters_of_the_query_are_ignored(door):
    door.granted("x", "alice", 60)
    assert door.request("DELETE", "/locks/x?_=1&owner=alice&owners=bob&flag").status == 204


def test_the_query_gives_no_owner_to_acquire_and_renew(door):
    body = {"ttl_seconds": 60}
    assert door.request("POST", "/locks/x?owner=alice", body).faults() == {("owner", "missing")}
    door.granted("x", "alice", 60)
    assert door.request("POST", "/locks/x/renew?owner=alice", body).faults() == {("owner", "missing")}
