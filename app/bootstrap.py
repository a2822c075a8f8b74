"""Puts the service together: the one place that knows all concrete classes."""

from __future__ import annotations

from app import log
from app.api import Service
from app.clock import SystemClock
from app.errors import SettingsError
from app.settings import load
from app.throttle import Throttle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flask import Flask

    from app.maintenance import Sweeper
    from app.settings import Settings
    from app.sqlite_locks import SqliteLockStore
    from app.throttle import RateLimitStorage

STATE_FOLDER = "var"


def build_service(var_dir: str, clock: SystemClock | None = None, under_cgi: bool = False) -> Service:
    """Return the service of a state folder.

    Args:
        var_dir: the state folder.
        clock: gives the present instant in milliseconds; the system's by default.
        under_cgi: whether each request is a process of its own.

    Returns:
        The service, or what answers in its place while the settings are not acceptable.
    """
    clock = clock or SystemClock()
    try:
        settings = load(var_dir)
        if under_cgi and settings.RATE_LIMIT_STORAGE == "memory":
            raise SettingsError(
                [
                    'RATE_LIMIT_STORAGE must be "file" here: each request is a process of its own, and a count in its '
                    "memory never gets past 1."
                ]
            )
    except SettingsError as error:
        from app.failed_service import failed_service

        return failed_service(error, clock)
    throttle = Throttle(
        _rate_limit_storage(var_dir, settings, clock),
        settings.RATE_LIMITS,
        settings.TRUSTED_PROXY_HOPS,
        clock,
        report=lambda text: log.line_once_a_minute(f"{var_dir}/rate-limits.fault", text),
    )
    return Service(
        settings,
        clock,
        lambda: build_lock_store(var_dir, settings, clock),
        throttle,
        lambda: build_sweeper(var_dir, clock).sweep_a_share(),
    )


def build_sweeper(var_dir: str, clock: SystemClock | None = None) -> Sweeper:
    """Return what cleans a state folder up.

    Raises:
        SettingsError: the settings are not acceptable.
    """
    from app.file_rate_limits import FileRateLimitStorage
    from app.maintenance import Sweeper

    clock = clock or SystemClock()
    settings = load(var_dir)
    windows = FileRateLimitStorage(f"{var_dir}/rate-limits", clock)
    return Sweeper(var_dir, settings, build_lock_store(var_dir, settings, clock), windows)


def wsgi_app(root_dir: str) -> Flask:
    """Return the Flask application of a project folder, for a WSGI server."""
    from app.web import create_app

    return create_app(build_service(f"{root_dir}/{STATE_FOLDER}"))


def run_cgi(root_dir: str) -> None:
    """Answer the one request of a CGI process.

    Raises:
        ImportError: a page is asked for, and Flask or one of its parts is not there.
    """
    from app.cgi import run

    service = build_service(f"{root_dir}/{STATE_FOLDER}", under_cgi=True)

    def make_app() -> Flask:
        from app.vendoring import add_library_path, keep_bytecode

        keep_bytecode(root_dir)
        add_library_path(root_dir)
        from app.web import create_app

        return create_app(service)

    run(service, make_app)


def build_lock_store(var_dir: str, settings: Settings, clock: SystemClock) -> SqliteLockStore:
    """Return the lock store of a state folder."""
    from app.sqlite_locks import SqliteLockStore

    return SqliteLockStore(var_dir, clock, settings.BUSY_TIMEOUT_SECONDS, settings.MAX_LOCKS)


def _rate_limit_storage(var_dir: str, settings: Settings, clock: SystemClock) -> RateLimitStorage:
    if settings.RATE_LIMIT_STORAGE == "memory":
        from app.memory_stores import InMemoryRateLimitStorage

        return InMemoryRateLimitStorage(clock)
    from app.file_rate_limits import FileRateLimitStorage

    return FileRateLimitStorage(f"{var_dir}/rate-limits", clock)
