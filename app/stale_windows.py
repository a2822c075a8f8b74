"""The clean-up of the rate-limit storage; apart from it, so that a hit does not pay for this."""

from __future__ import annotations

import posix

from app.file_rate_limits import OPEN_FLAGS, SUFFIX, is_at, is_regular_file, try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

#: how many names a partial clean-up reads at most; a directory can hold a hundred thousand
NAMES_A_SHARE = 10_000


def delete_stale(directory: str, now_ms: Callable[[], int], max_age_seconds: int, at_most: int | None) -> int:
    """Delete stale window files; see FileRateLimitStorage.delete_stale."""
    names = []
    try:
        with posix.scandir(directory) as entries:
            for entry in entries:
                names.append(entry.name)
                if at_most is not None and len(names) == NAMES_A_SHARE:
                    break
    except FileNotFoundError:
        return 0
    if at_most is not None and len(names) > at_most:
        # Not always the first: behind as many live files the stale ones would never be reached.
        start = now_ms() * at_most % len(names)
        names = (names + names)[start : start + at_most]

    def is_stale(status: posix.stat_result) -> bool:
        return is_regular_file(status) and now_ms() - status.st_mtime * 1000 > max_age_seconds * 1000

    windows = filter(_is_window_name, names)
    return sum(_delete_if(is_stale, f"{directory}/{name}") for name in windows)


def _delete_if(is_stale: Callable[[posix.stat_result], bool], path: str) -> bool:
    """Delete one file if it is stale; under its lock, so that no hit is between its opening and its writing."""
    try:
        if not is_stale(posix.stat(path, follow_symlinks=False)):
            return False
        descriptor = posix.open(path, OPEN_FLAGS)
        try:
            if not (try_lock(descriptor) and is_at(path, descriptor) and is_stale(posix.fstat(descriptor))):
                return False
            posix.unlink(path)
            return True
        finally:
            posix.close(descriptor)
    except OSError:
        return False  # gone meanwhile, or not ours: the next sweep sees it again


def _is_window_name(name: str) -> bool:
    stem = name[: -len(SUFFIX)]
    return name.endswith(SUFFIX) and len(stem) == 64 and all(digit in "0123456789abcdef" for digit in stem)
