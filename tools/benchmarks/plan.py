"""How much is measured, and saying how far it is."""

from __future__ import annotations

import sys
from typing import NamedTuple


class Plan(NamedTuple):
    """How much is measured."""

    #: of whole processes; the service's default rate limits let 300 acquires a minute pass, two a round and a folder
    rounds: int
    #: the cases take turns on Apache so many times
    passes: int
    wrk_seconds: int
    #: for a case that answers a few requests a second
    wrk_seconds_slow: int
    growth_rounds: int
    live_leases: tuple[int, ...]
    window_files: tuple[int, ...]
    contenders: tuple[int, ...]
    #: so many times each number of contenders
    crowds: int
    swept_files: int
    swept_rows: int


FULL = Plan(
    rounds=100,
    passes=4,
    wrk_seconds=3,
    wrk_seconds_slow=6,
    growth_rounds=100,
    live_leases=(1, 1_000, 1_000_000),
    window_files=(1, 100_000),
    contenders=(1, 2, 4, 8, 16, 32, 64),
    crowds=7,
    swept_files=100_000,
    swept_rows=1_000_000,
)
QUICK = Plan(
    rounds=15,
    passes=1,
    wrk_seconds=2,
    wrk_seconds_slow=4,
    growth_rounds=15,
    live_leases=(1, 1_000, 10_000),
    window_files=(1, 10_000),
    contenders=(1, 4, 16, 64),
    crowds=2,
    swept_files=10_000,
    swept_rows=10_000,
)


class Progress:
    """Says on standard error what is measured now, and what is left out and why.

    Args:
        steps: how many steps there are in all.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self.left_out: list[str] = []

    def step(self, text: str) -> None:
        """Say what comes now."""
        self._done += 1
        print(f"{self._done:3} of {self._steps}: {text}", file=sys.stderr, flush=True)

    def drop(self, steps: int) -> None:
        """Reckon with fewer steps."""
        self._steps -= steps

    def leave_out(self, sentence: str) -> None:
        """Say what is not measured, and why; once."""
        if sentence not in self.left_out:
            self.left_out.append(sentence)
            print(sentence, file=sys.stderr, flush=True)
