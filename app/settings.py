"""The settings and their defaults.

A rented server often allows nothing but editing files, and suEXEC drops the operator's environment variables, so the
one source of others is the file ``var/config.py``; app/settings_file.py reads it, where there is one.
"""

from __future__ import annotations

from app.ratelimit import DEFAULT_RATE_LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONFIG_FILE = "config.py"
DEFAULTS: dict[str, Any] = {
    "MAX_TTL_SECONDS": 604_800,
    "MAX_LOCKS": 10_000,
    "KEEP_EXPIRED_SECONDS": 3600,
    "BUSY_TIMEOUT_SECONDS": 5,
    "RATE_LIMITS": DEFAULT_RATE_LIMITS,
    "RATE_LIMIT_STORAGE": "file",
    "TRUSTED_PROXY_HOPS": 0,
    "CORS_ORIGINS": (),
    "API_KEYS": {},
}


class Settings:
    """All settings as attributes; every name of :data:`DEFAULTS` is one.

    Args:
        overrides: name -> value, which app.settings_file has checked.
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
        self.__dict__.update(DEFAULTS)
        self.__dict__.update(overrides)
        self.RATE_LIMITS = {**DEFAULT_RATE_LIMITS, **self.RATE_LIMITS}


def load(var_dir: str) -> Settings:
    """Return the settings of a state folder; without a settings file, the defaults.

    Raises:
        SettingsError: the file cannot be read or run, or holds something unacceptable; all faults at once.
    """
    try:
        file = open(f"{var_dir}/{CONFIG_FILE}", "rb")  # noqa: SIM115 - whoever reads it closes it
    except FileNotFoundError:
        return Settings({})
    except OSError:
        file = None
    from app.settings_file import read

    return Settings(read(file))
