"""The files around the lock database: how it comes into being, what says that there has been one, and its reserve.

Loaded only when the database cannot be used as it is, so that a request which finds it well does not pay for this.
"""

from __future__ import annotations

import errno
import os

from app.errors import StoreUnavailable
from app.lease import NotAnInstant
from app.sqlite_locks import CREATED_FILE, DATABASE_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

RESERVE_FILE = "locks.reserve"
#: a clean-up of 100 rows changes up to some 110 pages of 4 KiB, and its journal needs as much for a moment
RESERVE_BYTES = 512 * 1024

_CREATED_TEXT = (
    b"A lock database was made in this folder. While this file is here and the database is not, the service will not\n"
    b"work: an empty database would free every lock. To start with an empty one on purpose, delete this file (and\n"
    b"locks.sqlite3, if it is damaged), or run python3 tools/doctor.py --accept-new-database.\n"
)

#: set_at, the instant at which the end was last set, may be NULL in rows that another program has written
_SCHEMA = (
    """CREATE TABLE distributed_locks (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,
        resource    TEXT NOT NULL UNIQUE,
        owner       TEXT NOT NULL,
        expires_at  TEXT NOT NULL,
        acquired_at TEXT NOT NULL,
        set_at      TEXT
    )""",
    "CREATE INDEX distributed_locks_by_end ON distributed_locks (expires_at)",
    "CREATE TABLE lock_totals (stored INTEGER NOT NULL)",
    "INSERT INTO lock_totals VALUES (0)",
    """CREATE TRIGGER count_stored AFTER INSERT ON distributed_locks
        BEGIN UPDATE lock_totals SET stored = stored + 1; END""",
    """CREATE TRIGGER count_deleted AFTER DELETE ON distributed_locks
        BEGIN UPDATE lock_totals SET stored = stored - 1; END""",
)

#: how SQLite's messages begin -> the reason of problems.STORE_FAULTS; error codes are there from Python 3.11 only
_REASONS = (
    ("database is locked", "busy"),
    ("database table is locked", "busy"),
    ("locking protocol", "busy"),
    ("database or disk is full", "full"),
    ("attempt to write a readonly database", "read-only"),
    ("unable to open database file", "unreadable"),
    ("no such table", "missing"),
    ("no such column", "corrupt"),
    ("file is not a database", "corrupt"),
    ("database disk image is malformed", "corrupt"),
    ("malformed database schema", "corrupt"),
)
_ERRNO_REASONS = {errno.ENOSPC: "full", errno.EDQUOT: "full", errno.EROFS: "read-only"}


def database_fault(error: Exception, var_dir: str) -> StoreUnavailable:
    """Return what an error of SQLite, of the system or of a row's content means for the store."""
    if isinstance(error, OSError):
        reason = _ERRNO_REASONS.get(error.errno or 0, "unreadable")
        cause = f"cannot make the database, {errno.errorcode.get(error.errno or 0, 'unknown error')}"
    elif isinstance(error, NotAnInstant):
        reason, cause = "corrupt", "a row holds an instant that is none"
    else:
        cause = str(error).partition("\n")[0]
        reason = next((reason for beginning, reason in _REASONS if cause.startswith(beginning)), "failing")
    if reason in ("unreadable", "read-only") and not _is_own_folder(var_dir):
        reason = "not-owner"
    return StoreUnavailable(reason, cause)


def make_if_never_made(var_dir: str, connect: Callable[[], Any], now_ms: int) -> None:
    """Make the database where there has never been one, or where the operator has taken the marker away.

    Args:
        var_dir: the state folder.
        connect: opens the database file.
        now_ms: the present instant, at which its tokens begin. Should it replace a lost one, known of or not, no count
            of grants can have reached the milliseconds since 1970 before.

    Raises:
        StoreUnavailable: there has been one, and it is gone.
        OSError: a file cannot be made.
    """
    # The marker before the size: the process that makes the database writes the marker last.
    refused = os.path.exists(f"{var_dir}/{CREATED_FILE}")
    if _size(f"{var_dir}/{DATABASE_FILE}"):
        return  # another process has made it meanwhile, or it is unreadable: the next attempt will tell
    if refused:
        raise StoreUnavailable("missing", f"the database is gone and {CREATED_FILE} is there")
    os.makedirs(var_dir, mode=0o700, exist_ok=True)
    if _is_own_folder(var_dir):
        os.chmod(var_dir, 0o700)
    # Made here and not by SQLite, which would take its mode from the umask; the journal follows the file's mode.
    os.close(os.open(f"{var_dir}/{DATABASE_FILE}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    _make_tables(connect(), now_ms)
    ensure_files(var_dir)


def accept_new(var_dir: str, now_ms: int) -> str:
    """Let the next operation make an empty database in place of a lost or damaged one.

    Returns:
        The name under which a damaged file is kept, or "" when there was none.
    """
    kept = ""
    if _size(f"{var_dir}/{DATABASE_FILE}"):
        kept = f"{DATABASE_FILE}.damaged-{now_ms}"
        os.rename(f"{var_dir}/{DATABASE_FILE}", f"{var_dir}/{kept}")
    _unlink(f"{var_dir}/{CREATED_FILE}")
    return kept


def ensure_files(var_dir: str) -> None:
    """Make the marker and, where there is room, the reserve beside an existing database.

    A process killed just after it has made the database leaves that undone.
    """
    if not _size(f"{var_dir}/{DATABASE_FILE}"):
        return
    _write_once(f"{var_dir}/{CREATED_FILE}", _CREATED_TEXT)
    try:
        disk = os.statvfs(var_dir)
        # Not the last free space: that is what grants need now.
        if disk.f_bavail * disk.f_frsize > 2 * RESERVE_BYTES:
            # Random bytes: a compressing file system would reserve nothing for zeros.
            _write_once(f"{var_dir}/{RESERVE_FILE}", os.urandom(RESERVE_BYTES))
    except OSError:
        return  # a used-up quota; locks work without a reserve


def free_reserve(var_dir: str) -> None:
    """Give the reserved space back to the disk, so that a clean-up has room for its journal."""
    _unlink(f"{var_dir}/{RESERVE_FILE}")


def _make_tables(connection: Any, last_token: int) -> None:
    """Make the tables unless another process has; many may be here at once."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'distributed_locks'").fetchone():
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO sqlite_sequence VALUES ('distributed_locks', ?)", (last_token,))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _write_once(path: str, content: bytes) -> None:
    """Write a file unless it is there. Only that it is there counts, so another may see it before its end."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError:
        _unlink(path)
        raise
    finally:
        os.close(descriptor)


def _is_own_folder(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return True  # missing or hidden: then that is the fault, not its owner


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
