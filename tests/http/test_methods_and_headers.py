"""CONTRACT 5: headers of every answer, HEAD, OPTIONS, 405, the method override, and reads that never write."""

from __future__ import annotations

import pytest

from tests.doors import UNLIMITED
from tests.http.shape import BROWSER, assert_problem

BODY = {"owner": "alice", "ttl_seconds": 60}

ALLOWED = {
    "/locks/x": {"GET", "HEAD", "POST", "DELETE", "OPTIONS"},
    "/locks/x/renew": {"POST", "OPTIONS"},
    "/locks/x/release": {"POST", "OPTIONS"},
    "/locks": {"GET", "HEAD", "OPTIONS"},
    "/locks?limit=5&prefix=a": {"GET", "HEAD", "OPTIONS"},
    "/health": {"GET", "HEAD", "OPTIONS"},
    "/": {"GET", "HEAD", "OPTIONS"},
    "/problems/not-found": {"GET", "HEAD", "OPTIONS"},
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X" * 300]


def methods_of(answer):
    return {method.strip() for method in answer.header("Allow").split(",")}


def every_kind_of_answer(door):
    """Answers of every status and route, as (method, Answer)."""
    door.granted("held", "alice")
    requests = [
        ("POST", "/locks/free", BODY),
        ("POST", "/locks/held", {"owner": "bob", "ttl_seconds": 60}),
        ("POST", "/locks/held/renew", BODY),
        ("GET", "/locks/held"),
        ("HEAD", "/locks/held"),
        ("GET", "/locks/nobody"),
        ("HEAD", "/locks/nobody"),
        ("GET", "/locks"),
        ("GET", "/health"),
        ("HEAD", "/health"),
        ("GET", "/"),
        ("GET", "/problems/forbidden"),
        ("OPTIONS", "/locks/held"),
        ("OPTIONS", "/nope"),
        ("PUT", "/locks/held", BODY),
        ("GET", "/nope"),
        ("GET", "/locks/%FF"),
        ("POST", "/locks/held", b"{"),
        ("POST", "/locks/held", {}),
        ("POST", "/locks/held", b" " * 65537),
        ("POST", "/locks/held", b"a=b", {"Content-Type": "multipart/form-data"}),
        ("DELETE", "/locks/held", {"owner": "bob"}),
        ("DELETE", "/locks/held", {"owner": "alice"}),
        ("POST", "/locks/nobody/release", {"owner": "alice"}),
    ]
    for method, target, *rest in requests:
        yield method, door.request(method, target, *rest)
        headers = {**(rest[1] if len(rest) > 1 else {}), **BROWSER}
        yield method, door.request(method, target, rest[0] if rest else b"", headers)


def test_every_answer_forbids_caching_and_sniffing(door):
    for _, answer in every_kind_of_answer(door):
        assert answer.header("Cache-Control") == "no-store", answer
        assert answer.header("X-Content-Type-Options") == "nosniff", answer


def test_no_answer_sets_a_cookie_or_redirects_or_names_its_software(door):
    for _, answer in every_kind_of_answer(door):
        assert not answer.header_names() & {"set-cookie", "location", "server", "x-powered-by", "etag"}, answer


def test_every_answer_states_the_length_it_has(door):
    for method, answer in every_kind_of_answer(door):
        if method != "HEAD" and answer.header("Content-Length") is not None:
            assert int(answer.header("Content-Length")) == len(answer.body)


@pytest.mark.parametrize(
    "target", ["/locks/held", "/locks/nobody", "/locks/%FF", "/locks", "/locks?limit=0", "/health", "/", "/nope"]
)
@pytest.mark.parametrize("headers", [{}, BROWSER], ids=["machine", "browser"])
def test_head_mirrors_get_without_a_body(open_site, target, headers):
    door = open_site(RATE_LIMITS=UNLIMITED)
    door.granted("held", "alice")
    get = door.request("GET", target, b"", headers)
    head = door.request("HEAD", target, b"", headers)
    assert head.status == get.status
    assert head.body == b""
    assert sorted(head.headers) == sorted(get.headers)


def test_head_is_counted_as_get_is(door):
    assert door.request("HEAD", "/locks/x").header("RateLimit") == '"read";r=599;t=60'
    assert door.request("GET", "/locks/x").header("RateLimit") == '"read";r=598;t=60'


@pytest.mark.parametrize("target", ALLOWED)
def test_options_answers_204_with_the_methods_of_the_address(door, target):
    answer = door.request("OPTIONS", target)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.header("Content-Type") is None
    assert methods_of(answer) == ALLOWED[target]


def test_options_spends_no_budget(door):
    answer = door.request("OPTIONS", "/locks/x")
    assert answer.header("RateLimit") is None
    assert door.acquire("x").header("RateLimit") == '"acquire";r=299;t=60'
    assert door.read("x").header("RateLimit") == '"read";r=599;t=60'


@pytest.mark.parametrize("target", ALLOWED)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method[:12])
def test_any_other_method_is_405_with_allow_and_changes_nothing(door, target, method):
    if method in ALLOWED[target]:
        return
    door.granted("x", "alice")
    before = door.site.stored()
    answer = door.request(method, target, BODY)
    if method == "HEAD":
        assert (answer.status, answer.body) == (405, b"")
    else:
        assert_problem(answer, "method-not-allowed", "Method not allowed.")
    assert methods_of(answer) == ALLOWED[target]
    assert door.site.stored() == before


