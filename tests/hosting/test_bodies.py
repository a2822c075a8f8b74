"""Bodies of every size and ending, as they come through the server."""

from __future__ import annotations

import json

import pytest

HOLDER = json.dumps({"owner": "alice", "ttl_seconds": 3600}).encode()
MEGABYTE = 1_000_000


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def ask_chunked(client, target, body, size=16):
    with client.connect() as connection:
        headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
        connection.write(connection.head("POST", target, headers) + chunked(body, size))
        return connection.read_answer("POST")


def assert_in_step(connection, answer) -> None:
    """The connection can be used again, unless the server has said that it ends: Apache does with 400, 413 and 5xx."""
    if answer.header("Connection") != "close":
        assert connection.ask("GET", "/health").status == 200


def test_a_chunked_body_is_read(site):
    answer = ask_chunked(site, "/locks/chunked", HOLDER)
    assert answer.status == 200, answer
    assert answer.json()["lock"]["owner"] == "alice"
    assert ask_chunked(site, "/locks/chunked/release", b'{"owner": "bob"}').status == 403
    assert ask_chunked(site, "/locks/chunked/release", b'{"owner": "alice"}').status == 204


def test_an_empty_chunked_body_is_refused(site):
    assert ask_chunked(site, "/locks/chunked-empty", b"").status == 400
    assert not site.is_held("chunked-empty")


def test_a_long_chunked_body_is_refused_with_an_answer(site):
    answer = ask_chunked(site, "/locks/chunked-long", HOLDER[:-1] + b" " * 2 * MEGABYTE + b"}", 30_000)
    assert answer.status == 413
    assert answer.json()["type"] == "/problems/too-large"
    assert not site.is_held("chunked-long")


def test_a_body_of_exactly_the_limit_is_read(site):
    limit = 65_536
    assert site.ask("POST", "/locks/at-the-limit", HOLDER + b" " * (limit - len(HOLDER))).status == 200
    assert site.ask("POST", "/locks/over-the-limit", HOLDER + b" " * (limit - len(HOLDER) + 1)).status == 413
    assert not site.is_held("over-the-limit")


def test_ten_megabytes_get_their_answer(site):
    with site.connect() as connection:
        answer = connection.ask("POST", "/locks/huge", HOLDER + b" " * 10 * MEGABYTE)
        assert answer.status == 413
        assert answer.media_type == "application/problem+json"
        assert answer.json()["type"] == "/problems/too-large"
        assert_in_step(connection, answer)
    assert not site.is_held("huge")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/nowhere", 404),
        ("PUT", "/locks/x", 405),
        ("POST", "/locks", 405),
        ("POST", "/health", 405),
        ("DELETE", "/nowhere", 404),
        ("GET", "/health", 200),
        ("GET", "/locks/nobody-has-this", 404),
        ("OPTIONS", "/locks/x", 204),
    ],
)
@pytest.mark.parametrize("size", [20_000, 300_000])
def test_an_answer_is_not_lost_over_a_body_that_nobody_wants(site, method, path, status, size):
    with site.connect() as connection:
        answer = connection.ask(method, path, b"x" * size)
        assert answer.status == status, answer
        assert_in_step(connection, answer)


@pytest.mark.parametrize("size", [70_000, 300_000])
@pytest.mark.parametrize("path", ["/locks/too-large", "/locks/%ff", "/locks/x/renew", "/locks/x/release"])
def test_an_answer_is_not_lost_over_a_body_that_is_too_large(site, path, size):
    with site.connect() as connection:
        answer = connection.ask("POST", path, b"x" * size)
        assert answer.status == 413, answer
        assert_in_step(connection, answer)


def test_a_client_that_waits_to_be_told_to_continue_is_told(site):
    with site.connect() as connection:
        headers = {"Content-Length": str(len(HOLDER)), "Expect": "100-continue"}
        connection.write(connection.head("POST", "/locks/continued", headers))
        connection.write(HOLDER)
        assert connection.read_answer("POST").status == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"owner": "a", "owner": "b"}', b"\xff", b"[" * 60_000])
def test_a_body_that_cannot_be_read_is_refused(site, body):
    answer = site.ask("POST", "/locks/unreadable", body)
    assert answer.status == 400, answer
    assert not site.is_held("unreadable")


@pytest.mark.parametrize("media_type", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_form_is_refused(site, media_type):
    answer = site.ask("POST", "/locks/form", HOLDER, headers={"Content-Type": media_type})
    assert answer.status == 415
    assert not site.is_held("form")


def cut_off(client, target: str, sent: bytes, announced: int, half_open: bool, method: str = "POST") -> None:
    """Announce a body, send less of it, and hang up."""
    with client.connect() as connection:
        headers = {"Content-Length": str(announced), "Content-Type": "application/json"}
        connection.write(connection.head(method, target, headers) + sent)
        if half_open:
            connection.end_writing()
            try:
                assert connection.read_answer(method).status >= 400
            except ConnectionError:
                pass  # a server need not answer a request that it has not got


@pytest.mark.parametrize("half_open", [False, True], ids=["hangs up", "waits for an answer"])
def test_a_body_that_is_cut_off_never_acts(hosting, site, half_open):
    site.acquire("cut-held")
    whole_before = site.ask("GET", "/locks/cut-held").json()
    release = b'{"owner": "alice"}'
    # What arrives is a whole JSON object each time: only the length says that something is missing.
    cut_off(site, "/locks/cut-acquire", HOLDER, len(HOLDER) + 10, half_open)
    cut_off(site, "/locks/cut-held/renew", HOLDER, len(HOLDER) + 1, half_open)
    cut_off(site, "/locks/cut-held/release", release, 60_000, half_open)
    cut_off(site, "/locks/cut-held", release, len(release) * 2, half_open, "DELETE")
    cut_off(site, "/locks/cut-held?owner=alice", b"", 20, half_open, "DELETE")
    cut_off(site, "/locks/cut-half", HOLDER[: len(HOLDER) // 2], len(HOLDER), half_open)
    hosting.wait_until_idle()
    assert site.ask("GET", "/locks/cut-held").json() == whole_before
    assert not site.is_held("cut-acquire")
    assert not site.is_held("cut-half")


def test_a_chunked_body_that_is_cut_off_never_acts(hosting, site):
    """Nothing tells the script that chunks are missing, but a JSON object that lacks its end is none."""
    site.acquire("cut-chunks-held")
    whole_before = site.ask("GET", "/locks/cut-chunks-held").json()
    for target in ("/locks/cut-chunks", "/locks/cut-chunks-held/renew", "/locks/cut-chunks-held/release"):
        for length in (1, len(HOLDER) // 2, len(HOLDER) - 1):
            with site.connect() as connection:
                headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
                chunks = chunked(HOLDER[:length], 16)
                connection.write(connection.head("POST", target, headers) + chunks[: -len(b"0\r\n\r\n")])
    hosting.wait_until_idle()
    assert site.ask("GET", "/locks/cut-chunks-held").json() == whole_before
    assert not site.is_held("cut-chunks")


def test_after_bodies_that_were_cut_off_the_service_still_answers(hosting, site):
    for _ in range(5):
        cut_off(site, "/locks/cut-again", b"x" * 30_000, 500_000, False)
    hosting.wait_until_idle()
    assert site.acquire("after-cut").status == 200
