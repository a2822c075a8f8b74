"""The Flask door and the express lane give the same status line, headers and body, byte by byte.

Each request goes through both, to two services with the same settings, the same clock and, so far, the same past.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.api import ROUTES
from app.problems import PROBLEMS
from tests.clocks import ManualClock
from tests.doors import UNLIMITED, Answer, open_door
from tests.http.conftest import FAST_FOLDER
from tests.http.generated import BODIES, HEADERS, METHODS, RAW, TARGETS, TOKENS, VARIABLES
from tests.http.shape import BROWSER

BODY = {"owner": "alice", "ttl_seconds": 60}
OTHER = {"owner": "bob", "ttl_seconds": 60}
ORIGIN = "https://app.example"
#: what the web server tells the Flask application where it runs as a CGI script
AS_CGI = {"wsgi.input_terminated": True}


class Pair:
    """The two doors."""

    def __init__(self, root: Path, clock: Any = None, **settings: Any) -> None:
        self.clock = clock or ManualClock()
        self.doors = [open_door(name, root / name, self.clock, **settings) for name in ("flask", "express")]
        for door in self.doors:
            assert type(door.site.clock) is type(self.clock)

    def ask(
        self,
        method: str,
        target: str,
        body: Any = b"",
        headers: dict[str, str | None] | None = None,
        remote_addr: str | None = "192.0.2.1",
        variables: dict[str, Any] | None = None,
    ) -> Answer:
        """Send a request through both doors and return the answer, which is one."""
        variables = {**AS_CGI, **(variables or {})}
        flask, express = (door.request(method, target, body, headers, remote_addr, variables) for door in self.doors)
        asked = f"{method} {target}"
        assert (asked, express.status_line) == (asked, flask.status_line)
        assert (asked, express.headers) == (asked, flask.headers)
        assert (asked, express.body) == (asked, flask.body)
        return express

    def assert_same_state(self) -> None:
        """What is stored is the same too, counts and tokens included."""
        flask, express = (door.site for door in self.doors)
        assert express.stored() == flask.stored()
        assert [(path.name, path.read_bytes()) for path in express.windows()] == [
            (path.name, path.read_bytes()) for path in flask.windows()
        ]


@pytest.fixture
def pair(root):
    return Pair(root)


#: title -> (settings, steps); a step is a request with the status of its answer, or a time that passes in seconds
CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "acquire": (
        {},
        [
            (200, "POST", "/locks/x", BODY),
            (200, "POST", "/locks/x", BODY),
            (200, "POST", "/locks/x", OTHER),
            59.9995,
            (200, "POST", "/locks/x", OTHER),
            0.001,
            (200, "POST", "/locks/x", OTHER),
            (200, "POST", "/locks/%E9%96%82%20%22%5C", {"owner": 'é\u2028\U0001f512 "\\', "ttl_seconds": 604800}),
            (200, "POST", "/locks/%E9%96%82%20%22%5C", BODY),
        ],
    ),
    "status": (
        {},
        [
            (404, "GET", "/locks/x"),
            (200, "POST", "/locks/x", BODY),
            (200, "GET", "/locks/x"),
            (200, "HEAD", "/locks/x"),
            (404, "HEAD", "/locks/y"),
            60,
            (404, "GET", "/locks/x"),
        ],
    ),
    "renew": (
        {},
        [
            (404, "POST", "/locks/x/renew", BODY),
            (200, "POST", "/locks/x", BODY),
            30,
            (200, "POST", "/locks/x/renew", BODY),
            (403, "POST", "/locks/x/renew", OTHER),
            60,
            (404, "POST", "/locks/x/renew", BODY),
        ],
    ),
    "release": (
        {},
        [
            (200, "POST", "/locks/x", BODY),
            (403, "DELETE", "/locks/x", OTHER),
            (403, "POST", "/locks/x/release", OTHER),
            (400, "DELETE", "/locks/x?owner=bob", {"owner": "alice"}),
            (422, "DELETE", "/locks/x"),
            (204, "DELETE", "/locks/x", {"owner": "alice"}),
            (404, "DELETE", "/locks/x", {"owner": "alice"}),
            (200, "POST", "/locks/x", BODY),
            (204, "POST", "/locks/x/release?owner=alice"),
            (200, "POST", "/locks/x", BODY),
            (204, "POST", "/locks/x", {"owner": "alice"}, {"X-HTTP-Method-Override": "DELETE"}),
        ],
    ),
    "list": (
        {},
        [
            (200, "GET", "/locks"),
            *[(200, "POST", f"/locks/n{number}", BODY) for number in range(3)],
            (200, "GET", "/locks"),
            (200, "HEAD", "/locks"),
            (200, "GET", "/locks?limit=2"),
            (200, "GET", "/locks?limit=2&cursor=6e31"),
            (200, "GET", "/locks?prefix=n1&limit=1000"),
            (422, "GET", "/locks?limit=0&cursor=x&prefix=%FF"),
            (400, "GET", "/locks?limit=1&limit=1"),
        ],
    ),
    "health and the other pages": (
        {},
        [
            (200, "GET", "/health"),
            (200, "HEAD", "/health"),
            (200, "GET", "/"),
            (200, "HEAD", "/"),
            (200, "GET", ""),
            (404, "GET", "/nope"),
            (404, "HEAD", "/nope"),
            (404, "OPTIONS", "/nope"),
            (404, "GET", "//"),
            (404, "GET", "/locks//x"),
            (404, "GET", "/locks/a%2Fb"),
            *[(200, "GET", f"/problems/{slug}") for slug in PROBLEMS],
            (200, "HEAD", "/problems/forbidden"),
            (404, "GET", "/problems/nope"),
        ],
    ),
    "methods": (
        {},
        [
            (405, method, target)
            for method in ("PUT", "PATCH", "TRACE", "get", "X" * 300)
            for target in ("/locks/x", "/locks", "/health", "/", "/locks/x/renew", "/problems/forbidden")
        ]
        + [
            (204, "OPTIONS", target)
            for target in ("/locks/x", "/locks", "/health", "/", "/locks/x/release", "/problems/forbidden")
        ]
        + [(405, "POST", "/health", BODY), (405, "DELETE", "/locks", BODY), (405, "HEAD", "/locks/x/renew")],
    ),
    "bodies": (
        {},
        [
            (400, "POST", "/locks/x", b""),
            (400, "POST", "/locks/x", b"{"),
            (400, "POST", "/locks/x", b"[]"),
            (400, "POST", "/locks/x", b"\xff"),
            (400, "POST", "/locks/x", b'{"owner": "a", "owner": "b"}'),
            (400, "POST", "/locks/x", b"[" * 60_000),
            (400, "POST", "/locks/x", b"{}", {"Content-Length": "3"}),
            (400, "POST", "/locks/x", b"{}", {"Content-Length": "x"}),
            (413, "POST", "/locks/x", b" " * 65_537),
            (413, "POST", "/locks/x", b" " * 65_537, {"Content-Length": None, "Transfer-Encoding": "chunked"}),
            (415, "POST", "/locks/x", b"owner=a", {"Content-Type": "application/x-www-form-urlencoded"}),
            (415, "DELETE", "/locks/x", b"owner=a", {"Content-Type": "multipart/form-data; boundary=x"}),
            (200, "POST", "/locks/x", BODY, {"Content-Length": None, "Transfer-Encoding": "chunked"}),
            (200, "POST", "/locks/x", b'{"owner": "\\u0061lice", "ttl_seconds": 60}', {"Content-Type": "text/plain"}),
        ],
    ),
    "values": (
        {},
        [
            (422, "POST", "/locks/x", {}),
            (422, "POST", "/locks/%FF", {"owner": " ", "ttl_seconds": 0}),
            (422, "POST", "/locks/", {"owner": "a" * 256, "ttl_seconds": True}),
            (422, "POST", "/locks/" + "n" * 256, {"owner": "\ud800", "ttl_seconds": 5.0}),
            (422, "POST", "/locks/x", b'{"owner": "a", "ttl_seconds": ' + b"9" * 5000 + b"}"),
            (422, "GET", "/locks/%00"),
            (422, "HEAD", "/locks/%00"),
            (422, "POST", "/locks/x/renew", {"ttl_seconds": "60"}),
        ],
    ),
    "rate limits": (
        {"RATE_LIMITS": {"acquire": (2, 60), "hold": (1, 10), "read": (1, 10)}},
        [
            (200, "POST", "/locks/x", BODY),
            (422, "POST", "/locks/x", {}),
            (429, "POST", "/locks/x", BODY),
            (404, "GET", "/locks/y"),
            (429, "GET", "/locks/y"),
            (429, "HEAD", "/locks/y"),
            (429, "GET", "/locks"),
            (200, "POST", "/locks/x/renew", BODY),
            (429, "DELETE", "/locks/x", BODY),
            (429, "POST", "/locks/x", OTHER, {"X-HTTP-Method-Override": "DELETE"}),
            (200, "GET", "/health"),
            9.5,
            (429, "GET", "/locks/y"),
            0.5,
            (404, "GET", "/locks/y"),
            60,
            (200, "POST", "/locks/x", BODY),
        ],
    ),
    "no rate limits": ({"RATE_LIMITS": UNLIMITED}, [(200, "POST", "/locks/x", BODY), (200, "GET", "/locks/x")]),
    "other origins": (
        {"CORS_ORIGINS": (ORIGIN,), "RATE_LIMITS": {"read": (1, 60)}},
        [
            (200, "POST", "/locks/x", BODY, {"Origin": ORIGIN}),
            (200, "POST", "/locks/x", OTHER, {"Origin": ORIGIN}),
            (200, "POST", "/locks/x", BODY, {"Origin": "https://other.example"}),
            (200, "POST", "/locks/x", BODY),
            (204, "OPTIONS", "/locks/x", b"", {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}),
            (204, "OPTIONS", "/locks/x", b"", {"Origin": "null"}),
            (204, "OPTIONS", "/locks/x"),
            (404, "GET", "/nope", b"", {"Origin": ORIGIN}),
            (405, "PUT", "/locks/x", b"", {"Origin": ORIGIN}),
            (200, "GET", "/locks/x", b"", {"Origin": ORIGIN}),
            (429, "GET", "/locks/x", b"", {"Origin": ORIGIN}),
            (422, "POST", "/locks/x", {}, {"Origin": ORIGIN}),
            (204, "DELETE", "/locks/x", BODY, {"Origin": ORIGIN}),
        ],
    ),
    "capacity": (
        {"MAX_LOCKS": 1},
        [(200, "POST", "/locks/x", BODY), (503, "POST", "/locks/y", BODY), (200, "POST", "/locks/x", OTHER)],
    ),
    "settings that are not acceptable": (
        {"MAX_LOCKS": 0, "API_KEYS": {"ci": "x"}, "NONSENSE": 1},
        [
            (503, "POST", "/locks/x", BODY),
            (503, "GET", "/locks/x"),
            (503, "HEAD", "/locks/x"),
            (204, "OPTIONS", "/locks/x"),
            (404, "PUT", "/nope"),
            (503, "GET", "/health"),
            (503, "HEAD", "/health"),
            (405, "POST", "/health"),
            (503, "GET", "/"),
        ],
    ),
}


def run(pair: Pair, steps: list[Any], wishes: dict[str, str]) -> list[tuple[str, str, Answer]]:
    answered = []
    for step in steps:
        if not isinstance(step, tuple):
            pair.clock.advance(step)
            continue
        status, method, target, body, headers = (*step, *(b"", {})[len(step) - 3 :])
        answer = pair.ask(method, target, body, {**headers, **wishes})
        assert answer.status == status, (method, target, answer)
        answered.append((method, target, answer))
    pair.assert_same_state()
    return answered


@pytest.mark.parametrize("wishes", [{}, BROWSER], ids=["machine", "browser"])
@pytest.mark.parametrize("title", CASES)
def test_both_doors_answer_alike(root, title, wishes):
    chosen, steps = CASES[title]
    run(Pair(root, **chosen), steps, wishes)


def test_the_cases_above_meet_every_route_and_every_kind_of_error(root):
    met, slugs = set(), set()
    for number, (chosen, steps) in enumerate(CASES.values()):
        (root / str(number)).mkdir()
        for method, target, answer in run(Pair(root / str(number), **chosen), steps, {}):
            segments = target.partition("?")[0].encode().split(b"/")[1:] or [b""]
            met.add((len(segments), segments[0], method))
            if answer.media_type == "application/problem+json" and method != "HEAD":
                slugs.add(answer.slug)
    for path, methods in ROUTES:
        assert {(len(path), path[0], method) for method in methods} <= met
    # Keys are not asked for yet, a CGI body always has an end, and a fault of the service takes more than a request.
    assert set(PROBLEMS) - slugs == {"unauthorized", "length-required", "internal-error"}


@pytest.mark.parametrize("wishes", [{}, BROWSER], ids=["machine", "browser"])
@pytest.mark.parametrize("content", [None, b"", b"x" * 10_000], ids=["gone", "empty", "damaged"])
def test_both_doors_tell_alike_that_the_store_is_unusable(pair, content, wishes):
    pair.ask("POST", "/locks/x", BODY)
    for door in pair.doors:
        door.site.database.unlink()
        if content is not None:
            door.site.database.write_bytes(content)
    for method, target, body in (
        ("POST", "/locks/x", BODY),
        ("GET", "/locks/x", b""),
        ("HEAD", "/locks/x", b""),
        ("GET", "/locks", b""),
        ("DELETE", "/locks/x", BODY),
        ("GET", "/health", b""),
        ("HEAD", "/health", b""),
    ):
        assert pair.ask(method, target, body, wishes).status == 503


def test_both_doors_tell_alike_that_the_store_is_busy(root):
    pair = Pair(root, BUSY_TIMEOUT_SECONDS=0.05)
    pair.ask("POST", "/locks/x", BODY)
    connections = [sqlite3.connect(door.site.database, isolation_level=None) for door in pair.doors]
    for connection in connections:
        connection.execute("BEGIN IMMEDIATE")
    assert pair.ask("POST", "/locks/x", BODY).status == 503
    assert pair.ask("GET", "/locks/x").status == 200
    for connection in connections:
        connection.close()


def test_both_doors_let_pass_alike_what_they_cannot_count(pair):
    for door in pair.doors:
        (door.site.var / "rate-limits").write_bytes(b"")
    answer = pair.ask("POST", "/locks/x", BODY)
    assert answer.status == 200
    assert answer.header("RateLimit") is None


@pytest.mark.parametrize("wishes", [{}, BROWSER], ids=["machine", "browser"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_both_doors_tell_a_fault_of_the_service_alike(root, method, wishes):
    class Broken(ManualClock):
        def now_ms(self):
            raise RuntimeError("secret")

    pair = Pair(root, Broken(), RATE_LIMITS=UNLIMITED)
    assert pair.ask(method, "/locks/x", BODY if method == "POST" else b"", wishes).status == 500


@pytest.mark.parametrize(
    ("script_name", "request_uri", "status"),
    [
        ("/index.cgi", "/locks/x", 404),
        ("/index.cgi", "/index.cgi/locks/x", 404),
        ("/service/index.cgi", "/service/locks/x", 404),
        ("/service/index.cgi", "/service/nope", 404),
        ("/service/index.cgi", "/service", 200),
        ("/public_html/index.cgi", "/", 200),
        ("/a b/public_html/index.cgi", "/a%20b/health", 200),
        ("/index.cgi", "http://locks.example/locks/x?y", 404),
        ("", "*", 200),
        ("", "", 200),
    ],
)
def test_both_doors_find_their_place_alike(pair, script_name, request_uri, status):
    variables = {"SCRIPT_NAME": script_name, "PATH_INFO": "/-"}
    if request_uri in ("", "*"):
        variables["PATH_INFO"] = "/"
    assert pair.ask("GET", request_uri, variables=variables).status == status


# Generated requests

NAMES = st.sampled_from(["x", "y", "%C3%A9", "%FF", "a%2Fb", ""])
SENSIBLE = st.one_of(
    st.tuples(st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "DELETE"]), NAMES.map("/locks/{}".format)),
    st.tuples(st.just("POST"), NAMES.map("/locks/{}".format)),
    st.tuples(st.just("POST"), NAMES.map("/locks/{}/renew".format) | NAMES.map("/locks/{}/release".format)),
    st.tuples(
        st.sampled_from(["GET", "HEAD"]),
        st.sampled_from(["/locks", "/locks?limit=1", "/locks?limit=1&cursor=78", "/health", "/", "/problems/capacity"]),
    ),
)
HOLDERS = st.fixed_dictionaries(
    {"owner": st.sampled_from(["alice", "bob", " alice ", "é\u2028"]), "ttl_seconds": st.sampled_from([1, 5, 60, 0])}
)
REQUESTS = st.tuples(
    SENSIBLE | st.tuples(METHODS | RAW.filter(bool), TARGETS),
    HOLDERS | BODIES,
    st.just({}) | st.fixed_dictionaries({"Origin": st.sampled_from([ORIGIN, "null"])}) | HEADERS,
    st.just("192.0.2.1") | st.none() | TOKENS | RAW,
    st.just({}) | VARIABLES,
)
STEPS = st.lists(st.sampled_from([0.001, 1, 4.9995, 60, -30]) | REQUESTS, min_size=1, max_size=8)


@given(steps=STEPS)
@example(steps=[(("OPTIONS", "/locks/x"), b"", {"Accept": "text/html", "Origin": ORIGIN}, "192.0.2.1", {})])
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_both_doors_answer_generated_requests_alike(steps):
    with tempfile.TemporaryDirectory(prefix="kannuki-", dir=FAST_FOLDER) as folder:
        limits = {"acquire": (3, 60), "hold": (3, 5), "read": (3, 5)}
        pair = Pair(Path(folder), RATE_LIMITS=limits, MAX_LOCKS=2, CORS_ORIGINS=(ORIGIN,), TRUSTED_PROXY_HOPS=1)
        for step in steps:
            if not isinstance(step, tuple):
                pair.clock.advance(step)
                continue
            (method, target), body, headers, remote_addr, variables = step
            pair.ask(method, target, body, headers, remote_addr, variables)
        pair.assert_same_state()
