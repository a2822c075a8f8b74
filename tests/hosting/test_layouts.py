"""The service in every place it can be put, without editing."""

from __future__ import annotations

import pytest

from tests.hosting.conftest import LAYOUTS

HOLDER = {"owner": "alice", "ttl_seconds": 60}


@pytest.fixture(params=list(LAYOUTS))
def layout(request, hosting):
    """The service in one layout, and what its own addresses begin with."""
    host, base, own_base = LAYOUTS[request.param]
    return hosting.client(host, base), own_base


def test_a_lock_goes_round(layout):
    client, own_base = layout
    name = f"round{client.base}/{client.host}".replace("/index.cgi", ":called").replace("/", ":")

    def ask(method, path, body=None):
        answer = client.ask(method, path, body)
        assert answer.header("Cache-Control") == "no-store"
        assert answer.header("X-Content-Type-Options") == "nosniff"
        assert b"index.cgi" not in answer.body + repr(answer.headers).encode()
        return answer

    granted = ask("POST", f"/locks/{name}", HOLDER)
    assert granted.status == 200, granted
    lock = granted.json()["lock"]
    assert lock["resource"] == name
    assert ask("GET", f"/locks/{name}").json() == lock
    assert lock in ask("GET", f"/locks?prefix={name}").json()["locks"]
    assert ask("POST", f"/locks/{name}/renew", HOLDER).json()["fencing_token"] == lock["fencing_token"]
    assert ask("POST", f"/locks/{name}/release", {"owner": "alice"}).status == 204
    gone = ask("GET", f"/locks/{name}")
    assert gone.status == 404
    assert gone.media_type == "application/problem+json"
    assert gone.json()["type"] == f"{own_base}/problems/not-found"

    with client.connect() as connection:
        explained = connection.ask("GET", gone.json()["type"])
    assert explained.status == 200, "the address of the problem's type does not answer"
    assert ask("GET", "/health").json()["status"] == "ok"
    assert ask("GET", "/").status == 200
    page = client.ask("GET", "/", headers={"Accept": "text/html"})
    assert page.media_type == "text/html"
    assert b"index.cgi" not in page.body


def test_an_unknown_address_is_answered_by_the_service(layout):
    client, own_base = layout
    answer = client.ask("GET", "/no/such/page")
    assert answer.status == 404
    assert answer.json()["type"] == f"{own_base}/problems/not-found"
    assert answer.json()["title"] == "No such page."


def test_the_top_without_a_slash_is_answered(hosting):
    """The folder's own address, where the service is in one."""
    for host, base in (("folder.test", "/aliased"), ("folder.test", "/service"), ("above.test", "/site")):
        answer = hosting.client(host).ask("GET", base)
        assert answer.status in (200, 301), answer
        assert "index.cgi" not in (answer.header("Location") or "")


def test_a_rate_limit_is_told_through_the_server(hosting):
    client = hosting.client("limited.test")
    answers = [client.acquire("limited") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[0].header("RateLimit-Policy") == '"acquire";q=2;w=600'
    assert answers[2].header("RateLimit").startswith('"acquire";r=0;t=')
    assert 1 <= int(answers[2].header("Retry-After")) <= 600
    assert answers[2].media_type == "application/problem+json"
