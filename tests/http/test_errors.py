"""CONTRACT 4: every error is a problem document for machines and a readable page for browsers."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.http.shape import BROWSER, STATUS_BY_SLUG, assert_page, assert_problem

BODY = {"owner": "bob", "ttl_seconds": 60}


def errors(door):
    """One request for each kind of error, as (slug, arguments of request())."""
    door.granted("held", "alice")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    return [
        ("malformed-request", ("POST", "/locks/x", b"{")),
        ("forbidden", ("DELETE", "/locks/held", {"owner": "bob"})),
        ("forbidden", ("POST", "/locks/held/renew", BODY)),
        ("not-found", ("GET", "/locks/free")),
        ("not-found", ("GET", "/nope")),
        ("not-found", ("POST", "/locks/a/b/c", BODY)),
        ("not-found", ("GET", "/problems/nope")),
        ("method-not-allowed", ("PUT", "/locks/x", BODY)),
        ("method-not-allowed", ("POST", "/locks", BODY)),
        ("too-large", ("POST", "/locks/x", b" " * 65537)),
        ("unsupported-media-type", ("POST", "/locks/x", b"owner=a", form)),
        ("validation-failed", ("POST", "/locks/x", {})),
        ("validation-failed", ("GET", "/locks?limit=0")),
        ("validation-failed", ("GET", "/locks/%FF")),
    ]


def test_every_error_is_a_problem_document(door):
    for slug, request in errors(door):
        assert_problem(door.request(*request), slug)


def test_a_browser_gets_a_readable_page_with_the_same_status(door):
    for slug, (method, target, *rest) in errors(door):
        body = rest[0] if rest else b""
        answer = door.request(method, target, body, {**(rest[1] if len(rest) > 1 else {}), **BROWSER})
        assert answer.status == STATUS_BY_SLUG[slug], answer
        title = door.request(method, target, *rest).json()["title"]
        assert title in assert_page(answer)
        assert answer.header("Cache-Control") == "no-store"
        assert answer.header("X-Content-Type-Options") == "nosniff"
        assert (answer.header("Allow") is not None) == (slug == "method-not-allowed")


@pytest.mark.parametrize("slug", sorted(STATUS_BY_SLUG))
def test_the_address_in_type_answers_with_a_short_page_about_the_problem(door, slug):
    for headers in ({}, BROWSER, {"Accept": "application/json"}):
        answer = door.request("GET", f"/problems/{slug}", b"", headers)
        assert answer.status == 200
        assert slug in answer.text()
        assert str(STATUS_BY_SLUG[slug]) in answer.text()
        assert answer.header("X-Content-Type-Options") == "nosniff"
    assert_page(door.request("GET", f"/problems/{slug}", b"", BROWSER))


def test_every_type_that_is_answered_leads_to_its_page(door):
    for _, request in errors(door):
        problem = door.request(*request).json()
        page = door.request("GET", problem["type"], b"", BROWSER)
        assert page.status == 200
        assert_page(page)


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        (BROWSER["Accept"], True),
        ("text/html", True),
        ("TEXT/HTML", True),
        ("text/html;q=0.9, application/json;q=0.8", True),
        ("application/json;q=0.8,text/html;q=0.9", True),
        ("text/html, */*;q=0.1", True),
        ("text/html;level=1", True),
        (None, False),
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/problem+json", False),
        ("application/json, text/plain, */*", False),
        ("application/json, text/html;q=0.9", False),
        ("text/html;q=0.5, application/problem+json", False),
        ("text/html;q=0", False),
        ("text/html;q=0, */*", False),
        ("text/plain", False),
        ("image/png", False),
        ("application/xml", False),
        ("text/htmlx", False),
        (";;;,,,q=", False),
        ("text/html;q=zwei", None),
    ],
)
def test_a_page_is_for_who_prefers_html_and_json_for_everyone_else(door, accept, is_page):
    answer = door.request("GET", "/locks/x", b"", {"Accept": accept})
    assert answer.status == 404
    if is_page is not None:
        assert answer.media_type == ("text/html" if is_page else "application/problem+json")


def test_a_browser_gets_the_answers_that_are_no_errors_as_json_too(door):
    lock = door.acquire("x", "alice", headers=BROWSER)
    assert lock.media_type == "application/json"
    for answer in (
        door.read("x", headers=BROWSER),
        door.renew("x", headers=BROWSER),
        door.acquire("x", "bob", headers=BROWSER),
    ):
        assert (answer.status, answer.media_type) == (200, "application/json")
    assert door.delete("x", headers=BROWSER).status == 204


NASTY = "<script>alert('x')</script>&\"<b>"
NASTY_PATH = "%3Cscript%3Ealert('x')%3C%2Fscript%3E"


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", "/locks/<script>alert('x')<\"b&", b""),
        ("GET", "/<script>alert('x')</script>", b""),
        ("GET", "/%3Cscript%3Ealert('x')%3C/script%3E", b""),
        ("GET", "/problems/<script>alert('x')", b""),
        ("GET", "/locks?limit=<script>alert('x')", b""),
        ("GET", "/locks?cursor=<script>alert('x')", b""),
        ("GET", "/locks?limit=1&limit=<script>", b""),
        ("<SCRIPT>", "/locks/x", b""),
        ("PUT", "/locks/<script>", b""),
        ("POST", "/locks/<script>", {"owner": "", "ttl_seconds": "<script>"}),
        ("POST", "/locks/<script>", b'{"<script>": 1, "<script>": 2}'),
        ("DELETE", "/locks/held", {"owner": NASTY}),
        ("GET", "/locks/%FF<script>", b""),
        ("GET", "/", b""),
    ],
)
def test_nothing_of_the_request_stands_unescaped_in_a_page(door, method, target, body):
    door.granted("held", "alice")
    headers = {**BROWSER, "Host": "<script>", "Content-Type": "<script>", "X-Forwarded-Host": "<script>"}
    headers.update({"Referer": "<script>", "User-Agent": "<script>"})
    variables = {"SERVER_NAME": "<script>"}
    answer = door.request(method, target, body, headers, environ_extra=variables)
    text = assert_page(answer)
    assert "<script" not in text.lower()
    assert "<b>" not in text
    for name, value in answer.headers:
        assert "<script" not in value.lower(), name


def test_a_wrong_owner_is_told_403_but_not_who_holds_the_lock(door):
    door.granted("x", "alice-secret-name")
    for answer in (door.delete("x", "bob"), door.renew("x", "bob"), door.acquire("x", "bob")):
        assert b"alice-secret-name" not in answer.body
        assert all("alice-secret-name" not in value for _, value in answer.headers)


def test_no_such_page_and_no_such_lock_have_titles_of_their_own(door):
    assert_problem(door.request("GET", "/locks/x"), "not-found", "Lock not found.")
    assert_problem(door.request("GET", "/x"), "not-found", "No such page.")


def test_a_fault_of_the_service_is_500_bland_outside_and_told_in_the_log(open_site, capfd, caplog):
    class BrokenOnce(ManualClock):
        is_broken = False

        def now_ms(self):
            if self.is_broken:
                self.is_broken = False
                raise RuntimeError("secret of /home/someone")
            return super().now_ms()

    door = open_site(clock=BrokenOnce())
    for headers in ({}, BROWSER):
        door.clock.is_broken = True
        answer = door.acquire("x", "owner-name-never-logged", headers=headers)
        assert answer.status == 500
        assert b"secret" not in answer.body
        assert b"RuntimeError" not in answer.body
        assert b"Traceback" not in answer.body
        assert answer.header("Cache-Control") == "no-store"
    door.clock.is_broken = True
    assert_problem(door.acquire("x"), "internal-error")
    log = door.log.getvalue() + capfd.readouterr().err + caplog.text
    assert "RuntimeError" in log
    assert 'File "' in log
    assert "in now_ms" in log
    assert "owner-name-never-logged" not in log


def test_refusals_leave_no_owner_body_or_client_address_in_the_log(door, capfd, caplog):
    address = "203.0.113.77"
    for _, (method, target, *rest) in errors(door):
        door.request(method, target, *rest, remote_addr=address)
    door.acquire("x", "owner-name-never-logged\u0000", remote_addr=address)
    door.request("POST", "/locks/x", b'{"owner": "owner-name-never-logged', remote_addr=address)
    door.delete("held", "owner-name-never-logged", remote_addr=address)
    log = door.log.getvalue() + capfd.readouterr().err + caplog.text
    assert address not in log
    assert "owner-name-never-logged" not in log
