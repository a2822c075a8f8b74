"""Reads the settings file, a Python file of plain assignments; loaded only where there is one."""

from __future__ import annotations

import sys

from app.errors import SettingsError
from app.ratelimit import DEFAULT_RATE_LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Callable

#: instants are written with four digits of year; ten years keep far away from their end
LONGEST_TTL_SECONDS = 315_360_000


def _whole_number(low: int, high: int) -> tuple[Callable[[Any], bool], str]:
    return (
        lambda value: _is_int(value) and low <= value <= high,
        f"must be a whole number from {low} to {high}",
    )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_busy_timeout(value: Any) -> bool:
    return (_is_int(value) or isinstance(value, float)) and 0 < value <= 60


def _are_rate_limits(value: Any) -> bool:
    return isinstance(value, dict) and all(
        policy in DEFAULT_RATE_LIMITS and (quota is None or _is_quota(quota)) for policy, quota in value.items()
    )


def _is_quota(value: Any) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and all(_is_int(number) for number in value)
        and 1 <= value[0] <= 1_000_000
        and 1 <= value[1] <= 604_800
    )


def _are_origins(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(origin, str) and _is_origin(origin) for origin in value)


def _is_origin(text: str) -> bool:
    """Say whether a browser could send this as Origin: scheme, host and perhaps port, in lower case (RFC 6454, 6.2)."""
    scheme, separator, host = text.partition("://")
    return (
        bool(separator)
        and scheme in ("http", "https")
        and bool(host)
        and all(character in "abcdefghijklmnopqrstuvwxyz0123456789.-:[]" for character in host)
    )


#: name -> (what is accepted, the end of the sentence for what is not)
ACCEPTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "MAX_TTL_SECONDS": _whole_number(1, LONGEST_TTL_SECONDS),
    "MAX_LOCKS": _whole_number(1, 100_000_000),
    "KEEP_EXPIRED_SECONDS": _whole_number(0, LONGEST_TTL_SECONDS),
    "BUSY_TIMEOUT_SECONDS": (_is_busy_timeout, "must be a number above 0 and up to 60"),
    "RATE_LIMITS": (
        _are_rate_limits,
        f"must map names among {', '.join(DEFAULT_RATE_LIMITS)} to a pair of whole numbers "
        "(limit from 1 to 1000000, window in seconds from 1 to 604800) or to None",
    ),
    "RATE_LIMIT_STORAGE": (lambda value: value in ("file", "memory"), 'must be "file" or "memory"'),
    "TRUSTED_PROXY_HOPS": _whole_number(0, 10),
    "CORS_ORIGINS": (_are_origins, 'must be a tuple of origins such as ("https://example.org",)'),
    "API_KEYS": (
        lambda value: isinstance(value, dict) and not value,
        "must be empty: this version has no API keys and will not run as if it had; "
        "protect the folder by the means of your host instead",
    ),
}


def read(file: IO[bytes] | None) -> dict[str, Any]:
    """Return the settings of an open file as name -> value.

    Raises:
        SettingsError: it cannot be read or run, or holds something unacceptable.
    """
    try:
        if file is None:
            raise OSError
        with file:
            assigned = _assignments(file.read())
    except OSError:
        raise SettingsError(["the file, or the folder var/, cannot be read by the user this runs as."]) from None
    return checked(assigned)


def checked(values: dict[str, Any]) -> dict[str, Any]:
    """Return settings as they are, if all of them are acceptable.

    Raises:
        SettingsError: a name is unknown or a value is not accepted; all faults at once.
    """
    faults = []
    for name, value in values.items():
        if name not in ACCEPTED:
            faults.append(f"{name} is no setting.")
        elif not ACCEPTED[name][0](value):
            faults.append(f"{name} {ACCEPTED[name][1]}.")
    if faults:
        raise SettingsError(faults)
    return values


def _assignments(source: bytes) -> dict[str, Any]:
    try:
        code = compile(source, "config.py", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = getattr(error, "lineno", None)
        fault = f"line {place} is not Python." if place and b"\0" not in source else "the file is not text in UTF-8."
        raise SettingsError([fault]) from None
    names: dict[str, Any] = {}
    standard_output, sys.stdout = sys.stdout, sys.stderr  # a print would come before the headers of a CGI answer
    try:
        exec(code, names)
    except BaseException as error:
        kind = type(error).__name__
        raise SettingsError([f"the file stops with {kind}; it may hold plain assignments only."]) from None
    finally:
        sys.stdout = standard_output
    return {name: value for name, value in names.items() if not name.startswith("__")}
