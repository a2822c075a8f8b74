"""The settings: defaults, what each accepts, and the file of plain assignments that overrides them.

A rented server often allows nothing but editing files, and suEXEC drops the operator's environment variables, so the
one source is ``var/config.py``.
"""

from __future__ import annotations

import sys

from app.errors import SettingsError
from app.ratelimit import DEFAULT_RATE_LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

CONFIG_FILE = "config.py"
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


#: name -> (default, what is accepted, the end of the sentence for what is not)
SETTINGS: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "MAX_TTL_SECONDS": (604_800, *_whole_number(1, LONGEST_TTL_SECONDS)),
    "MAX_LOCKS": (10_000, *_whole_number(1, 100_000_000)),
    "KEEP_EXPIRED_SECONDS": (3600, *_whole_number(0, LONGEST_TTL_SECONDS)),
    "BUSY_TIMEOUT_SECONDS": (5, _is_busy_timeout, "must be a number above 0 and up to 60"),
    "RATE_LIMITS": (
        DEFAULT_RATE_LIMITS,
        _are_rate_limits,
        f"must map names among {', '.join(DEFAULT_RATE_LIMITS)} to a pair of whole numbers "
        "(limit from 1 to 1000000, window in seconds from 1 to 604800) or to None",
    ),
    "RATE_LIMIT_STORAGE": ("file", lambda value: value in ("file", "memory"), 'must be "file" or "memory"'),
    "TRUSTED_PROXY_HOPS": (0, *_whole_number(0, 10)),
    "CORS_ORIGINS": ((), _are_origins, 'must be a tuple of origins such as ("https://example.org",)'),
    "API_KEYS": (
        {},
        lambda value: isinstance(value, dict) and not value,
        "must be empty: this version has no API keys and will not run as if it had; "
        "protect the folder by the means of your host instead",
    ),
}


class Settings:
    """All settings as attributes; every name of :data:`SETTINGS` is one.

    Args:
        overrides: name -> value, as found in the settings file.

    Raises:
        SettingsError: a name is unknown or a value is not accepted; all faults at once.
    """

    MAX_TTL_SECONDS: int
    MAX_LOCKS: int
    KEEP_EXPIRED_SECONDS: int
    BUSY_TIMEOUT_SECONDS: float
    RATE_LIMITS: dict[str, tuple[int, int] | None]
    RATE_LIMIT_STORAGE: str
    TRUSTED_PROXY_HOPS: int
    CORS_ORIGINS: tuple[str, ...]
    API_KEYS: dict[str, Any]

    def __init__(self, overrides: dict[str, Any]) -> None:
        faults = []
        for name, value in overrides.items():
            if name not in SETTINGS:
                faults.append(f"{name} is no setting.")
            elif not SETTINGS[name][1](value):
                faults.append(f"{name} {SETTINGS[name][2]}.")
        if faults:
            raise SettingsError(faults)
        for name, (default, _, _) in SETTINGS.items():
            setattr(self, name, overrides.get(name, default))
        self.RATE_LIMITS = {**DEFAULT_RATE_LIMITS, **self.RATE_LIMITS}


def load(var_dir: str) -> Settings:
    """Return the settings of a state folder; without a settings file, the defaults.

    Raises:
        SettingsError: the file cannot be read or run, or holds something unacceptable.
    """
    try:
        with open(f"{var_dir}/{CONFIG_FILE}", "rb") as file:
            source = file.read()
    except FileNotFoundError:
        return Settings({})
    except OSError:
        raise SettingsError(["the file, or the folder var/, cannot be read by the user this runs as."]) from None
    return Settings(_assignments(source))


def _assignments(source: bytes) -> dict[str, Any]:
    try:
        code = compile(source, CONFIG_FILE, "exec")
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
