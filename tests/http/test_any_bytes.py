"""No 500 for any input: arbitrary bytes at paths, queries, bodies and headers get an answer of the contract."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.http.generated import BODIES, BODY, HEADERS, METHODS, RAW, TARGETS, TOKENS, VARIABLES
from tests.http.shape import assert_shaped

generated = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])


@given(method=METHODS, target=TARGETS)
@example(method="OPTIONS", target="*")
@example(method="GET", target="")
@example(method="GET", target="http://")
@example(method="GET", target="://")
@example(method="CONNECT", target="locks.example:443")
@example(method="GET", target="/locks/" + "%" * 3000)
@generated
def test_any_target_gets_an_answer_of_the_contract(kept_door, method, target):
    assert_shaped(kept_door.request(method, target, BODY if method == "POST" else b""), method)


@given(
    method=st.sampled_from(["POST", "DELETE"]),
    action=st.sampled_from(["", "/renew", "/release", "?owner=alice"]),
    body=BODIES,
)
@generated
def test_any_body_gets_an_answer_of_the_contract(kept_door, method, action, body):
    assert_shaped(kept_door.request(method, "/locks/x" + action, body), method)


@given(
    method=METHODS,
    target=st.sampled_from(["/locks/x", "/locks", "/health", "/", "/nope", "/locks/x/renew"]),
    headers=HEADERS,
)
@generated
def test_any_headers_get_an_answer_of_the_contract(kept_door, method, target, headers):
    assert_shaped(kept_door.request(method, target, BODY if method in ("POST", "DELETE") else b"", headers), method)


@given(
    method=METHODS | RAW.filter(bool),
    target=TARGETS,
    body=BODIES,
    headers=HEADERS,
    remote_addr=st.none() | TOKENS | RAW,
    variables=VARIABLES,
)
@generated
def test_anything_at_all_gets_an_answer_of_the_contract(
    kept_door, method, target, body, headers, remote_addr, variables
):
    answer = kept_door.request(method, target, body, headers, remote_addr, variables)
    assert_shaped(answer, method)


@given(forwarded_for=st.one_of(TOKENS, RAW), remote_addr=st.one_of(TOKENS, RAW))
@generated
def test_any_client_address_is_counted(limited_door, forwarded_for, remote_addr):
    answer = limited_door.request("GET", "/locks/x", b"", {"X-Forwarded-For": forwarded_for}, remote_addr)
    assert answer.status in (404, 429)
    assert_shaped(answer, "GET")
    assert answer.header("RateLimit").startswith('"read";r=')


@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=60))
@example(name="%2F")
@example(name="..")
@example(name="\x7f")
@generated
def test_any_name_is_either_a_literal_name_or_refused(kept_door, name):
    door = kept_door
    door.site.forget_rows()
    answer = door.acquire(name, "alice", 5)
    if any(character < " " or character == "\x7f" for character in name):
        assert answer.status == 422
        return
    assert answer.json()["lock"]["resource"] == name
    assert door.read(name).json() == answer.json()["lock"]
    assert name in [lock["resource"] for lock in door.list(prefix=name).json()["locks"]]
    assert door.delete(name, "alice").status == 204
    assert door.site.stored() == []


OWNER_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


@given(owner=st.text(max_size=40) | st.text(OWNER_WHITE_SPACE + "ab\x1c\x1f", max_size=8))
@generated
def test_any_owner_is_trimmed_and_kept_or_refused(kept_door, owner):
    door = kept_door
    door.site.forget_rows()
    trimmed = owner.strip(OWNER_WHITE_SPACE)
    answer = door.acquire("x", owner, 5)
    if not trimmed or any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in trimmed):
        assert answer.status == 422
        assert answer.fields() == {"owner"}
        return
    assert answer.json()["lock"]["owner"] == trimmed
    assert door.delete("x", owner).status == 204
