"""CONTRACT 5: CORS is off unless CORS_ORIGINS lists origins, and then on for exactly those."""

from __future__ import annotations

import pytest

BODY = {"owner": "alice", "ttl_seconds": 60}
LISTED = ("https://app.example", "http://localhost:5173")
NOT_LISTED = [
    "https://evil.example",
    "http://app.example",
    "https://app.example:8443",
    "https://app.example.evil.example",
    "https://evil-app.example",
    "https://sub.app.example",
    "https://app.example/",
    "HTTPS://APP.EXAMPLE",
    "https://appXexample",
    "app.example",
    "null",
    "*",
    "",
    "https://app.example, https://evil.example",
    "https://app.example https://evil.example",
]
PREFLIGHT = {"Access-Control-Request-Method": "DELETE", "Access-Control-Request-Headers": "content-type"}


def cors_headers(answer):
    return {name for name in answer.header_names() if name.startswith("access-control-")}


def answers(door, origin):
    """One answer of each kind to a request from a page of that origin."""
    headers = {"Origin": origin}
    door.granted("held", "bob")
    yield door.request("POST", "/locks/x", BODY, headers)
    yield door.request("POST", "/locks/held", BODY, headers)
    yield door.request("GET", "/locks/x", b"", headers)
    yield door.request("HEAD", "/locks/x", b"", headers)
    yield door.request("GET", "/locks", b"", headers)
    yield door.request("GET", "/health", b"", headers)
    yield door.request("GET", "/locks/free", b"", headers)
    yield door.request("GET", "/nope", b"", headers)
    yield door.request("PUT", "/locks/x", BODY, headers)
    yield door.request("POST", "/locks/x", b"{", headers)
    yield door.request("POST", "/locks/x", {}, headers)
    yield door.request("POST", "/locks/x", b" " * 65537, headers)
    yield door.request("DELETE", "/locks/held", {"owner": "alice"}, headers)
    yield door.request("DELETE", "/locks/x", {"owner": "alice"}, headers)


@pytest.mark.parametrize("origin", [*LISTED, "null", "*", ""])
def test_cors_is_off_by_default(door, origin):
    for answer in answers(door, origin):
        assert not cors_headers(answer), answer
    preflight = door.request("OPTIONS", "/locks/x", b"", {"Origin": origin, **PREFLIGHT})
    assert preflight.status == 204
    assert preflight.header("Allow")
    assert not cors_headers(preflight)


@pytest.mark.parametrize("origin", LISTED)
def test_answers_to_a_listed_origin_carry_exactly_that_origin_errors_too(open_site, origin):
    for answer in answers(open_site(CORS_ORIGINS=LISTED), origin):
        assert answer.header("Access-Control-Allow-Origin") == origin, answer
        assert "origin" in answer.header("Vary").lower()
        assert answer.header("Access-Control-Allow-Credentials") is None


@pytest.mark.parametrize("origin", LISTED)
def test_a_listed_origin_can_read_the_headers_it_needs(open_site, origin):
    answer = open_site(CORS_ORIGINS=LISTED).request("POST", "/locks/x", BODY, {"Origin": origin})
    exposed = {name.strip().lower() for name in answer.header("Access-Control-Expose-Headers").split(",")}
    assert {"retry-after", "ratelimit", "ratelimit-policy"} <= exposed


@pytest.mark.parametrize("origin", LISTED)
@pytest.mark.parametrize("target", ["/locks/x", "/locks/x/renew", "/locks/x/release", "/locks", "/health"])
def test_a_preflight_of_a_listed_origin_is_answered(open_site, origin, target):
    answer = open_site(CORS_ORIGINS=LISTED).request("OPTIONS", target, b"", {"Origin": origin, **PREFLIGHT})
    assert answer.status == 204
    assert answer.header("Access-Control-Allow-Origin") == origin
    allowed = {method.strip() for method in answer.header("Access-Control-Allow-Methods").split(",")}
    in_allow = {method.strip() for method in answer.header("Allow").split(",")}
    assert allowed <= in_allow
    assert in_allow - {"OPTIONS", "HEAD"} <= allowed
    assert "content-type" in answer.header("Access-Control-Allow-Headers").lower()
    assert "origin" in answer.header("Vary").lower()


@pytest.mark.parametrize("origin", NOT_LISTED)
def test_any_other_origin_gets_no_cors_header(open_site, origin):
    door = open_site(CORS_ORIGINS=LISTED)
    for answer in answers(door, origin):
        assert not cors_headers(answer), answer
    preflight = door.request("OPTIONS", "/locks/x", b"", {"Origin": origin, **PREFLIGHT})
    assert preflight.status == 204
    assert not cors_headers(preflight)


def test_a_request_without_an_origin_gets_no_cors_header(open_site):
    for answer in answers(open_site(CORS_ORIGINS=LISTED), None):
        assert not cors_headers(answer), answer


def test_a_throttled_answer_carries_the_headers_too(open_site):
    door = open_site(CORS_ORIGINS=LISTED, RATE_LIMITS={"acquire": (1, 60)})
    headers = {"Origin": LISTED[0]}
    door.request("POST", "/locks/x", BODY, headers)
    answer = door.request("POST", "/locks/x", BODY, headers)
    assert answer.status == 429
    assert answer.header("Access-Control-Allow-Origin") == LISTED[0]


def test_cors_does_not_change_what_is_granted(open_site):
    door = open_site(CORS_ORIGINS=LISTED)
    assert door.request("POST", "/locks/x", BODY, {"Origin": "https://evil.example"}).json()["acquired"] is True
