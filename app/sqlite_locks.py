"""The lock store: leases in one SQLite file.

What holds it together:

- Every write runs in :meth:`SqliteLockStore._write`, which takes the write lock first (BEGIN IMMEDIATE) and reads the
  clock after that. A check before the write lock, or an instant from before the wait for it, grants a lock twice.
- A rollback journal, never WAL: home folders are often on NFS, where WAL corrupts. TRUNCATE with synchronous=FULL also
  syncs the end of the journal, so a grant that was answered survives a power cut (sqlite.org/pragma.html).
- A database that has vanished is not made anew: an empty one would free every lock. The file ``locks.created`` says
  that there has been one.
"""

from __future__ import annotations

import posix

from app.errors import CapacityReached, LeaseNotFound, NotHolder, StoreUnavailable
from app.interpreter import load_sqlite
from app.lease import Held, Lease, NotAnInstant, instant_from_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any, Callable, TypeVar

    from app.clock import SystemClock

    T = TypeVar("T")
else:
    sqlite3 = load_sqlite()

DATABASE_FILE = "locks.sqlite3"
#: says that there has been a database; see app.lock_files
CREATED_FILE = "locks.created"
#: rows that a grant may clean up for itself when the store is full of ended leases
ROOM_ROWS = 100

_COLUMNS = "resource, owner, acquired_at, expires_at, id, COALESCE(set_at, acquired_at)"
_SELECT = f"SELECT {_COLUMNS} FROM distributed_locks"


