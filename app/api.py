"""The HTTP contract, once and without a framework: a Request in, a Response out.

A door calls :func:`handle`. :data:`ROUTES` is the one table of what is served. The order of the checks is that of the
lines in :func:`_dispatch`: address, method, rate limit; then the handler's: body, values, store.
"""

from __future__ import annotations

from app import log
from app.errors import (
    Fault,
    InternalError,
    MalformedRequest,
    MethodNotAllowed,
    PageNotFound,
    Refusal,
    SettingsError,
    StoreUnavailable,
    UnsupportedMediaType,
    ValidationFailed,
)
from app.jsontext import NotJSON, loads
from app.lease import (
    WHITE_SPACE,
    Held,
    decoded_text,
    read_owner,
    read_resource,
    read_ttl_seconds,
)
from app.response import (
    empty_response,
    json_response,
    lease_document,
    problem_response,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Protocol

    from app.clock import SystemClock
    from app.lease import Lease
    from app.request import Request
    from app.response import Response
    from app.settings import Settings
    from app.throttle import Throttle

    Headers = list[tuple[str, str]]
    Handler = Callable[["Service", Request, Headers], Response]

    class LockStore(Protocol):
        """Where leases are kept; app.memory_stores.InMemoryLockStore is the readable model."""

        def acquire(self, resource: str, owner: str, ttl_seconds: int) -> Lease | Held: ...
        def read(self, resource: str) -> Lease: ...
        def renew(self, resource: str, owner: str, ttl_seconds: int) -> Lease: ...
        def release(self, resource: str, owner: str) -> None: ...
        def list_live(self, prefix: str, limit: int, after: str) -> list[Lease]: ...
        def check(self) -> None: ...
        def delete_expired(self, keep_seconds: int, chunk_rows: int) -> int: ...


#: what a page of another origin may send and read; a day is the longest that browsers keep a preflight answer
CORS_REQUEST_HEADERS = "Authorization, Content-Type, X-Authorization, X-HTTP-Method-Override"
CORS_ANSWER_HEADERS = "Allow, RateLimit, RateLimit-Policy, Retry-After"
CORS_MAX_AGE_SECONDS = 86_400
#: one change in so many looks whether clean-up is overdue; chosen by the clock, which needs no memory
CHANGES_A_SHARE = 20


class Service:
    """What the handlers work with.

    Args:
        settings: the settings in force.
        clock: gives the present instant in milliseconds.
        make_locks: makes the lock store. Done at the first use, so that a request which is refused before pays nothing.
        throttle: the rate limits.
        sweep_a_share: does a bounded part of the clean-up, where cron does not.
    """

    def __init__(
        self,
        settings: Settings,
        clock: SystemClock,
        make_locks: Callable[[], LockStore],
        throttle: Throttle,
        sweep_a_share: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._make_locks = make_locks
        self._locks: LockStore | None = None
        self.throttle = throttle
        self._sweep_a_share = sweep_a_share

    @property
    def locks(self) -> LockStore:
        """The lock store."""
        if self._locks is None:
            self._locks = self._make_locks()
        return self._locks

    def after_answer(self, request: Request) -> None:
        """Do what costs the client nothing because its answer is sent: at one change in some, a share of clean-up."""
        try:
            if request.method in ("POST", "DELETE") and self.clock.now_ms() % CHANGES_A_SHARE == 0:
                self._sweep_a_share()
        except Exception as error:
            log.failure(error)


def handle(service: Service, request: Request) -> Response:
    """Answer a request. Raises nothing: what goes wrong becomes a problem document."""
    headers: Headers = []
    try:
        headers += _cors_headers(service, request)
        return _dispatch(service, request, headers)
    except Refusal as refusal:
        log_refusal(refusal)
        return problem_response(refusal, request.base, headers)
    except Exception as error:
        log.failure(error)
        return problem_response(InternalError(), request.base, headers)


def log_refusal(refusal: Refusal) -> None:
    """Write one line to the error log if it is the operator who can mend this."""
    if isinstance(refusal, StoreUnavailable):
        log.line(f"lock store {refusal.reason}: {refusal.cause}")
    elif isinstance(refusal, SettingsError):
        log.line(refusal.detail)


def _dispatch(service: Service, request: Request, headers: Headers) -> Response:
    methods = _methods_at(request.segments)
    allowed = _allow_header(methods)
    if request.method == "OPTIONS":
        return empty_response([("Allow", allowed), *headers, *_preflight_headers(headers, allowed)])
    method = "GET" if request.method == "HEAD" else request.method
    if method not in methods:
        raise MethodNotAllowed(allowed)
    handler, policy = methods[method]
    if policy:
        headers += service.throttle.count(policy, request)
    return handler(service, request, headers)


def _acquire(service: Service, request: Request, headers: Headers) -> Response:
    resource, owner, ttl_seconds = _lease_terms(service, request)
    outcome = service.locks.acquire(resource, owner, ttl_seconds)
    if isinstance(outcome, Held):
        retry_after = ("Retry-After", str(outcome.retry_after_seconds))
        return json_response(200, {"acquired": False, "resource": resource}, [retry_after, *headers])
    return json_response(200, {"acquired": True, "lock": lease_document(outcome)}, headers)


def _status(service: Service, request: Request, headers: Headers) -> Response:
    faults: list[Fault] = []
    resource = read_resource(request.segments[1], faults)
    refuse(faults)
    return json_response(200, lease_document(service.locks.read(resource)), headers)


def _renew(service: Service, request: Request, headers: Headers) -> Response:
    resource, owner, ttl_seconds = _lease_terms(service, request)
    return json_response(200, lease_document(service.locks.renew(resource, owner, ttl_seconds)), headers)


def _release(service: Service, request: Request, headers: Headers) -> Response:
    members = _body_members(request, may_be_empty=True)
    given = request.parameters("owner").get("owner")
    faults: list[Fault] = []
    resource = read_resource(request.segments[1], faults)
    if given is None:
        owner = _member(members, "owner", read_owner, faults)
    else:
        text = decoded_text("owner", given, faults)
        owner = "" if text is None else read_owner(text, faults)
        if "owner" in members and not _is_same_owner(members["owner"], text):
            raise MalformedRequest("The body and the query name different owners.")
    refuse(faults)
    service.locks.release(resource, owner)
    return empty_response(headers)


def _elsewhere(name: str) -> Handler:
    """Return the handler of that name in app.overview, which is loaded when it is asked for."""

    def handler(service: Service, request: Request, headers: Headers) -> Response:
        from app import overview

        answer: Handler = getattr(overview, name)
        return answer(service, request, headers)

    return handler


#: stands in a route's path for any one segment
ANY = None
#: (path, {method: (handler, rate-limit policy or None)})
ROUTES: tuple[tuple[tuple[bytes | None, ...], dict[str, tuple[Handler, str | None]]], ...] = (
    ((b"locks", ANY), {"GET": (_status, "read"), "POST": (_acquire, "acquire"), "DELETE": (_release, "hold")}),
    ((b"locks", ANY, b"renew"), {"POST": (_renew, "hold")}),
    ((b"locks", ANY, b"release"), {"POST": (_release, "hold")}),
    ((b"locks",), {"GET": (_elsewhere("list_leases"), "read")}),
    ((b"health",), {"GET": (_elsewhere("health"), None)}),
    ((b"problems", ANY), {"GET": (_elsewhere("about_problem"), None)}),
    ((b"",), {"GET": (_elsewhere("about_service"), None)}),
)


def _methods_at(segments: list[bytes]) -> dict[str, tuple[Handler, str | None]]:
    # A slash inside a segment was sent as %2F. It leads nowhere: no address may stand for a shorter or a longer one.
    slashed = any(b"/" in segment for segment in segments)
    for path, methods in () if slashed else ROUTES:
        if len(path) == len(segments) and all(part in (ANY, segment) for part, segment in zip(path, segments)):
            return methods
    raise PageNotFound


def _allow_header(methods: dict[str, Any]) -> str:
    names = [name for method in methods for name in ((method, "HEAD") if method == "GET" else (method,))]
    return ", ".join([*names, "OPTIONS"])


def _lease_terms(service: Service, request: Request) -> tuple[str, str, int]:
    """Return resource, owner and ttl of a request that sets a lease's end; all faults are reported together."""
    members = _body_members(request)
    faults: list[Fault] = []
    resource = read_resource(request.segments[1], faults)
    owner = _member(members, "owner", read_owner, faults)
    longest = service.settings.MAX_TTL_SECONDS
    ttl_seconds = _member(members, "ttl_seconds", lambda value, found: read_ttl_seconds(value, longest, found), faults)
    refuse(faults)
    return resource, owner, ttl_seconds


def _body_members(request: Request, may_be_empty: bool = False) -> dict[str, object]:
    """Return the members of the body's object. Where the body may be empty, an empty one needs no media type."""
    if not may_be_empty and request.has_form_type():
        raise UnsupportedMediaType
    body = request.body()
    if may_be_empty and not body:
        return {}
    if request.has_form_type():
        raise UnsupportedMediaType
    try:
        members = loads(body)
    except NotJSON as error:
        raise MalformedRequest(f"{error} Send one JSON object.") from None
    if not isinstance(members, dict):
        raise MalformedRequest("The body is JSON but not an object. Send one JSON object.")
    return members


def _member(
    members: dict[str, object], name: str, read: Callable[[object, list[Fault]], Any], faults: list[Fault]
) -> Any:
    if name in members:
        return read(members[name], faults)
    faults.append(Fault(name, "missing", f"The member {name} is missing."))
    return None


def refuse(faults: list[Fault]) -> None:
    """Raise ValidationFailed if there are faults."""
    if faults:
        raise ValidationFailed(faults)


def _is_same_owner(member: object, parameter: str | None) -> bool:
    return (
        isinstance(member, str) and parameter is not None and member.strip(WHITE_SPACE) == parameter.strip(WHITE_SPACE)
    )


def _cors_headers(service: Service, request: Request) -> Headers:
    """Return what lets a page of a listed origin read the answer (Fetch standard, CORS protocol)."""
    origins = service.settings.CORS_ORIGINS
    if not origins:
        return []
    origin = request.header("Origin")
    if origin not in origins:
        return [("Vary", "Origin")]
    return [
        ("Vary", "Origin"),
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Expose-Headers", CORS_ANSWER_HEADERS),
    ]


def _preflight_headers(cors_headers: Headers, allowed: str) -> Headers:
    if len(cors_headers) < 2:
        return []
    return [
        ("Access-Control-Allow-Methods", allowed),
        ("Access-Control-Allow-Headers", CORS_REQUEST_HEADERS),
        ("Access-Control-Max-Age", str(CORS_MAX_AGE_SECONDS)),
    ]
