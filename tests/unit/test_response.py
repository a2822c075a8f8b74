"""How leases, refusals and documents become answers."""

from __future__ import annotations

import http
import json

import pytest

from app import errors
from app.errors import Fault
from app.lease import Lease
from app.problems import PROBLEMS
from app.response import (
    REASONS,
    Response,
    empty_response,
    json_response,
    lease_document,
    problem_address,
    problem_response,
)

NO_STORE, NO_SNIFF = ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")
#: the http module of older Pythons has the names of older RFCs
RENAMED = {413: "Content Too Large", 422: "Unprocessable Content"}


def test_reason_phrases_are_those_of_the_standard():
    standard = {status: RENAMED.get(status, http.HTTPStatus(status).phrase) for status in REASONS}
    assert standard == REASONS


def test_every_status_of_a_problem_has_a_reason_phrase():
    assert {problem[0] for problem in PROBLEMS.values()} <= set(REASONS)


@pytest.mark.parametrize("status", REASONS)
def test_a_status_line_is_number_and_phrase(status):
    assert Response(status, [], None).status_line() == f"{status} {REASONS[status]}"


def test_a_json_answer_carries_its_type_the_common_headers_and_then_its_own():
    answer = json_response(200, {"a": 1}, [("RateLimit", "x")])
    assert answer.status == 200
    assert answer.headers == [("Content-Type", "application/json"), NO_STORE, NO_SNIFF, ("RateLimit", "x")]
    assert answer.body() == b'{"a": 1}\n'
    assert answer.page == ""
    assert json_response(200, {}, [], page="service").page == "service"


def test_an_empty_answer_has_neither_body_nor_type():
    answer = empty_response([("Allow", "GET")])
    assert (answer.status, answer.body()) == (204, b"")
    assert answer.headers == [NO_STORE, NO_SNIFF, ("Allow", "GET")]


def test_answers_do_not_share_their_headers():
    json_response(200, {}, []).headers.append(("X", "y"))
    empty_response([]).headers.append(("X", "y"))
    assert ("X", "y") not in json_response(200, {}, []).headers + empty_response([]).headers


@pytest.mark.parametrize(
    ("document", "body"),
    [
        ({}, b"{}\n"),
        ({"a": 1, "b": [True, None]}, b'{"a": 1, "b": [true, null]}\n'),
        ({"a": "\u00e9\u3042\U0001f512"}, '{"a": "\u00e9\u3042\U0001f512"}\n'.encode()),
        ({"a": '"\\\n\x7f'}, b'{"a": "\\"\\\\\\n\x7f"}\n'),
    ],
)
def test_a_body_is_one_line_of_json_in_utf_8(document, body):
    assert json_response(200, document, []).body() == body
    assert json.loads(body) == document


@pytest.mark.parametrize("base", ["", "/kannuki", "/~alice", "/my%20locks"])
@pytest.mark.parametrize("slug", PROBLEMS)
def test_the_address_of_a_problem_lies_in_the_folder_of_the_service(base, slug):
    assert problem_address(base, slug) == f"{base}/problems/{slug}"


def test_a_refusal_becomes_a_problem_document():
    answer = problem_response(errors.NotHolder("It is so."), "/kannuki", [("RateLimit", "x")])
    assert answer.status == 403
    assert answer.page == "problem"
    assert answer.headers == [("Content-Type", "application/problem+json"), NO_STORE, NO_SNIFF, ("RateLimit", "x")]
    assert json.loads(answer.body()) == {
        "type": "/kannuki/problems/forbidden",
        "title": "Owner mismatch.",
        "status": 403,
        "detail": "It is so.",
    }


@pytest.mark.parametrize("slug", PROBLEMS)
def test_a_problem_document_has_the_status_and_title_of_the_table(slug):
    class Example(errors.Refusal):
        pass

    Example.slug = slug
    answer = problem_response(Example("It is so."), "", [])
    status, title, _ = PROBLEMS[slug]
    assert answer.status == status
    assert answer.document == {"type": f"/problems/{slug}", "title": title, "status": status, "detail": "It is so."}
    assert answer.status_line().startswith(f"{status} ")


def test_a_title_of_its_own_goes_before_that_of_the_table():
    assert problem_response(errors.PageNotFound(), "", []).document["title"] == "No such page."
    assert problem_response(errors.LeaseNotFound(), "", []).document["title"] == "Lock not found."


def test_a_validation_failure_lists_every_fault_as_an_object():
    faults = [Fault("owner", "empty", "One."), Fault("ttl_seconds", "missing", "Two.")]
    assert problem_response(errors.ValidationFailed(faults), "", []).document["errors"] == [
        {"field": "owner", "code": "empty", "message": "One."},
        {"field": "ttl_seconds", "code": "missing", "message": "Two."},
    ]


@pytest.mark.parametrize(
    "refusal", [errors.NotHolder(), errors.StoreUnavailable("full", "cause"), errors.InternalError()]
)
def test_other_refusals_list_nothing(refusal):
    assert set(problem_response(refusal, "", []).document) == {"type", "title", "status", "detail"}


def test_the_headers_of_a_refusal_come_before_those_of_the_answer():
    answer = problem_response(errors.MethodNotAllowed("GET"), "", [("Vary", "Origin")])
    assert answer.headers[3:] == [("Allow", "GET"), ("Vary", "Origin")]


def test_callers_see_five_members_of_a_lease_in_their_order():
    lease = Lease("r", "o", "2026-12-01T04:05:06.123Z", "2026-12-01T04:06:06.123Z", 7, "2026-12-01T04:05:36.123Z")
    assert list(lease_document(lease).items()) == [
        ("resource", "r"),
        ("owner", "o"),
        ("acquired_at", "2026-12-01T04:05:06.123Z"),
        ("expires_at", "2026-12-01T04:06:06.123Z"),
        ("fencing_token", 7),
    ]
