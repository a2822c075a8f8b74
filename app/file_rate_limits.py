"""The rate-limit storage: one small JSON file a window, changed under an exclusive flock.

A process a request has no memory to count in, so the count is on disk. What is *not* promised: a count after a power
cut (nothing is synced), and exclusion on file systems whose flock does not exclude; a doctor can measure that.

The order of the system calls matters. A file is opened, then locked, and then its path is looked up again: between
opening and locking, a sweep may have unlinked it, and hits in an unlinked file would be lost.
"""

from __future__ import annotations

import fcntl
import posix
from time import monotonic, sleep

from app.errors import RateLimitUnavailable
from app.interpreter import sha256_hex
from app.jsontext import NotJSON, loads
from app.ratelimit import RECORD_BYTES, advance, read_window, write_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from app.clock import SystemClock

#: how long a hit waits for the file of its window; longer, and waiting would cost more than one uncounted hit
LOCK_BUDGET_SECONDS = 0.25
_LOCK_PAUSE_SECONDS = 0.002
_SAME_FILE_TRIES = 10
OPEN_FLAGS = posix.O_RDWR | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
SUFFIX = ".json"


class _Unusable(OSError):
    """A file is not one that this storage has made, or could not be had in time."""


class FileRateLimitStorage:
    """Windows in ``<directory>/<sha256 of the key>.json``.

    Args:
        directory: where the files are; made when it is missing.
        clock: gives the present instant in milliseconds.
    """

    def __init__(self, directory: str, clock: SystemClock) -> None:
        self._directory = directory
        self._clock = clock

    def hit(self, key: str, window_seconds: int, ceiling: int | None = None) -> tuple[int, float]:
        """Count one hit of the key.

        Args:
            key: names the window; may hold anything, since only its hash reaches the file system.
            window_seconds: its length, counted from its first hit.
            ceiling: beyond this count nothing changes, and nothing is written.

        Returns:
            The hits of the present window with this one, and its end in seconds since 1970. A lost or broken file is
            a new window.

        Raises:
            RateLimitUnavailable: the file could not be opened, locked or written; the hit was not counted.
        """
        path = f"{self._directory}/{sha256_hex(key)}{SUFFIX}"
        try:
            descriptor = self._open_locked(path)
            try:
                return self._count(descriptor, window_seconds * 1000, ceiling)
            finally:
                posix.close(descriptor)
        except OSError as error:
            raise RateLimitUnavailable(_cause(error)) from error

    def delete_stale(self, max_age_seconds: int, at_most: int | None = None) -> int:
        """Delete window files that have not changed for longer than ``max_age_seconds``.

        Args:
            max_age_seconds: files younger than this stay.
            at_most: how many files are looked at, from a place that changes from call to call; None for all.

        Returns:
            How many files were deleted. A file that is in use is skipped.

        Raises:
            OSError: the directory is there and cannot be read.
        """
        from app.stale_windows import delete_stale

        return delete_stale(self._directory, self._clock.now_ms, max_age_seconds, at_most)

    def _open_locked(self, path: str) -> int:
        deadline = monotonic() + LOCK_BUDGET_SECONDS
        for _ in range(_SAME_FILE_TRIES):
            descriptor = self._open(path)
            try:
                _check_own_regular_file(posix.fstat(descriptor))
                while not try_lock(descriptor):
                    if monotonic() > deadline:
                        raise _Unusable("in use for too long")
                    sleep(_LOCK_PAUSE_SECONDS)
                if is_at(path, descriptor):
                    return descriptor
            except BaseException:
                posix.close(descriptor)
                raise
            posix.close(descriptor)
        raise _Unusable("replaced again and again")

    def _open(self, path: str) -> int:
        try:
            return posix.open(path, OPEN_FLAGS | posix.O_CREAT, 0o600)
        except FileNotFoundError:
            _make_folder(self._directory)
            return posix.open(path, OPEN_FLAGS | posix.O_CREAT, 0o600)

    def _count(self, descriptor: int, window_ms: int, ceiling: int | None) -> tuple[int, float]:
        # One byte more than a record shows that something follows it.
        raw = posix.pread(descriptor, RECORD_BYTES + 1, 0)
        before = _window(raw) if len(raw) <= RECORD_BYTES else None
        window = advance(before, self._clock.now_ms(), window_ms, ceiling)
        if window != before:
            # One write of the whole record: a process killed here leaves the old record or the new one.
            if posix.pwrite(descriptor, write_window(window), 0) != RECORD_BYTES:
                raise _Unusable("written in part")
            if len(raw) > RECORD_BYTES:
                posix.ftruncate(descriptor, RECORD_BYTES)
        return window[0], window[1] / 1000


def try_lock(descriptor: int) -> bool:
    """Take an exclusive flock if it is free; it ends when the descriptor is closed, also by a kill."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_regular_file(status: posix.stat_result) -> bool:
    """Say whether a file is one, and not a folder, link, pipe or device."""
    return status.st_mode & 0o170000 == 0o100000


def _check_own_regular_file(status: posix.stat_result) -> None:
    if not is_regular_file(status) or status.st_nlink > 1 or status.st_uid != posix.geteuid():
        raise _Unusable("not a regular file of this user with one name")


def is_at(path: str, descriptor: int) -> bool:
    """Say whether the path still names the open file."""
    opened = posix.fstat(descriptor)
    try:
        named = posix.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def _window(raw: bytes) -> tuple[int, int] | None:
    try:
        return read_window(loads(raw)) if raw else None
    except NotJSON:
        return None


def _make_folder(path: str) -> None:
    import os

    os.makedirs(path, mode=0o700, exist_ok=True)


def _cause(error: OSError) -> str:
    """Return why, for the log: the error's name, or our own words; never the path that str(error) holds."""
    import errno

    return errno.errorcode.get(error.errno, "unknown error") if error.errno else str(error)
