"""Addresses, methods and headers as they come through the server."""

from __future__ import annotations

import pytest

HOLDER = {"owner": "alice", "ttl_seconds": 3600}

#: what stands in the path -> the name it means
NAMES = {
    "plain-1_2.3~": "plain-1_2.3~",
    "payment:42": "payment:42",
    "a%20b": "a b",
    "a+b": "a+b",
    "%C3%A9": "é",
    "e%CC%81": "e\u0301",
    "閂": "閂",
    "a;b=c": "a;b=c",
    "it's%22quoted%22": 'it\'s"quoted"',
    "100%25": "100%",
    "%2525": "%25",
    "a%3Fb": "a?b",
    "a%23b": "a#b",
    "a%252Fb": "a%2Fb",
    "a%5Cb": "a\\b",
    "%3Cb%3E": "<b>",
    "..": "..",
    "%2e%2e": "..",
    "...": "...",
    "index.cgi": "index.cgi",
    ".htaccess": ".htaccess",
    "renew": "renew",
    "resource'%3B%20DROP%20TABLE%20distributed_locks%3B%20--": "resource'; DROP TABLE distributed_locks; --",
    "x" * 255: "x" * 255,
    "%C3%A9" * 42: "é" * 42,
}


@pytest.mark.parametrize("written", list(NAMES), ids=lambda written: ascii(written[:24]))
def test_a_name_is_decoded_once(site, written):
    answer = site.acquire(written)
    assert answer.status == 200, answer
    assert answer.json()["lock"]["resource"] == NAMES[written]


@pytest.mark.parametrize(
    ("written", "status"),
    [
        (b"%ff", 422),
        (b"\xff", 422),
        (b"%ED%A0%80", 422),
        (b"%0a", 422),
        (b"a%0D%0AX-Injected:1", 422),
        (b"%7f", 422),
        (b"", 422),
        (b"x" * 256, 422),
        (b"a/b", 404),
        (b"/", 404),
        (b"%2F", 404),
        (b"a%2Frenew", 404),
        (b"%00", 404),
        (b"a%00b", 404),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_a_name_that_is_refused_is_not_stored(hosting, site, written, status):
    before = hosting.stored_resources()
    answer = site.ask("POST", b"/locks/" + written, HOLDER)
    assert answer.status == status, answer
    assert answer.header("X-Injected") is None
    assert hosting.stored_resources() == before


def test_a_doubled_slash_is_not_another_spelling(site):
    site.acquire("doubled")
    assert site.ask("GET", "//locks/doubled").status == 404
    assert site.ask("GET", "/locks//doubled").status == 404
    assert site.is_held("doubled")


def test_an_absolute_target_is_the_same_address(site):
    with site.connect() as connection:
        answer = connection.ask("POST", f"http://{site.host}/locks/absolute%25", HOLDER)
    assert answer.json()["lock"]["resource"] == "absolute%"
    assert site.is_held("absolute%25")


def test_a_very_long_name_is_refused_by_somebody(site):
    assert site.acquire("y" * 8000).status in (403, 414, 422)
    assert site.acquire("y" * 9000).status == 414


def test_the_query_reaches_the_service_as_it_was_sent(site):
    for name in ("query%2B1", "query%251", "query_1"):
        site.acquire(name)

    def listed(query):
        return [lock["resource"] for lock in site.ask("GET", f"/locks?{query}").json()["locks"]]

    assert listed("prefix=query+") == ["query+1"]
    assert listed("prefix=query%2B") == ["query+1"]
    assert listed("prefix=query%25") == ["query%1"]
    assert listed("prefix=query_") == ["query_1"]
    page = site.ask("GET", "/locks?prefix=query&limit=2").json()
    assert [lock["resource"] for lock in page["locks"]] == ["query%1", "query+1"]
    assert listed(f"prefix=query&limit=2&cursor={page['next_cursor']}") == ["query_1"]


# Methods


def test_delete_with_a_body_releases(site):
    site.acquire("deleted")
    assert site.ask("DELETE", "/locks/deleted", {"owner": "bob"}).status == 403
    assert site.is_held("deleted")
    released = site.ask("DELETE", "/locks/deleted", {"owner": "alice"})
    assert released.status == 204
    assert released.body == b""
    assert released.header("Content-Type") is None
    assert not site.is_held("deleted")
    assert site.ask("DELETE", "/locks/deleted", {"owner": "alice"}).status == 404


def test_delete_without_a_body_takes_the_owner_from_the_query(site):
    site.acquire("queried", "alice b+c")
    assert site.ask("DELETE", "/locks/queried").status == 422
    assert site.ask("DELETE", "/locks/queried?owner=alice").status == 403
    assert site.ask("DELETE", "/locks/queried?owner=x", {"owner": "alice b+c"}).status == 400
    assert site.is_held("queried")
    assert site.ask("DELETE", "/locks/queried?owner=alice%20b+c").status == 204


def test_a_post_can_say_that_it_is_a_delete(site):
    site.acquire("overridden")
    override = {"X-HTTP-Method-Override": "DELETE"}
    assert site.ask("GET", "/locks/overridden?owner=alice", headers=override).status == 200
    assert site.ask("POST", "/locks/overridden", {"owner": "alice"}, headers=override).status == 204


def test_head_is_get_without_a_body(site):
    site.acquire("headed")
    for path in ("/locks/headed", "/locks/nobody-has-this", "/locks", "/health", "/", "/nowhere"):
        got, headed = site.ask("GET", path), site.ask("HEAD", path)
        assert headed.status == got.status
        assert headed.body == b""
        told_apart = {"date", "ratelimit", "transfer-encoding", "content-length"}
        assert [pair for pair in headed.headers if pair[0].lower() not in told_apart] == [
            pair for pair in got.headers if pair[0].lower() not in told_apart
        ]
    assert site.is_held("headed")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/locks/x", {"GET", "HEAD", "POST", "DELETE", "OPTIONS"}),
        ("/locks", {"GET", "HEAD", "OPTIONS"}),
        ("/locks/x/renew", {"POST", "OPTIONS"}),
        ("/locks/x/release", {"POST", "OPTIONS"}),
        ("/health", {"GET", "HEAD", "OPTIONS"}),
    ],
)
def test_options_and_405_name_the_methods(site, path, methods):
    answer = site.ask("OPTIONS", path)
    assert answer.status == 204
    assert answer.body == b""
    assert set(answer.header("Allow").split(", ")) == methods
    refused = site.ask("PUT", path, {})
    assert refused.status == 405
    assert set(refused.header("Allow").split(", ")) == methods
    assert refused.media_type == "application/problem+json"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "PROPFIND", "FOO", "get"])