class SqliteLockStore:
    """Leases in ``locks.sqlite3``; each operation opens the file, does one transaction and closes it.

    Args:
        var_dir: the state folder.
        clock: gives the present instant in milliseconds.
        busy_timeout_seconds: how long an operation waits for the write lock.
        max_locks: how many leases may be live at once.

    Every operation raises StoreUnavailable when the file cannot be used; then nothing has been changed.
    """

    def __init__(
        self, var_dir: str, clock: SystemClock, busy_timeout_seconds: float = 5, max_locks: int = 10_000
    ) -> None:
        self._var_dir = var_dir
        self._clock = clock
        self._busy_timeout_seconds = busy_timeout_seconds
        self._max_locks = max_locks

    def acquire(self, resource: str, owner: str, ttl_seconds: int) -> Lease | Held:
        """Grant the resource to the owner, or say until when another holds it.

        Raises:
            CapacityReached: the lease would be one too many.
        """

        def work(connection: sqlite3.Connection, now_ms: int) -> Lease | Held:
            stored = _select(connection, resource)
            lease = stored.as_of(now_ms) if stored else None
            if stored and lease and lease.is_live(now_ms):
                if lease.owner == owner:
                    lease = lease.granted(now_ms, ttl_seconds)
                    _update(connection, lease)
                    return lease
                if lease is not stored:
                    _update(connection, lease)
                return Held(lease.retry_after_seconds(now_ms))
            if stored:
                # A new row, not the old one changed: only a new row has a new, higher fencing token.
                connection.execute("DELETE FROM distributed_locks WHERE id = ?", (stored.fencing_token,))
            self._make_room(connection, now_ms)
            self._ensure_marker()
            lease = Lease(resource, owner, "", "", 0, "").granted(now_ms, ttl_seconds)
            lease.fencing_token = _insert(connection, lease)
            return lease

        return self._write(work)

    def read(self, resource: str) -> Lease:
        """Return the live lease of a resource.

        Raises:
            LeaseNotFound: there is none.
        """

        def work(connection: sqlite3.Connection) -> Lease:
            stored = _select(connection, resource)
            # The clock after the row: with an instant from before it, a lease granted in between lies in the future.
            now_ms = self._clock.now_ms()
            return _live(stored, now_ms)

        return self._run(work)

    def renew(self, resource: str, owner: str, ttl_seconds: int) -> Lease:
        """Give the owner's live lease a new end, ``ttl_seconds`` from now.

        Raises:
            LeaseNotFound: there is no live lease.
            NotHolder: another owner holds it.
        """

        def work(connection: sqlite3.Connection, now_ms: int) -> Lease:
            lease = _held_by(owner, connection, resource, now_ms).renewed(now_ms, ttl_seconds)
            _update(connection, lease)
            return lease

        return self._write(work)

    def release(self, resource: str, owner: str) -> None:
        """End the owner's live lease.

        Raises:
            LeaseNotFound: there is no live lease.
            NotHolder: another owner holds it.
        """

        def work(connection: sqlite3.Connection, now_ms: int) -> None:
            lease = _held_by(owner, connection, resource, now_ms)
            connection.execute("DELETE FROM distributed_locks WHERE id = ?", (lease.fencing_token,))

        self._write(work)

    def list_live(self, prefix: str, limit: int, after: str) -> list[Lease]:
        """Return up to ``limit`` live leases behind ``after`` whose resource begins with ``prefix``, by resource.

        The order is that of the code points. ``after`` is the last resource of the page before, or "".
        """
        ends_before = _after_prefix(prefix)
        bounded = " AND resource < ?" if ends_before else ""
        query = f"{_SELECT} WHERE resource > ? AND resource >= ?{bounded} AND expires_at > ? ORDER BY resource LIMIT ?"
        bounds = (after, prefix, ends_before) if ends_before else (after, prefix)

        def work(connection: sqlite3.Connection) -> list[Lease]:
            connection.execute("BEGIN")
            connection.execute("SELECT stored FROM lock_totals").fetchone()  # holds writers off; the clock comes after
            now_ms = self._clock.now_ms()
            rows = connection.execute(query, (*bounds, instant_from_ms(now_ms), limit)).fetchall()
            return [Lease(*row).as_of(now_ms) for row in rows]

        return self._run(work)

    def check(self) -> None:
        """Return if a lock could be granted now: a lease is written, as far as the journal, and rolled back."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            # A resource cannot have this name, so nothing that is stored is in the way.
            _insert(connection, Lease("\0", "", "", "", 0, ""))

        self._run(work)

    def verify(self) -> None:
        """Return if every page of the database is sound and a lock could be granted; reads the whole file."""

        def work(connection: sqlite3.Connection) -> None:
            found: str = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise StoreUnavailable("corrupt", found.partition("\n")[0])

        self.check()
        self._run(work)

    def delete_expired(self, keep_seconds: int, chunk_rows: int) -> int:
        """Delete up to ``chunk_rows`` rows of leases that ended more than ``keep_seconds`` ago; return how many."""

        def work(connection: sqlite3.Connection, now_ms: int) -> int:
            return _delete_ended(connection, instant_from_ms(now_ms - keep_seconds * 1000), chunk_rows)

        return self._write(work)

    def accept_new_database(self) -> str:
        """Let an empty database take the place of a lost or damaged one; every lock is free then.

        Returns:
            A sentence about what was done.

        Raises:
            StoreUnavailable: the database cannot be used for another reason, or the folder cannot be written.
        """
        try:
            self.verify()
        except StoreUnavailable as error:
            if error.reason not in ("missing", "corrupt"):
                raise
        else:
            return "The lock database works, so nothing was changed."
        from app.lock_files import accept_new, database_fault

        try:
            kept = accept_new(self._var_dir, self._clock.now_ms())
        except OSError as error:
            raise database_fault(error, self._var_dir) from error
        self.check()
        return "A new lock database was made." + (f" The damaged one is kept as {kept}." if kept else "")

    def _make_room(self, connection: sqlite3.Connection, now_ms: int) -> None:
        """Raise CapacityReached unless one more lease may become live.

        A count that triggers keep makes this one look-up; rows are counted only while ended leases fill the store.
        """
        stored: int = connection.execute("SELECT stored FROM lock_totals").fetchone()[0]
        if stored < self._max_locks:
            return
        deleted = _delete_ended(connection, instant_from_ms(now_ms + 1), ROOM_ROWS)
        if stored - deleted < self._max_locks:
            return
        if deleted == ROOM_ROWS:
            live = "SELECT COUNT(*) FROM (SELECT 1 FROM distributed_locks WHERE expires_at > ? LIMIT ?)"
            if connection.execute(live, (instant_from_ms(now_ms), self._max_locks)).fetchone()[0] < self._max_locks:
                return
        raise CapacityReached(self._max_locks)

    def _ensure_marker(self) -> None:
        """See to it that no lease is granted whose loss would go unnoticed, whatever was killed at the first start."""
        try:
            posix.stat(f"{self._var_dir}/{CREATED_FILE}")
        except FileNotFoundError:
            from app.lock_files import ensure_files

            ensure_files(self._var_dir)

    def _write(self, work: Callable[[sqlite3.Connection, int], T]) -> T:
        """Run ``work(connection, now_ms)`` in a transaction that holds the write lock from its beginning.

        The one place that begins a writing transaction. An exception leaves the file as it was.
        """

        def transaction(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            outcome = work(connection, self._clock.now_ms())
            connection.execute("COMMIT")
            return outcome

        return self._run(transaction)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._attempt(work)
        except (sqlite3.Error, OSError, NotAnInstant) as error:
            return self._mend_and_retry(work, error)

    def _mend_and_retry(self, work: Callable[[sqlite3.Connection], T], error: Exception) -> T:
        """Make the database where there has never been one, and run the work again; else say what is wrong."""
        from app.lock_files import database_fault, make_if_never_made

        fault = database_fault(error, self._var_dir)
        if fault.reason not in ("missing", "unreadable", "not-owner"):
            raise fault from error
        try:
            make_if_never_made(self._var_dir, self._connect, self._clock.now_ms())
            return self._attempt(work)
        except (sqlite3.Error, OSError, NotAnInstant) as error:
            raise database_fault(error, self._var_dir) from error

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connect()
        try:
            return work(connection)
        finally:
            connection.close()  # rolls back what was not committed

    def _connect(self) -> sqlite3.Connection:
        path = f"{self._var_dir}/{DATABASE_FILE}".replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            f"file:{path}?mode=rw", timeout=self._busy_timeout_seconds, isolation_level=None, uri=True
        )
        try:
            connection.execute("PRAGMA journal_mode=TRUNCATE")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA temp_store=MEMORY")
        except BaseException:
            connection.close()
            raise
        return connection


def _select(connection: sqlite3.Connection, resource: str) -> Lease | None:
    row: tuple[Any, ...] | None = connection.execute(f"{_SELECT} WHERE resource = ?", (resource,)).fetchone()
    return Lease(*row) if row else None


def _insert(connection: sqlite3.Connection, lease: Lease) -> int:
    cursor = connection.execute(
        "INSERT INTO distributed_locks (resource, owner, expires_at, acquired_at, set_at) VALUES (?, ?, ?, ?, ?)",
        (lease.resource, lease.owner, lease.expires_at, lease.acquired_at, lease.set_at),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _update(connection: sqlite3.Connection, lease: Lease) -> None:
    connection.execute(
        "UPDATE distributed_locks SET expires_at = ?, acquired_at = ?, set_at = ? WHERE id = ?",
        (lease.expires_at, lease.acquired_at, lease.set_at, lease.fencing_token),
    )


def _delete_ended(connection: sqlite3.Connection, before: str, at_most: int) -> int:
    deleted = connection.execute(
        "DELETE FROM distributed_locks WHERE id IN "
        "(SELECT id FROM distributed_locks WHERE expires_at < ? ORDER BY expires_at LIMIT ?)",
        (before, at_most),
    )
    return deleted.rowcount


def _live(stored: Lease | None, now_ms: int) -> Lease:
    lease = stored.as_of(now_ms) if stored else None
    if lease is None or not lease.is_live(now_ms):
        raise LeaseNotFound
    return lease


def _held_by(owner: str, connection: sqlite3.Connection, resource: str, now_ms: int) -> Lease:
    stored = _select(connection, resource)
    lease = _live(stored, now_ms)
    if lease.owner != owner:
        if lease is not stored:
            # Seen on a clock that has been set back: from now on its end stands.
            _update(connection, lease)
            connection.execute("COMMIT")
        raise NotHolder
    return lease


def _after_prefix(prefix: str) -> str:
    """Return the smallest text above all texts with this prefix, or "" when there is none."""
    while prefix:
        following = ord(prefix[-1]) + 1
        if following == 0xD800:
            following = 0xE000  # surrogates are no characters
        if following <= 0x10FFFF:
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return ""
