"""Who held a lock from when until when, in seconds of the one clock that nobody sets (CLOCK_MONOTONIC)."""

from __future__ import annotations

from itertools import combinations

#: instants in leases are whole milliseconds, rounded down, so a lease may end so much before its length is over
ROUNDING_SECONDS = 0.002


class Hold:
    """A time in which an owner could be sure to hold a resource.

    Args:
        resource: the lock.
        owner: the holder.
        token: the fencing token.
        asked: before the grant was asked for; the lease lasts at least its length from here.
        granted: after the grant came back; from here the owner knows.
        ttl_seconds: the length of the lease.
    """

    def __init__(self, resource: str, owner: str, token: int, asked: float, granted: float, ttl_seconds: float) -> None:
        self.resource = resource
        self.owner = owner
        self.token = token
        self.begins = granted
        self.ends = asked + ttl_seconds - ROUNDING_SECONDS

    def __repr__(self) -> str:
        return f"{self.owner} on {self.resource} #{self.token} {self.begins:.4f}-{self.ends:.4f}"

    def overlaps(self, other: Hold) -> bool:
        return max(self.begins, other.begins) < min(self.ends, other.ends)


def double_holds(holds: list[Hold]) -> list[tuple[Hold, Hold]]:
    """Return the pairs of different owners who held one resource at the same time."""
    return [
        (one, other)
        for one, other in combinations(holds, 2)
        if one.resource == other.resource and one.owner != other.owner and one.overlaps(other)
    ]


def falling_tokens(holds: list[Hold]) -> list[tuple[Hold, Hold]]:
    """Return the pairs in which a later holder has no higher token than an earlier one."""
    return [
        (earlier, later)
        for earlier in holds
        for later in holds
        if earlier.resource == later.resource
        and earlier.owner != later.owner
        and later.begins >= earlier.ends
        and later.begins > earlier.begins
        and later.token <= earlier.token
    ]
