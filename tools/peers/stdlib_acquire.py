#!/usr/bin/python3
"""A lock as a plain CGI script on the standard library. `tools/bench.py` measures the service beside it.

It is written as one writes such a script, without tricks and without waste, and its grant is as durable as the
service's: the write lock first, the same journal, synced. It has no rate limit, no list and hardly any validation.
"""

import json
import os
import sqlite3
import sys
import time
from urllib.parse import unquote

DATABASE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "locks.sqlite3")


def acquire(resource: str, owner: str, ttl_seconds: int) -> dict[str, object]:
    """Grant the resource to the owner, or say that another holds it."""
    connection = sqlite3.connect(DATABASE, timeout=5, isolation_level=None)
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS locks (id INTEGER PRIMARY KEY AUTOINCREMENT, "
        "resource TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, expires_at REAL NOT NULL)"
    )
    connection.execute("BEGIN IMMEDIATE")
    now = time.time()
    expires_at = now + ttl_seconds
    row = connection.execute("SELECT id, owner, expires_at FROM locks WHERE resource = ?", (resource,)).fetchone()
    if row and row[2] > now and row[1] != owner:
        connection.execute("ROLLBACK")
        connection.close()
        return {"acquired": False, "resource": resource}
    if row and row[2] > now:
        token = row[0]
        connection.execute("UPDATE locks SET expires_at = ? WHERE id = ?", (expires_at, token))
    else:
        connection.execute("DELETE FROM locks WHERE resource = ?", (resource,))
        cursor = connection.execute(
            "INSERT INTO locks (resource, owner, expires_at) VALUES (?, ?, ?)", (resource, owner, expires_at)
        )
        token = cursor.lastrowid
    connection.execute("COMMIT")
    connection.close()
    lock = {"resource": resource, "owner": owner, "expires_at": expires_at, "fencing_token": token}
    return {"acquired": True, "lock": lock}


def answer(status: str, document: dict[str, object]) -> None:
    """Write the answer."""
    sys.stdout.write(f"Status: {status}\r\nContent-Type: application/json\r\n\r\n{json.dumps(document)}\n")


def main() -> None:
    """Answer one request."""
    body = sys.stdin.buffer.read(int(os.environ.get("CONTENT_LENGTH") or 0))
    resource = unquote(os.environ["PATH_INFO"].rpartition("/")[2])
    try:
        asked = json.loads(body)
        owner, ttl_seconds = asked["owner"], asked["ttl_seconds"]
    except (ValueError, TypeError, KeyError):
        answer("400 Bad Request", {"error": "owner and ttl_seconds are needed"})
        return
    if not isinstance(owner, str) or not isinstance(ttl_seconds, int) or ttl_seconds < 1:
        answer("422 Unprocessable Content", {"error": "owner or ttl_seconds is not acceptable"})
        return
    answer("200 OK", acquire(resource, owner, ttl_seconds))


if __name__ == "__main__":
    main()
