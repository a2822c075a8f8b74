"""An answer, and how lease, problem and JSON become one."""

from __future__ import annotations

from app.errors import ValidationFailed
from app.jsontext import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from app.errors import Refusal
    from app.lease import Lease

JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
#: host front caches store dynamic answers that do not forbid it
COMMON_HEADERS = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
#: status -> reason phrase (RFC 9110, 15)
REASONS = {
    200: "OK",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Response:
    """One answer.

    Args:
        status: the HTTP status.
        headers: (name, value) in the order in which they are sent.
        document: what the body says; None for an empty body.
        page: the page that shows the document to a browser instead, or "" where it gets the JSON too.
    """

    __slots__ = ("document", "headers", "page", "status")

    def __init__(
        self, status: int, headers: list[tuple[str, str]], document: dict[str, object] | None, page: str = ""
    ) -> None:
        self.status = status
        self.headers = headers
        self.document = document
        self.page = page

    def status_line(self) -> str:
        """Return status and reason phrase."""
        return f"{self.status} {REASONS[self.status]}"

    def body(self) -> bytes:
        """Return the document as bytes of JSON, with a line end for people at a terminal."""
        return b"" if self.document is None else dumps(self.document).encode("utf-8") + b"\n"


def json_response(status: int, document: dict[str, object], headers: list[tuple[str, str]], page: str = "") -> Response:
    """Return an answer with a JSON document."""
    return Response(status, [("Content-Type", JSON_TYPE), *COMMON_HEADERS, *headers], document, page)


def empty_response(headers: list[tuple[str, str]]) -> Response:
    """Return an answer 204 without a body."""
    return Response(204, [*COMMON_HEADERS, *headers], None)


def problem_response(refusal: Refusal, base: str, headers: list[tuple[str, str]]) -> Response:
    """Return a refusal as a problem document (RFC 9457).

    Args:
        refusal: what happened.
        base: the folder the service is installed in, for the problem's type.
        headers: what the answer carries besides.
    """
    from app.problems import PROBLEMS

    status, title, _ = PROBLEMS[refusal.slug]
    document: dict[str, object] = {
        "type": problem_address(base, refusal.slug),
        "title": refusal.title or title,
        "status": status,
        "detail": refusal.detail,
    }
    if isinstance(refusal, ValidationFailed):
        document["errors"] = [
            {"field": fault.field, "code": fault.code, "message": fault.message} for fault in refusal.faults
        ]
    sent = [("Content-Type", PROBLEM_TYPE), *COMMON_HEADERS, *refusal.headers(), *headers]
    return Response(status, sent, document, page="problem")


def problem_address(base: str, slug: str) -> str:
    """Return the address of the page about a kind of problem."""
    return f"{base}/problems/{slug}"


def lease_document(lease: Lease) -> dict[str, object]:
    """Return what callers see of a lease."""
    return {
        "resource": lease.resource,
        "owner": lease.owner,
        "acquired_at": lease.acquired_at,
        "expires_at": lease.expires_at,
        "fencing_token": lease.fencing_token,
    }
