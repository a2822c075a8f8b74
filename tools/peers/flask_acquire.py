#!/usr/bin/python3
"""A lock as a plain Flask application, run by CGI. `tools/bench.py` measures the service beside it.

It is written as one writes such a script, without tricks and without waste, and its grant is as durable as the
service's: the write lock first, the same journal, synced. It has no rate limit, no list and hardly any validation.
"""

import os
import sqlite3
import sys
import time
from wsgiref.handlers import CGIHandler

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "vendor"))

from flask import Flask, abort, request  # noqa: E402 - it is in the folder named above

app = Flask(__name__)


def connect() -> sqlite3.Connection:
    """Open the database."""
    connection = sqlite3.connect(os.path.join(FOLDER, "locks.sqlite3"), timeout=5, isolation_level=None)
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS locks (id INTEGER PRIMARY KEY AUTOINCREMENT, "
        "resource TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, expires_at REAL NOT NULL)"
    )
    return connection


@app.post("/locks/<resource>")
def acquire(resource: str) -> dict[str, object]:
    """Grant the resource to the owner, or say that another holds it."""
    asked = request.get_json()
    owner, ttl_seconds = asked.get("owner"), asked.get("ttl_seconds")
    if not isinstance(owner, str) or not isinstance(ttl_seconds, int) or ttl_seconds < 1:
        abort(422)
    connection = connect()
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


if __name__ == "__main__":
    CGIHandler().run(app)
