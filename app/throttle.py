"""Counts a request against its budget: lets it pass, refuses it, or decides what to do when it cannot be counted."""

from __future__ import annotations

from app.errors import RateLimitUnavailable, TooManyRequests
from app.ratelimit import FAIL_CLOSED, client_key, quota_headers, reset_after_seconds, window_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Protocol

    from app.clock import SystemClock
    from app.request import Request

    class RateLimitStorage(Protocol):
        """Where windows are counted."""

        def hit(self, key: str, window_seconds: int, ceiling: int | None = None) -> tuple[int, float]:
            """Count one hit; see app.memory_stores.InMemoryRateLimitStorage.hit."""


class Throttle:
    """The rate limits of the service.

    Args:
        storage: where windows are counted.
        rate_limits: policy -> (limit, window in seconds), or None where the policy is switched off.
        trusted_proxy_hops: see :func:`app.ratelimit.client_key`.
        clock: gives the present instant in milliseconds.
        report: takes one line for the error log when the storage fails.
    """

    def __init__(
        self,
        storage: RateLimitStorage,
        rate_limits: dict[str, tuple[int, int] | None],
        trusted_proxy_hops: int,
        clock: SystemClock,
        report: Callable[[str], None],
    ) -> None:
        self._storage = storage
        self._rate_limits = rate_limits
        self._trusted_proxy_hops = trusted_proxy_hops
        self._clock = clock
        self._report = report

    def count(self, policy: str, request: Request) -> list[tuple[str, str]]:
        """Count a request and return the headers that its answer carries, whatever becomes of it.

        Raises:
            TooManyRequests: the budget is used up.
            RateLimitUnavailable: it cannot be counted, and the policy fails closed.
        """
        quota = self._rate_limits[policy]
        if quota is None:
            return []
        limit, window_seconds = quota
        client = client_key(request.remote_addr, request.header("X-Forwarded-For"), self._trusted_proxy_hops)
        key = window_key(policy, limit, window_seconds, client)
        try:
            count, reset_at = self._storage.hit(key, window_seconds, limit + 1)
        except RateLimitUnavailable as error:
            refused = policy in FAIL_CLOSED
            self._report(f"rate limit {policy} not counted ({error.cause}), {'refused' if refused else 'let pass'}")
            if refused:
                raise
            return []
        seconds = reset_after_seconds(reset_at, self._clock.now_ms(), window_seconds)
        headers = quota_headers(policy, limit, window_seconds, count, seconds)
        if count > limit:
            raise TooManyRequests(policy, seconds, headers)
        return headers
