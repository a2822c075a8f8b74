"""An upload without the folder vendor/: locks work, and people are told what is missing."""

from __future__ import annotations

import subprocess

import pytest

from tests.hosting import machine
from tests.parts import requires

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def site(hosting):
    asked = subprocess.run([machine.SYSTEM_PYTHON, "-c", "import flask"], capture_output=True, check=False)
    requires(asked.returncode, f"{machine.SYSTEM_PYTHON} without Flask")
    return hosting.client("no-flask.test")


def test_a_lock_goes_round(site):
    holder = {"owner": "alice", "ttl_seconds": 60}
    granted = site.ask("POST", "/locks/round", holder)
    assert granted.status == 200, granted
    assert site.ask("GET", "/locks/round").json() == granted.json()["lock"]
    assert site.acquire("round", "bob").json() == {"acquired": False, "resource": "round"}
    assert site.ask("POST", "/locks/round/renew", holder).status == 200
    assert site.ask("GET", "/locks").json()["locks"] != []
    assert site.ask("DELETE", "/locks/round", {"owner": "bob"}).status == 403
    assert site.ask("DELETE", "/locks/round", {"owner": "alice"}).status == 204
    gone = site.ask("GET", "/locks/round")
    assert (gone.status, gone.media_type) == (404, "application/problem+json")
    assert site.ask("GET", "/health").json()["status"] == "ok"
    assert site.ask("GET", "/").status == 200
    assert site.ask("GET", gone.json()["type"]).status == 200


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/locks/x"), ("GET", "/nope"), ("POST", "/locks/x")]
)
def test_a_browser_is_told_what_is_missing(hosting, site, method, path):
    before = len(hosting.apache.log())
    answer = site.ask(method, path, headers=BROWSER)
    assert (answer.status, answer.media_type) == (500, "text/html")
    for text in ("flask", "pip install --target vendor -r app/requirements.txt"):
        assert text in answer.text()
    assert str(hosting.top) not in answer.text()
    assert answer.header("Cache-Control") == "no-store"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    hosting.wait_until_idle()
    assert "flask" in hosting.apache.log()[before:]


def test_a_browser_that_sends_a_large_body_is_told_so_too(site):
    assert site.ask("POST", "/locks/x", b"x" * 300_000, headers=BROWSER).status == 500
