"""Each refusal, and the one table of how it is told."""

from __future__ import annotations

import re

import pytest

from app import errors
from app.errors import Fault, Refusal
from app.problems import PROBLEMS, STORE_FAULTS
from app.response import REASONS

#: slugs of the table that this version documents and never answers with
NEVER_RAISED = {"unauthorized"}
EXPECTED = {
    "malformed-request": (400, "Malformed request."),
    "unauthorized": (401, "API key required."),
    "forbidden": (403, "Owner mismatch."),
    "not-found": (404, "Lock not found."),
    "method-not-allowed": (405, "Method not allowed."),
    "length-required": (411, "Length required."),
    "too-large": (413, "Body too large."),
    "unsupported-media-type": (415, "Unsupported media type."),
    "validation-failed": (422, "Validation failed."),
    "too-many-requests": (429, "Too many requests."),
    "internal-error": (500, "Internal error."),
    "unavailable": (503, "Service unavailable."),
    "capacity": (503, "Capacity reached."),
}
#: what stands for facts that a caller or the system has given
SECRETS = "/home/alice/kannuki/var/locks.sqlite3"


def subclasses(kind: type[Refusal] = Refusal) -> list[type[Refusal]]:
    return [found for child in kind.__subclasses__() for found in (child, *subclasses(child))]


QUOTA = [("RateLimit", '"acquire";r=0;t=17')]
#: one of each kind, with every reason there is
REFUSALS = [
    errors.MalformedRequest(),
    errors.LeaseNotFound(),
    errors.PageNotFound(),
    errors.NotHolder(),
    errors.MethodNotAllowed("GET, HEAD, OPTIONS"),
    errors.LengthRequired(),
    errors.BodyTooLarge(),
    errors.UnsupportedMediaType(),
    errors.ValidationFailed([Fault("owner", "empty", "The owner must not be empty."), Fault("x", "y", "So is x.")]),
    errors.TooManyRequests("acquire", 17, QUOTA),
    errors.InternalError(),
    errors.Unavailable("It is so."),
    *(errors.StoreUnavailable(reason, f"cannot open {SECRETS}") for reason in STORE_FAULTS),
    errors.RateLimitUnavailable(f"EACCES {SECRETS}"),
    errors.CapacityReached(10_000),
    errors.SettingsError(["MAX_LOCKS must be a whole number.", "TYPO is no setting."]),
]


def name(refusal: Refusal) -> str:
    return f"{type(refusal).__name__} {getattr(refusal, 'reason', '')}".strip()


def test_the_list_here_has_every_kind():
    assert {type(refusal) for refusal in REFUSALS} == set(subclasses())


def test_the_table_is_that_of_the_contract():
    assert {slug: problem[:2] for slug, problem in PROBLEMS.items()} == EXPECTED


@pytest.mark.parametrize("kind", [Refusal, *subclasses()], ids=lambda kind: kind.__name__)
def test_every_kind_of_refusal_has_a_slug_of_the_table(kind):
    assert kind.slug in PROBLEMS


def test_every_slug_of_the_table_is_that_of_a_refusal():
    assert set(PROBLEMS) - {kind.slug for kind in subclasses()} == NEVER_RAISED


@pytest.mark.parametrize("slug", PROBLEMS)
def test_a_slug_has_a_status_a_title_and_an_explanation(slug):
    status, title, meaning = PROBLEMS[slug]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", slug)
    assert 400 <= status <= 599
    assert status in REASONS
    assert re.fullmatch(r"[A-Z][A-Za-z ]+\.", title)
    assert re.fullmatch(r"[A-Z][^\n]+\.", meaning)


@pytest.mark.parametrize("refusal", REFUSALS, ids=name)
def test_a_detail_is_sentences_without_a_path_or_what_the_system_said(refusal):
    assert re.fullmatch(r"[A-Z][^\n]+\.", refusal.detail)
    # Names within the installation may be told, and addresses of this service; places on the server's disk may not.
    told = re.sub(r"(?<!\S)(var/|var/config\.py|/locks|/health)(?=[\s,.:]|$)", "", refusal.detail)
    told = told.replace("tools/doctor.py", "").replace("application/json", "")
    assert "/" not in told
    assert "\\" not in told
    for secret in (SECRETS, "alice", "sqlite", "EACCES"):
        assert secret not in refusal.detail


@pytest.mark.parametrize("kind", [errors.MalformedRequest, errors.NotHolder, errors.InternalError, errors.BodyTooLarge])
def test_without_words_of_its_own_a_refusal_is_told_in_those_of_the_table(kind):
    assert kind().detail == PROBLEMS[kind.slug][2]
    assert kind("It is so.").detail == "It is so."


HEADERS = {
    "MethodNotAllowed": [("Allow", "GET, HEAD, OPTIONS")],
    "TooManyRequests": [("Retry-After", "17"), *QUOTA],
    "Unavailable": [("Retry-After", "5")],
    "StoreUnavailable busy": [("Retry-After", "1")],
    **{f"StoreUnavailable {reason}": [("Retry-After", "60")] for reason in STORE_FAULTS if reason != "busy"},
    "RateLimitUnavailable": [("Retry-After", "60")],
    "CapacityReached": [("Retry-After", "5")],
    "SettingsError": [("Retry-After", "60")],
}


@pytest.mark.parametrize("refusal", REFUSALS, ids=name)
def test_a_refusal_has_the_headers_that_belong_to_it(refusal):
    assert refusal.headers() == HEADERS.get(name(refusal), [])


@pytest.mark.parametrize("refusal", REFUSALS, ids=name)
def test_whoever_is_refused_for_now_is_told_when_to_come_again(refusal):
    status = PROBLEMS[refusal.slug][0]
    assert ("Retry-After" in dict(refusal.headers())) == (status in (429, 503))
    assert ("Allow" in dict(refusal.headers())) == (status == 405)


def test_only_the_unknown_address_has_a_title_of_its_own():
    assert {kind.__name__: kind.title for kind in subclasses() if kind.title} == {"PageNotFound": "No such page."}


def test_a_lost_quota_and_a_full_store_are_told_from_other_failures():
    assert errors.CapacityReached(7).slug == "capacity"
    assert "7" in errors.CapacityReached(7).detail
    assert isinstance(errors.CapacityReached(7), errors.Unavailable)
    assert errors.StoreUnavailable("full").slug == "unavailable"
    assert not issubclass(errors.NotHolder, errors.LeaseNotFound)
    assert not issubclass(errors.LeaseNotFound, errors.NotHolder)


def test_a_validation_failure_tells_all_its_faults():
    refusal = errors.ValidationFailed([Fault("a", "b", "One."), Fault("c", "d", "Two.")])
    assert refusal.detail == "One. Two."
    assert [(fault.field, fault.code, fault.message) for fault in refusal.faults] == [
        ("a", "b", "One."),
        ("c", "d", "Two."),
    ]


def test_what_the_system_said_is_kept_for_the_log():
    assert errors.StoreUnavailable("full", "disk full").cause == "disk full"
    assert errors.StoreUnavailable("full", "disk full").reason == "full"
    assert errors.RateLimitUnavailable("EACCES").cause == "EACCES"
