"""Handlers that are not about one lock: the list, the health, and what is said about the service and its problems.

Apart from `app.api`, so that a request about one lock does not pay for them.
"""

from __future__ import annotations

from app import __version__
from app.api import log_refusal, refuse
from app.errors import Fault, PageNotFound, SettingsError, Unavailable
from app.lease import NAME_MAX_CHARACTERS, decoded_text, has_control_character
from app.problems import PROBLEMS
from app.response import json_response, lease_document, problem_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from app.api import Headers, Service
    from app.request import Request
    from app.response import Response

LIST_LIMIT_DEFAULT = 100
LIST_LIMIT_MAX = 1000


def list_leases(service: Service, request: Request, headers: Headers) -> Response:
    """List live leases, a page at a time."""
    parameters = request.parameters("prefix", "limit", "cursor")
    faults: list[Fault] = []
    prefix = _read_prefix(parameters.get("prefix", b""), faults)
    limit = _read_limit(parameters.get("limit"), faults)
    after = _read_cursor(parameters.get("cursor", b""), faults)
    refuse(faults)
    leases = service.locks.list_live(prefix, limit + 1, after)
    page = leases[:limit]
    cursor = page[-1].resource.encode("utf-8").hex() if len(leases) > limit else None
    return json_response(200, {"locks": [lease_document(lease) for lease in page], "next_cursor": cursor}, headers)


def health(service: Service, request: Request, headers: Headers) -> Response:
    """Say whether the service can grant locks now."""
    try:
        service.locks.check()
    except Unavailable as error:
        log_refusal(error)
        failure: dict[str, object] = {
            "status": "fail",
            "version": __version__,
            "failed_check": "settings" if isinstance(error, SettingsError) else "lock_store",
            "detail": error.detail,
        }
        return json_response(503, failure, [*error.headers(), *headers])
    access = "open" if not service.settings.API_KEYS else "keys"
    return json_response(200, {"status": "ok", "version": __version__, "access": access}, headers)


def about_service(service: Service, request: Request, headers: Headers) -> Response:
    """Say what this is and where things are."""
    service.locks.check()  # a person who looks here wants to know
    document: dict[str, object] = {
        "service": "kannuki",
        "version": __version__,
        "locks": f"{request.base}/locks",
        "health": f"{request.base}/health",
    }
    return json_response(200, document, headers, page="service")


def about_problem(service: Service, request: Request, headers: Headers) -> Response:
    """Say what a kind of problem means."""
    slug = request.segments[1].decode("latin-1")
    if slug not in PROBLEMS:
        raise PageNotFound
    status, title, meaning = PROBLEMS[slug]
    document: dict[str, object] = {
        "type": problem_address(request.base, slug),
        "title": title,
        "status": status,
        "detail": meaning,
    }
    return json_response(200, document, headers, page="problem")


def _read_prefix(raw: bytes, faults: list[Fault]) -> str:
    prefix = decoded_text("prefix", raw, faults) or ""
    if len(prefix) > NAME_MAX_CHARACTERS:
        faults.append(Fault("prefix", "too_long", f"The prefix may have up to {NAME_MAX_CHARACTERS} characters."))
    elif has_control_character(prefix):
        faults.append(Fault("prefix", "control_character", "The prefix must not contain control characters."))
    return prefix


def _read_limit(raw: bytes | None, faults: list[Fault]) -> int:
    if raw is None:
        return LIST_LIMIT_DEFAULT
    if raw.isdigit() and len(raw) <= 9 and 1 <= int(raw) <= LIST_LIMIT_MAX:
        return int(raw)
    faults.append(Fault("limit", "out_of_range", f"The limit must be a whole number from 1 to {LIST_LIMIT_MAX}."))
    return 0


def _read_cursor(raw: bytes, faults: list[Fault]) -> str:
    try:
        after = bytes.fromhex(raw.decode("ascii")).decode("utf-8")
    except ValueError:
        after = ""
    if after.encode("utf-8").hex() != raw.decode("latin-1"):
        faults.append(Fault("cursor", "invalid", "The cursor is not one that this service has given out."))
    return after
