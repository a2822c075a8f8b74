"""The stores as plain Python: the readable reference that the contract tests hold the real ones against.

One process only. A request that is a process of its own would start with empty stores each time, so nothing on the
path of a CGI request imports this.
"""

from __future__ import annotations

from threading import Lock

from app.errors import CapacityReached, LeaseNotFound, NotHolder
from app.lease import Held, Lease, instant_from_ms
from app.ratelimit import advance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from app.clock import SystemClock


class InMemoryLockStore:
    """The model of the lock store.

    Args:
        clock: gives the present instant in milliseconds.
        max_locks: how many leases may be live at once.
    """

    def __init__(self, clock: SystemClock, max_locks: int = 10000) -> None:
        self._clock = clock
        self._max_locks = max_locks
        self._leases: dict[str, Lease] = {}
        self._last_token = 0
        self._exclusive = Lock()

    def acquire(self, resource: str, owner: str, ttl_seconds: int) -> Lease | Held:
        """Grant the resource to the owner, or say until when another holds it."""
        with self._exclusive:
            now_ms = self._clock.now_ms()
            lease = self._live(resource, now_ms)
            if lease is None:
                self._make_room(resource, now_ms)
                self._last_token += 1
                lease = Lease(resource, owner, "", "", self._last_token, "")
            elif lease.owner != owner:
                self._leases[resource] = lease
                return Held(lease.retry_after_seconds(now_ms))
            self._leases[resource] = lease = lease.granted(now_ms, ttl_seconds)
            return lease

    def read(self, resource: str) -> Lease:
        """Return the live lease of a resource."""
        with self._exclusive:
            lease = self._live(resource, self._clock.now_ms())
            if lease is None:
                raise LeaseNotFound
            return lease

    def renew(self, resource: str, owner: str, ttl_seconds: int) -> Lease:
        """Give the owner's live lease a new end."""
        with self._exclusive:
            now_ms = self._clock.now_ms()
            lease = self._held_by(resource, owner, now_ms).renewed(now_ms, ttl_seconds)
            self._leases[resource] = lease
            return lease

    def release(self, resource: str, owner: str) -> None:
        """End the owner's live lease."""
        with self._exclusive:
            self._held_by(resource, owner, self._clock.now_ms())
            del self._leases[resource]

    def list_live(self, prefix: str, limit: int, after: str) -> list[Lease]:
        """Return up to ``limit`` live leases behind ``after`` whose resource begins with ``prefix``, by resource."""
        with self._exclusive:
            now_ms = self._clock.now_ms()
            live = (
                self._live(name, now_ms) for name in sorted(self._leases) if name.startswith(prefix) and name > after
            )
            return [lease for lease in live if lease is not None][:limit]

    def check(self) -> None:
        """Return if a lock could be granted now."""

    def delete_expired(self, keep_seconds: int, chunk_rows: int) -> int:
        """Forget up to ``chunk_rows`` leases that ended more than ``keep_seconds`` ago; return how many."""
        with self._exclusive:
            before = instant_from_ms(self._clock.now_ms() - keep_seconds * 1000)
            ended = sorted(
                (lease.expires_at, name) for name, lease in self._leases.items() if lease.expires_at < before
            )
            for _, name in ended[:chunk_rows]:
                del self._leases[name]
            return len(ended[:chunk_rows])

    def _make_room(self, resource: str, now_ms: int) -> None:
        """Forget the ended leases when the store is full; the one about to be replaced takes no room."""
        others = {name: lease for name, lease in self._leases.items() if name != resource}
        if len(others) < self._max_locks:
            return
        live = {name: lease for name, lease in others.items() if lease.is_live(now_ms)}
        if len(live) >= self._max_locks:
            raise CapacityReached(self._max_locks)
        self._leases = live

    def _live(self, resource: str, now_ms: int) -> Lease | None:
        lease = self._leases.get(resource)
        if lease is None:
            return None
        lease = lease.as_of(now_ms)
        return lease if lease.is_live(now_ms) else None

    def _held_by(self, resource: str, owner: str, now_ms: int) -> Lease:
        lease = self._live(resource, now_ms)
        if lease is None:
            raise LeaseNotFound
        if lease.owner != owner:
            self._leases[resource] = lease
            raise NotHolder
        return lease


class InMemoryRateLimitStorage:
    """The model of the rate-limit storage; for one process, in development and in tests.

    Args:
        clock: gives the present instant in milliseconds.
    """

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._windows: dict[str, tuple[int, int]] = {}
        self._exclusive = Lock()

    def hit(self, key: str, window_seconds: int, ceiling: int | None = None) -> tuple[int, float]:
        """Count one hit of the key.

        Args:
            key: names the window.
            window_seconds: its length, counted from its first hit.
            ceiling: beyond this count nothing changes.

        Returns:
            The hits of the present window with this one, and its end in seconds since 1970.
        """
        with self._exclusive:
            window = advance(self._windows.get(key), self._clock.now_ms(), window_seconds * 1000, ceiling)
            self._windows[key] = window
            return window[0], window[1] / 1000
