"""Installations that cannot work, seen from outside: always a readable page, always a line in the error log."""

from __future__ import annotations

import pytest

#: site -> status, what the answer must name, what the error log must name
FAULTS = {
    "no-newer": (500, ["Python 3.", "first line of index.cgi"], "needs Python"),
    "old": (500, ["Python 3.", "first line of index.cgi"], "needs Python"),
    "no-app": (500, ["app"], "kannuki"),
    "no-rights": (503, ["var/"], "kannuki"),
    "bad-settings": (503, ["var/config.py", "MAX_LOCKS", "NO_SUCH_NAME"], "config.py"),
    "memory": (503, ["RATE_LIMIT_STORAGE", "file"], "RATE_LIMIT_STORAGE"),
    "bad-code": (500, ["error log"], "RuntimeError"),
}


@pytest.fixture(params=list(FAULTS))
def broken(request, hosting):
    return hosting.client(f"{request.param}.test"), *FAULTS[request.param]


def test_a_machine_gets_a_problem_document(hosting, broken):
    client, status, named, _ = broken
    answer = client.acquire("anything")
    assert answer.status == status, answer
    assert answer.media_type == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"] == ("/problems/internal-error" if status == 500 else "/problems/unavailable")
    assert problem["title"]
    for text in named:
        assert text in problem["detail"]
    assert_tells_nothing(hosting, answer)


def test_a_browser_gets_a_page(hosting, broken):
    client, status, named, _ = broken
    answer = client.ask("GET", "/locks/x", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert answer.status == status, answer
    # Without the folder app there is nothing that could make a page; what it says is readable all the same.
    assert answer.media_type == ("application/problem+json" if client.host == "no-app.test" else "text/html")
    for text in named:
        assert text in answer.text()
    assert_tells_nothing(hosting, answer)


def test_the_error_log_has_a_line(hosting, broken):
    client, _, _, logged = broken
    before = len(hosting.apache.log())
    client.ask("GET", "/locks/x")
    hosting.wait_until_idle()
    assert logged in hosting.apache.log()[before:]


def test_the_answer_is_not_lost_over_a_large_body(broken):
    client, status, _, _ = broken
    for _ in range(2):
        assert client.ask("DELETE", "/locks/x?owner=a", b"x" * 300_000).status in (status, 413)


def assert_tells_nothing(hosting, answer) -> None:
    assert answer.header("Cache-Control") == "no-store"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    text = answer.text()
    for secret in (str(hosting.top), "/var/www", "secret-value", "Traceback", "nobody"):
        assert secret not in text


def test_a_newer_python_takes_over_from_one_that_is_too_old(hosting):
    """The site called `old` asks for a version that does not exist, so each Python that is found is tried in turn."""
    before = len(hosting.apache.log())
    assert hosting.client("old.test").ask("GET", "/health").status == 500
    hosting.wait_until_idle()
    assert hosting.apache.log()[before:].count("kannuki:") == 1