def test_a_method_that_is_not_allowed_spends_no_budget(door):
    assert door.request("PUT", "/locks/x", BODY).header("RateLimit") is None
    assert door.acquire("x").header("RateLimit") == '"acquire";r=299;t=60'


OVERRIDE = {"X-HTTP-Method-Override": "DELETE"}


def test_the_method_override_makes_a_post_a_release(door):
    door.granted("x", "alice")
    assert door.request("POST", "/locks/x", {"owner": "bob"}, OVERRIDE).status == 403
    answer = door.request("POST", "/locks/x", {"owner": "alice"}, OVERRIDE)
    assert answer.status == 204
    assert answer.header("RateLimit-Policy") == '"hold";q=1200;w=60'
    assert door.read("x").status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("override", ["DELETE", "POST", "delete"])
def test_the_method_override_counts_on_post_only_so_reads_stay_reads(door, method, override):
    door.granted("x", "alice")
    before = door.site.stored()
    answer = door.request(method, "/locks/x?owner=alice", {"owner": "alice"}, {"X-HTTP-Method-Override": override})
    assert answer.status == (204 if method == "OPTIONS" else 200)
    assert door.site.stored() == before


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_the_method_override_does_not_help_a_method_that_is_not_allowed(door, method):
    door.granted("x", "alice")
    assert door.request(method, "/locks/x", {"owner": "alice"}, OVERRIDE).status == 405
    assert door.read("x").status == 200


@pytest.mark.parametrize("override", ["", "GET", "PUT", "POST", "OPTIONS", "DELETED", "DELETE, POST", "x"])
def test_any_other_method_override_is_ignored(door, override):
    answer = door.request("POST", "/locks/x", BODY, {"X-HTTP-Method-Override": override})
    assert answer.status == 200
    assert answer.json()["acquired"] is True


@pytest.mark.parametrize("header", ["X-HTTP-Method", "X-Method-Override", "X-Original-Method", "X-Requested-Method"])
def test_headers_like_the_method_override_are_ignored(door, header):
    assert door.request("POST", "/locks/x", BODY, {header: "DELETE"}).json()["acquired"] is True


@pytest.mark.parametrize("query", ["_method=DELETE&owner=alice", "X-HTTP-Method-Override=DELETE&owner=alice"])
def test_a_method_in_the_query_is_ignored(door, query):
    door.granted("x", "alice")
    assert door.request("POST", f"/locks/x?{query}", BODY).status == 200
    assert door.request("GET", f"/locks/x?{query}").status == 200


STATE_CHANGING_WISHES = [
    {},
    OVERRIDE,
    BROWSER,
    {"X-HTTP-Method-Override": "POST"},
    {"Content-Type": "application/json", "Content-Length": "0"},
    {"If-None-Match": "*"},
    {"If-Modified-Since": "Tue, 01 Dec 2026 04:05:06 GMT"},
    {"Range": "bytes=0-1"},
    {"Expect": "100-continue"},
    {"Upgrade": "h2c"},
]


@pytest.mark.parametrize("headers", STATE_CHANGING_WISHES, ids=str)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_get_and_head_never_change_what_is_stored_not_even_what_has_long_expired(door, method, headers):
    door.granted("short", "alice", 1)
    door.granted("long", "alice", 604800)
    door.clock.advance(400_000)
    rows = door.site.stored()
    content = door.site.database.read_bytes()
    for target in ("/locks/short", "/locks/long", "/locks/never", "/locks", "/locks?limit=1", "/health", "/", "/nope"):
        for body in (b"", b'{"owner": "alice", "ttl_seconds": 60}') * 2:
            assert door.request(method, target, body, headers).status in (200, 404)
            door.clock.advance(0.001)
    assert door.site.stored() == rows
    assert door.site.database.read_bytes() == content


def test_conditional_and_range_headers_do_not_change_an_answer(door):
    door.granted("x", "alice")
    plain = door.read("x")
    for headers in STATE_CHANGING_WISHES[5:]:
        answer = door.request("GET", "/locks/x", b"", headers)
        assert (answer.status, answer.body) == (plain.status, plain.body)


def test_health_says_ok_and_a_version(door):
    answer = door.request("GET", "/health")
    assert answer.status == 200
    assert answer.media_type == "application/json"
    health = answer.json()
    assert health["status"] == "ok"
    assert isinstance(health["version"], str)
    assert health["version"]


def test_the_first_page_is_json_for_machines_and_html_for_people(door):
    assert door.request("GET", "/").media_type == "application/json"
    assert door.request("GET", "/", b"", BROWSER).media_type == "text/html"
