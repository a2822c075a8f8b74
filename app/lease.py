"""The rules of leases: who holds what until when, and which names and lengths are acceptable.

Pure: nothing here reads a clock or touches a disk. An instant is text, RFC 3339 in UTC with three decimals, so that the
order of texts is the order of times; milliseconds since 1970 are used to calculate.
"""

from __future__ import annotations

from time import gmtime

from app.errors import Fault

NAME_MAX_CHARACTERS = 255

#: Unicode's White_Space property. Not str.strip() without arguments, which also takes U+001C to U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class Lease:
    """One hold of one resource by one owner.

    Args:
        resource: the name of what is locked.
        owner: the holder's name.
        acquired_at: the instant of the last grant.
        expires_at: the instant at which it ends; at that instant it is already over.
        fencing_token: higher for each later grant, over all resources.
        set_at: the instant at which the end was last set, by a grant or a renewal.
    """

    __slots__ = ("acquired_at", "expires_at", "fencing_token", "owner", "resource", "set_at")

    def __init__(
        self, resource: str, owner: str, acquired_at: str, expires_at: str, fencing_token: int, set_at: str
    ) -> None:
        self.resource = resource
        self.owner = owner
        self.acquired_at = acquired_at
        self.expires_at = expires_at
        self.fencing_token = fencing_token
        self.set_at = set_at

    def is_live(self, now_ms: int) -> bool:
        """Say whether the lease is held at this instant: ``now < expires_at``."""
        return instant_from_ms(now_ms) < self.expires_at

    def retry_after_seconds(self, now_ms: int) -> int:
        """Return the whole seconds until the lease ends, rounded up, at least 1."""
        return max(1, -((now_ms - ms_from_instant(self.expires_at)) // 1000))

    def granted(self, now_ms: int, ttl_seconds: int) -> Lease:
        """Return the lease after a repeated grant: both instants move, the fencing token stays."""
        now = instant_from_ms(now_ms)
        end = instant_from_ms(now_ms + ttl_seconds * 1000)
        return Lease(self.resource, self.owner, now, end, self.fencing_token, now)

    def renewed(self, now_ms: int, ttl_seconds: int) -> Lease:
        """Return the lease with a new end; ``acquired_at`` does not move."""
        end = instant_from_ms(now_ms + ttl_seconds * 1000)
        return Lease(self.resource, self.owner, self.acquired_at, end, self.fencing_token, instant_from_ms(now_ms))

    def as_of(self, now_ms: int) -> Lease:
        """Return the lease as it stands on a clock that may have been set back.

        A lease that was set in the future was set by a clock that has stepped back since. How much of it is over
        cannot be known, so it gets its whole length again from now: never shorter than what its holder was promised,
        and never longer than that promise, however far the clock stepped.
        """
        now = instant_from_ms(now_ms)
        if self.set_at <= now:
            return self
        length_ms = ms_from_instant(self.expires_at) - ms_from_instant(self.set_at)
        end = instant_from_ms(now_ms + length_ms)
        return Lease(self.resource, self.owner, min(self.acquired_at, now), end, self.fencing_token, now)


class NotAnInstant(Exception):
    """A stored text that should be an instant is none."""


class Held:
    """The answer to a contender: another owner holds the lease.

    Args:
        retry_after_seconds: whole seconds, at least 1, until the present lease ends.
    """

    __slots__ = ("retry_after_seconds",)

    def __init__(self, retry_after_seconds: int) -> None:
        self.retry_after_seconds = retry_after_seconds


def instant_from_ms(ms: int) -> str:
    """Return the instant of a number of milliseconds since 1970, as ``2026-12-01T04:05:06.123Z``."""
    seconds, thousandths = divmod(ms, 1000)
    year, month, day, hour, minute, second = gmtime(seconds)[:6]
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{thousandths:03d}Z"


def ms_from_instant(instant: str) -> int:
    """Return the milliseconds since 1970 of an instant written by :func:`instant_from_ms`.

    Raises:
        NotAnInstant: the text is something else.
    """
    try:
        return _ms_from_instant(instant)
    except ValueError as error:
        raise NotAnInstant from error


def _ms_from_instant(instant: str) -> int:
    year, month, day = int(instant[0:4]), int(instant[5:7]), int(instant[8:10])
    # Days since 1970 in the Gregorian calendar, counted in years that begin in March so that a leap day comes last.
    if month < 3:
        year -= 1
        month += 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
    seconds = ((days * 24 + int(instant[11:13])) * 60 + int(instant[14:16])) * 60 + int(instant[17:19])
    return seconds * 1000 + int(instant[20:23])


def read_resource(name: bytes, faults: list[Fault]) -> str:
    """Return the resource that a percent-decoded path segment names; adds what is wrong with it to ``faults``."""
    return _name("resource", decoded_text("resource", name, faults), faults)


def read_owner(value: object, faults: list[Fault]) -> str:
    """Return the owner, trimmed; adds what is wrong with the value to ``faults``."""
    if not isinstance(value, str):
        faults.append(Fault("owner", "wrong_type", "The owner must be a string."))
        return ""
    return _name("owner", value.strip(WHITE_SPACE), faults)


def read_ttl_seconds(value: object, max_ttl_seconds: int, faults: list[Fault]) -> int:
    """Return the length of a lease in seconds; adds what is wrong with the value to ``faults``."""
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"The ttl_seconds must be a whole number from 1 to {max_ttl_seconds}, written without a fraction."
        faults.append(Fault("ttl_seconds", "wrong_type", message))
        return 0
    if not 1 <= value <= max_ttl_seconds:
        message = f"The ttl_seconds must be from 1 to {max_ttl_seconds}."
        faults.append(Fault("ttl_seconds", "out_of_range", message))
        return 0
    return value


def decoded_text(field: str, raw: bytes, faults: list[Fault]) -> str | None:
    """Return bytes from a URL as text; bytes that are no UTF-8 are a fault (RFC 3629 forbids surrogates too)."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        faults.append(Fault(field, "invalid_unicode", f"The {field} must be UTF-8."))
        return None


def has_control_character(text: str) -> bool:
    """Say whether a character of U+0000 to U+001F or U+007F is in the text."""
    return not text.isprintable() and any(character < " " or character == "\x7f" for character in text)


def _name(field: str, text: str | None, faults: list[Fault]) -> str:
    if text is None:
        return ""
    if not text:
        fault = Fault(field, "empty", f"The {field} must not be empty.")
    elif len(text) > NAME_MAX_CHARACTERS:
        fault = Fault(field, "too_long", f"The {field} may have up to {NAME_MAX_CHARACTERS} characters.")
    elif has_control_character(text):
        fault = Fault(field, "control_character", f"The {field} must not contain control characters.")
    elif _has_surrogate(text):
        fault = Fault(field, "invalid_unicode", f"The {field} contains half of a surrogate pair.")
    else:
        return text
    faults.append(fault)
    return ""


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
