"""One line in the error log for each fault of the service.

The lines name reasons only: no owner, no body, no address of a client, no path.
"""

from __future__ import annotations

import posix
import sys
from time import time

_QUIET_SECONDS = 60


def line(text: str) -> None:
    """Write one line to standard error, which web servers append to their error log."""
    try:
        sys.stderr.write(f"kannuki: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        # A full log disk or a closed stream must not turn an answer into a failure.
        return


def line_once_a_minute(stamp: str, text: str) -> None:
    """Write a line unless one was written in the last minute, by any process.

    Args:
        stamp: a file whose time tells when the last line was written. Where it cannot be written, every line is.
        text: the line.
    """
    try:
        if 0 <= time() - posix.stat(stamp).st_mtime < _QUIET_SECONDS:
            return
    except OSError:
        pass
    try:
        posix.close(posix.open(stamp, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC, 0o600))
        posix.utime(stamp)
    except OSError:
        pass
    line(text)


def failure(error: BaseException) -> None:
    """Write the traceback of an unexpected exception, without its message, which may hold a caller's values."""
    import traceback

    frames = "".join(traceback.format_tb(error.__traceback__))
    line(f"internal error, {type(error).__qualname__}, at\n{frames.rstrip()}")
