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
#: how many names a partial clean-up reads at most; a directory can hold a hundred thousand
NAMES_A_SHARE = 10_000
_SAME_FILE_TRIES = 10
_OPEN_FLAGS = posix.O_RDWR | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
_FILE_TYPE, _REGULAR_FILE = 0o170000, 0o100000
_SUFFIX = ".json"


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
        path = f"{self._directory}/{sha256_hex(key)}{_SUFFIX}"
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
        names = []
        try:
            with posix.scandir(self._directory) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if at_most is not None and len(names) == NAMES_A_SHARE:
                        break
        except FileNotFoundError:
            return 0
        if at_most is not None and len(names) > at_most:
            # Not always the first: behind as many live files the stale ones would never be reached.
            start = self._clock.now_ms() * at_most % len(names)
            names = (names + names)[start : start + at_most]
        windows = filter(_is_window_name, names)
        return sum(self._delete_if_stale(f"{self._directory}/{name}", max_age_seconds) for name in windows)

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
                if _is_at(path, descriptor):
                    return descriptor
            except BaseException:
                posix.close(descriptor)
                raise
            posix.close(descriptor)
        raise _Unusable("replaced again and again")

    def _open(self, path: str) -> int:
        try:
            return posix.open(path, _OPEN_FLAGS | posix.O_CREAT, 0o600)
        except FileNotFoundError:
            _make_folder(self._directory)
            return posix.open(path, _OPEN_FLAGS | posix.O_CREAT, 0o600)

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

    def _delete_if_stale(self, path: str, max_age_seconds: int) -> bool:
        """Delete one file if it is stale; under its lock, so that no hit is between its opening and its writing."""
        try:
            if not self._is_stale(posix.stat(path, follow_symlinks=False), max_age_seconds):
                return False
            descriptor = posix.open(path, _OPEN_FLAGS)
            try:
                if not (
                    try_lock(descriptor)
                    and _is_at(path, descriptor)
                    and self._is_stale(posix.fstat(descriptor), max_age_seconds)
                ):
                    return False
                posix.unlink(path)
                return True
            finally:
                posix.close(descriptor)
        except OSError:
            return False  # gone meanwhile, or not ours: the next sweep sees it again

    def _is_stale(self, status: posix.stat_result, max_age_seconds: int) -> bool:
        return (
            status.st_mode & _FILE_TYPE == _REGULAR_FILE
            and self._clock.now_ms() - status.st_mtime * 1000 > max_age_seconds * 1000
        )


def try_lock(descriptor: int) -> bool:
    """Take an exclusive flock if it is free; it ends when the descriptor is closed, also by a kill."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_own_regular_file(status: posix.stat_result) -> None:
    if status.st_mode & _FILE_TYPE != _REGULAR_FILE or status.st_nlink > 1 or status.st_uid != posix.geteuid():
        raise _Unusable("not a regular file of this user with one name")


def _is_at(path: str, descriptor: int) -> bool:
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


def _is_window_name(name: str) -> bool:
    stem = name[: -len(_SUFFIX)]
    return name.endswith(_SUFFIX) and len(stem) == 64 and all(digit in "0123456789abcdef" for digit in stem)


def _make_folder(path: str) -> None:
    import os

    os.makedirs(path, mode=0o700, exist_ok=True)


def _cause(error: OSError) -> str:
    """Return why, for the log: the error's name, or our own words; never the path that str(error) holds."""
    import errno

    return errno.errorcode.get(error.errno, "unknown error") if error.errno else str(error)
