"""What can go wrong, and the one table that says how each of it is told to a caller.

Every refusal is a :class:`Refusal` that names a slug of :data:`PROBLEMS`; the table gives its HTTP status, its title
and the short explanation shown at ``/problems/<slug>``. The media type and the members are those of RFC 9457.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: slug -> (HTTP status, title, what it means and what to do)
PROBLEMS = {
    "malformed-request": (
        400,
        "Malformed request.",
        "The request could not be read: the body is not one JSON object in UTF-8, a member or parameter appears twice, "
        "or fewer bytes arrived than were announced. Correct the request; sending it again unchanged will not help.",
    ),
    "unauthorized": (
        401,
        "API key required.",
        "This service asks for an API key and the request had none that is known here.",
    ),
    "forbidden": (
        403,
        "Owner mismatch.",
        "The lock exists and another owner holds it. Only the owner that acquired it can renew or release it. "
        "If you were the holder, your lease has ended and somebody else has it now: stop the work it protected.",
    ),
    "not-found": (
        404,
        "Lock not found.",
        "There is no live lease of that name, or no such address. An expired lease belongs to nobody: acquire it anew.",
    ),
    "method-not-allowed": (
        405,
        "Method not allowed.",
        "The address exists but does not answer this method. The Allow header lists the methods it does answer.",
    ),
    "length-required": (
        411,
        "Length required.",
        "The body came without a Content-Length and this server cannot see where it ends. Send the length.",
    ),
    "too-large": (
        413,
        "Body too large.",
        "A body may have up to 65,536 bytes.",
    ),
    "unsupported-media-type": (
        415,
        "Unsupported media type.",
        "Bodies are JSON. Send the header 'Content-Type: application/json'; HTML form types are refused.",
    ),
    "validation-failed": (
        422,
        "Validation failed.",
        "The request was read, but a value in it is not acceptable. The member 'errors' lists every fault. "
        "Nothing was changed.",
    ),
    "too-many-requests": (
        429,
        "Too many requests.",
        "The quota for this kind of request is used up. Wait for the number of seconds in the Retry-After header.",
    ),
    "internal-error": (
        500,
        "Internal error.",
        "The service made a mistake. The reason is in the error log of the web server. A retry is safe.",
    ),
    "unavailable": (
        503,
        "Service unavailable.",
        "The service cannot answer now; the member 'detail' says why. Nothing was half done, and a retry is safe.",
    ),
    "capacity": (
        503,
        "Capacity reached.",
        "As many leases are live as this service allows (the setting MAX_LOCKS). Release some or wait for them to end.",
    ),
}

#: why the lock store cannot work -> what a caller is told; one log line names the reason
STORE_FAULTS = {
    "busy": "The lock database is in use by other requests and did not become free in time. Try again.",
    "full": "The disk or the quota that holds the lock database is full. The operator has to free space.",
    "read-only": "The lock database cannot be written: it or its folder is read-only for the user this runs as.",
    "corrupt": "The lock database is damaged. The operator has to restore it or accept a new one.",
    "missing": "The lock database is gone where there has been one. An empty one would free every lock, so the "
    "operator has to put it back or accept a new one (python3 tools/doctor.py --accept-new-database).",
    "unreadable": "The lock database cannot be opened: check that the folder var/ exists and belongs to the user this "
    "runs as.",
    "not-owner": "The folder var/ belongs to another user than the one this runs as. Where the host runs scripts as a "
    "user of its own, give that user the right to write into var/, or ask the host for suEXEC.",
    "failing": "The disk refused to read or write the lock database (a used-up quota looks like this too).",
}


class Refusal(Exception):
    """A request is refused; each subclass names its slug.

    Args:
        detail: one or two sentences for the caller: what happened, why, what to do next. No paths, no secrets.
    """

    slug = "internal-error"
    title: str | None = None  # where the table's title is not the right one

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        self.detail = detail or PROBLEMS[self.slug][2]

    def headers(self) -> list[tuple[str, str]]:
        """Headers that belong to this refusal, as (name, value)."""
        return []


class MalformedRequest(Refusal):
    """The request cannot be read at all."""

    slug = "malformed-request"


class LeaseNotFound(Refusal):
    """No live lease has that name."""

    slug = "not-found"

    def __init__(self) -> None:
        super().__init__("No live lease has this name. It was never acquired, was released, or has expired.")


class PageNotFound(Refusal):
    """No route has that path."""

    slug = "not-found"
    title = "No such page."

    def __init__(self) -> None:
        super().__init__(
            "Nothing is served at this address. Locks are under /locks, the state of the service is at /health."
        )


class NotHolder(Refusal):
    """A live lease exists and another owner holds it."""

    slug = "forbidden"


class MethodNotAllowed(Refusal):
    """The route exists, the method does not.

    Args:
        allowed: the methods the route answers.
    """

    slug = "method-not-allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"This address answers {allowed}.")
        self.allowed = allowed

    def headers(self) -> list[tuple[str, str]]:
        return [("Allow", self.allowed)]


class LengthRequired(Refusal):
    """A body of unknown length that this server cannot read to its end."""

    slug = "length-required"


class BodyTooLarge(Refusal):
    """The body is longer than the limit."""

    slug = "too-large"


class UnsupportedMediaType(Refusal):
    """The body is declared as an HTML form."""

    slug = "unsupported-media-type"


class Fault:
    """One unacceptable value.

    Args:
        field: the member, parameter or setting at fault.
        code: a short constant for programs.
        message: a sentence for people, without the value.
    """

    __slots__ = ("code", "field", "message")

    def __init__(self, field: str, code: str, message: str) -> None:
        self.field = field
        self.code = code
        self.message = message


class ValidationFailed(Refusal):
    """The request was read and holds unacceptable values; all of them are named."""

    slug = "validation-failed"

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(" ".join(fault.message for fault in faults))
        self.faults = faults


class TooManyRequests(Refusal):
    """A rate limit is used up.

    Args:
        policy: the budget's name.
        retry_after_seconds: the whole seconds until the window ends.
        quota_headers: the headers that tell the state of the window.
    """

    slug = "too-many-requests"

    def __init__(self, policy: str, retry_after_seconds: int, quota_headers: list[tuple[str, str]]) -> None:
        super().__init__(f"The quota of the policy {policy} is used up. Try again in {retry_after_seconds} s.")
        self.retry_after_seconds = retry_after_seconds
        self.quota_headers = quota_headers

    def headers(self) -> list[tuple[str, str]]:
        return [("Retry-After", str(self.retry_after_seconds)), *self.quota_headers]


class InternalError(Refusal):
    """The service is at fault."""

    slug = "internal-error"


class Unavailable(Refusal):
    """The service cannot answer now.

    Args:
        detail: as for :class:`Refusal`.
        retry_after_seconds: when a retry makes sense.
    """

    slug = "unavailable"

    def __init__(self, detail: str, retry_after_seconds: int = 5) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds

    def headers(self) -> list[tuple[str, str]]:
        return [("Retry-After", str(self.retry_after_seconds))]


class StoreUnavailable(Unavailable):
    """The lock store cannot work.

    Args:
        reason: a key of :data:`STORE_FAULTS`.
        cause: what the store itself said, for the log only.
    """

    def __init__(self, reason: str, cause: str = "") -> None:
        super().__init__(STORE_FAULTS[reason], 1 if reason == "busy" else 60)
        self.reason = reason
        self.cause = cause


class RateLimitUnavailable(Unavailable):
    """A window could not be counted.

    Args:
        cause: what the system said, for the log only; holds no path and no client address.
    """

    def __init__(self, cause: str) -> None:
        super().__init__("Requests of this kind cannot be counted now, and are refused while that is so.", 60)
        self.cause = cause


class CapacityReached(Unavailable):
    """As many leases are live as the settings allow."""

    slug = "capacity"

    def __init__(self, max_locks: int) -> None:
        super().__init__(
            f"All {max_locks} leases that this service allows are live (capacity). Try again when some have ended.", 5
        )


class SettingsError(Unavailable):
    """The settings file is not acceptable; holds one sentence for each fault, names only, no values."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("The settings in var/config.py are not acceptable: " + " ".join(faults), 60)
        self.faults = faults
