"""What can go wrong.

Every refusal is a :class:`Refusal` that names a slug of :data:`app.problems.PROBLEMS`; that table gives its status,
its title and the short explanation shown at ``/problems/<slug>``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Refusal(Exception):
    """A request is refused; each subclass names its slug.

    Args:
        detail: one or two sentences for the caller: what happened, why, what to do next. No paths, no secrets.
    """

    slug = "internal-error"
    title: str | None = None  # where the table's title is not the right one

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        self._detail = detail

    @property
    def detail(self) -> str:
        """What the caller is told; without words of its own, what the table says."""
        if self._detail:
            return self._detail
        from app.problems import PROBLEMS

        return PROBLEMS[self.slug][2]

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
        reason: a key of :data:`app.problems.STORE_FAULTS`.
        cause: what the store itself said, for the log only.
    """

    def __init__(self, reason: str, cause: str = "") -> None:
        super().__init__("", 1 if reason == "busy" else 60)
        self.reason = reason
        self.cause = cause

    @property
    def detail(self) -> str:
        from app.problems import STORE_FAULTS

        return STORE_FAULTS[self.reason]


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
