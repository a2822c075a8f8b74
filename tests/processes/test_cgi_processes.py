"""The same through the CGI script: one process a request, as on the server."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

from app.clock import SystemClock
from app.sqlite_locks import SqliteLockStore
from tests.hosting.direct import Run, run_script

# -S as in the script's first line; without it the environment's own start-up files would run.
INTERPRETER = [sys.executable, "-IS"]


def acquire(root: Path, resource: str, owner: str) -> Run:
    body = {"owner": owner, "ttl_seconds": 60}
    return run_script(root, INTERPRETER, "POST", f"/locks/{resource}", body)


def test_of_eight_requests_for_one_lock_at_the_first_start_one_is_granted(installation):
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda number: acquire(installation, "r", f"o{number}"), range(8)))

    assert [run.answer.status for run in runs] == [200] * 8, runs[0].log
    assert [run.log for run in runs] == [""] * 8
    assert sum(run.answer.json()["acquired"] for run in runs) == 1


def test_requests_of_many_processes_share_one_budget(installation):
    (installation / "var" / "config.py").write_text('RATE_LIMITS = {"acquire": (5, 3600)}\n')

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda number: acquire(installation, f"r{number}", "o"), range(8)))

    assert sorted(run.answer.status for run in runs) == [200] * 5 + [429] * 3


def test_requests_killed_at_any_moment_are_done_or_not_done(installation):
    """A host's limit on time or memory; what was answered holds, and the next request works."""
    chance = random.Random(3)
    environ = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "PATH": "/usr/bin:/bin",
        "PATH_INFO": "/-",
        "REMOTE_ADDR": "192.0.2.1",
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "/index.cgi",
        "SERVER_NAME": "locks.example",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    assert acquire(installation, "warm-up", "o").answer.status == 200
    answered: dict[str, int] = {}
    for number in range(40):
        body = json.dumps({"owner": "o", "ttl_seconds": 3600}).encode()
        request = subprocess.Popen(
            [*INTERPRETER, "index.cgi"],
            cwd=installation / "public_html",
            env={**environ, "REQUEST_URI": f"/locks/r{number}", "CONTENT_LENGTH": str(len(body))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with request:
            request.stdin.write(body)
            request.stdin.close()
            sleep(chance.random() / 30)  # twice as long as most take
            os.kill(request.pid, signal.SIGKILL)
            head, _, document = request.stdout.read().partition(b"\r\n\r\n")
            if document.endswith(b"\n") and b"200" in head:
                answered[f"r{number}"] = json.loads(document)["lock"]["fencing_token"]

    store = SqliteLockStore(str(installation / "var"), SystemClock())
    for resource, token in answered.items():
        assert store.read(resource).fencing_token == token
    assert acquire(installation, "after", "o").answer.status == 200