def test_other_methods_are_refused_by_the_service(site, method):
    answer = site.ask(method, "/locks/x")
    assert answer.status == 405, answer
    assert answer.media_type == "application/problem+json"


# Headers


@pytest.mark.parametrize(
    "headers",
    [
        {"If-None-Match": "*"},
        {"If-Match": '"x"'},
        {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
        {"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"Range": "bytes=0-3"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_a_conditional_header_does_not_change_the_answer(site, headers):
    granted = site.acquire("conditional").json()["lock"]
    answer = site.ask("GET", "/locks/conditional", headers=headers)
    assert answer.status == 200
    assert answer.json() == granted
    again = site.ask("POST", "/locks/conditional", HOLDER, headers=headers)
    assert again.status == 200
    assert again.json()["acquired"] is True


def test_a_refused_contender_is_told_when_to_come_again(site):
    site.acquire("contended", ttl_seconds=60)
    answer = site.acquire("contended", "bob")
    assert answer.status == 200
    assert answer.json() == {"acquired": False, "resource": "contended"}
    assert 1 <= int(answer.header("Retry-After")) <= 60


def test_a_browser_gets_pages_for_people(site):
    for path, status in (("/locks/nobody-has-this", 404), ("/nowhere", 404)):
        answer = site.ask("GET", path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert answer.status == status
        assert answer.media_type == "text/html"
        assert b"index.cgi" not in answer.body
        assert answer.header("Cache-Control") == "no-store"
        assert answer.header("X-Content-Type-Options") == "nosniff"


def test_markup_in_an_address_is_not_echoed(site):
    answer = site.ask("GET", "/locks/%3Cscript%3Ealert(1)%3C/script%3E", headers={"Accept": "text/html"})
    assert b"<script" not in answer.body


def test_no_owner_name_reaches_the_error_log(hosting, site):
    site.acquire("logged", "a-very-private-owner")
    site.ask("DELETE", "/locks/logged", {"owner": "another-private-owner"})
    assert "private-owner" not in hosting.apache.log()
