"""What every answer must look like, whatever the request was."""

from __future__ import annotations

import datetime
import re

LOCK_MEMBERS = ["resource", "owner", "acquired_at", "expires_at", "fencing_token"]
INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"}

STATUS_BY_SLUG = {
    "malformed-request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "length-required": 411,
    "too-large": 413,
    "unsupported-media-type": 415,
    "validation-failed": 422,
    "too-many-requests": 429,
    "internal-error": 500,
    "unavailable": 503,
    "capacity": 503,
}
TITLES_BY_SLUG = {
    "malformed-request": {"Malformed request."},
    "unauthorized": {"API key required."},
    "forbidden": {"Owner mismatch."},
    "not-found": {"Lock not found.", "No such page."},
    "method-not-allowed": {"Method not allowed."},
    "validation-failed": {"Validation failed."},
    "too-many-requests": {"Too many requests."},
}


def instant(now_ms: int) -> str:
    """RFC 3339, written by the standard library and not by the code under test."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=now_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def assert_lock(lock, **expected):
    assert list(lock) == LOCK_MEMBERS
    assert INSTANT.fullmatch(lock["acquired_at"]), lock
    assert INSTANT.fullmatch(lock["expires_at"]), lock
    assert type(lock["fencing_token"]) is int
    assert lock["fencing_token"] > 0
    assert {name: lock[name] for name in expected} == expected


def assert_problem(answer, slug, title=None):
    """A refusal as a machine sees it."""
    assert answer.status == STATUS_BY_SLUG[slug], answer
    assert answer.media_type == "application/problem+json", answer
    problem = answer.json()
    members = {"type", "title", "status", "detail"} | ({"errors"} if slug == "validation-failed" else set())
    assert set(problem) == members, answer
    assert type(problem["status"]) is int
    assert problem["status"] == answer.status
    assert problem["type"].startswith("/"), answer
    assert problem["type"].endswith("/problems/" + slug), answer
    assert "index.cgi" not in problem["type"]
    assert isinstance(problem["title"], str)
    assert problem["title"]
    assert isinstance(problem["detail"], str)
    assert problem["detail"]
    if slug in TITLES_BY_SLUG:
        assert problem["title"] in TITLES_BY_SLUG[slug], answer
    if title is not None:
        assert problem["title"] == title, answer
    if slug == "validation-failed":
        assert problem["errors"], answer
        for error in problem["errors"]:
            assert set(error) == {"field", "code", "message"}, answer
            assert all(isinstance(text, str) and text for text in error.values()), answer
    if slug == "method-not-allowed":
        assert answer.header("Allow"), answer
    if answer.status in (429, 503):
        assert answer.header("Retry-After").isdigit(), answer
        assert int(answer.header("Retry-After")) >= 1


def assert_page(answer):
    """What a browser shows."""
    assert answer.media_type == "text/html", answer
    assert "charset=utf-8" in answer.header("Content-Type").lower(), answer
    text = answer.text()
    assert "<html" in text.lower()
    assert "<title>" in text.lower()
    return text


def assert_shaped(answer, method):
    """Any answer to any request: of a known status, safe to pass through caches, and of its status's form."""
    assert answer.status in (200, 204, *STATUS_BY_SLUG.values()), answer
    assert answer.status != 500, answer
    assert answer.header("Cache-Control") == "no-store", answer
    assert answer.header("X-Content-Type-Options") == "nosniff", answer
    assert answer.header("Content-Type") is not None or answer.status == 204, answer
    if method == "HEAD" or answer.status == 204:
        assert answer.body == b"", answer
    else:
        assert answer.header("Content-Length") in (None, str(len(answer.body))), answer
        if answer.media_type == "text/html":
            assert_page(answer)
        elif answer.status == 200:
            assert answer.media_type == "application/json", answer
            answer.json()
        else:
            assert_problem(answer, answer.slug)
    if answer.status == 405:
        assert answer.header("Allow"), answer
    if answer.status in (429, 503):
        assert int(answer.header("Retry-After")) >= 1, answer
