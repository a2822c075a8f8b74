"""A clock that moves only when a test says so."""

from __future__ import annotations

# 2026-12-01T04:05:06.123Z: a whole second would hide a rounding fault.
START_MS = 1796097906123


class ManualClock:
    def __init__(self, start_ms: int = START_MS) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, seconds: float) -> None:
        """Move by seconds, backwards when negative."""
        self._now_ms += round(seconds * 1000)

    def set_ms(self, now_ms: int) -> None:
        self._now_ms = now_ms
