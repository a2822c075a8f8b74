"""Clean-up. Nothing depends on it for being right: what has ended is invisible without it. It keeps the disk small."""

from __future__ import annotations

import os
from time import monotonic, sleep, time

from app.errors import StoreUnavailable
from app.file_rate_limits import try_lock
from app.lock_files import ensure_files, free_reserve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from app.file_rate_limits import FileRateLimitStorage
    from app.settings import Settings
    from app.sqlite_locks import SqliteLockStore

LOCK_FILE = "sweep.lock"
STAMP_FILE = "sweep.stamp"
#: a transaction holds requests up for as long as it runs; well below the 50 ms that are the most it may
CHUNK_SECONDS = 0.02
CHUNK_ROWS_LEAST, CHUNK_ROWS_FIRST, CHUNK_ROWS_MOST = 10, 100, 2000
#: cron may run once an hour at the slowest; a stamp older than two hours says that it does not run
OVERDUE_SECONDS = 7200
#: what one request may do of the work where cron does not run
SHARE_ROWS, SHARE_FILES = 50, 500


class Swept:
    """What a sweep did.

    Args:
        windows: rate-limit files deleted.
        leases: rows of ended leases deleted.
    """

    __slots__ = ("leases", "windows")

    def __init__(self, windows: int, leases: int) -> None:
        self.windows = windows
        self.leases = leases


class Sweeper:
    """Deletes stale rate-limit files and the rows of ended leases.

    Args:
        var_dir: the state folder.
        settings: how long rows are kept, and the windows whose longest decides when a file is stale.
        locks: the lock store.
        windows: the rate-limit storage.
    """

    def __init__(self, var_dir: str, settings: Settings, locks: SqliteLockStore, windows: FileRateLimitStorage) -> None:
        self._var_dir = var_dir
        self._settings = settings
        self._locks = locks
        self._windows = windows

    def sweep(self) -> Swept | None:
        """Delete all that is stale; None when another sweep is at work.

        Raises:
            OSError: a folder cannot be used.
            StoreUnavailable: the database cannot be used.
        """
        descriptor = os.open(f"{self._var_dir}/{LOCK_FILE}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not try_lock(descriptor):
                return None
            try:
                windows = self._windows.delete_stale(self._stale_seconds())  # first: on a full disk it makes room
            finally:
                leases = self._delete_leases()
                ensure_files(self._var_dir)
            self._stamp()
            return Swept(windows, leases)
        finally:
            os.close(descriptor)

    def sweep_a_share(self) -> None:
        """Do a bounded part of the work where no sweep has run for long; a fault here is left to the next sweep."""
        for share in (self._delete_some_windows, self._delete_some_leases):
            try:
                if self._is_overdue():
                    share()
            except (OSError, StoreUnavailable):
                continue

    def _delete_some_windows(self) -> None:
        self._windows.delete_stale(self._stale_seconds(), SHARE_FILES)

    def _delete_some_leases(self) -> None:
        self._locks.delete_expired(self._settings.KEEP_EXPIRED_SECONDS, SHARE_ROWS)

    def _stale_seconds(self) -> int:
        """Twice the longest window, so that a live window is never deleted near its end."""
        return 2 * max((quota[1] for quota in self._settings.RATE_LIMITS.values() if quota), default=0)

    def _delete_leases(self) -> int:
        rows, deleted = CHUNK_ROWS_FIRST, 0
        while True:
            began = monotonic()
            count = self._delete_chunk(rows)
            deleted += count
            if not count:
                return deleted
            took = monotonic() - began
            rows = min(rows * 2, CHUNK_ROWS_MOST) if took < CHUNK_SECONDS / 2 else max(rows // 2, CHUNK_ROWS_LEAST)
            # A request that finds the write lock taken looks again after up to 100 ms. Free three quarters of the time,
            # it is seldom taken when that request looks again.
            sleep(took * 3)

    def _delete_chunk(self, rows: int) -> int:
        try:
            return self._locks.delete_expired(self._settings.KEEP_EXPIRED_SECONDS, rows)
        except StoreUnavailable as error:
            if error.reason not in ("full", "failing"):
                raise
            free_reserve(self._var_dir)
            return self._locks.delete_expired(self._settings.KEEP_EXPIRED_SECONDS, min(rows, CHUNK_ROWS_FIRST))

    def _is_overdue(self) -> bool:
        try:
            age_seconds = time() - os.stat(f"{self._var_dir}/{STAMP_FILE}").st_mtime
            return not 0 <= age_seconds <= OVERDUE_SECONDS
        except FileNotFoundError:
            return True

    def _stamp(self) -> None:
        path = f"{self._var_dir}/{STAMP_FILE}"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(path)
