"""The one place that reads the wall clock."""

from __future__ import annotations

from time import time_ns


class SystemClock:
    """The server's UTC wall clock."""

    def now_ms(self) -> int:
        """Return the present instant in milliseconds since 1970-01-01T00:00:00Z."""
        return time_ns() // 1_000_000
