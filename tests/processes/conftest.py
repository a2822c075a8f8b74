"""Starts real processes on real files, and judges from their logs who held what when."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.clock import SystemClock
from app.sqlite_locks import SqliteLockStore

PROJECT = Path(__file__).resolve().parents[2]


class Worker:
    """One process that runs a function of workers.py."""

    def __init__(self, role: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            # Without site: a worker needs nothing but app/ and the standard library, and there are many of them.
            [sys.executable, "-S", "-m", "tests.processes.workers", role, *map(str, arguments)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def line(self) -> str:
        """Wait for the next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def go_on(self) -> None:
        """Let it past its present wait."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def report(self) -> Any:
        """Wait for its end and return what it reported."""
        output, _ = self.process.communicate(timeout=120)
        assert self.process.returncode == 0
        return json.loads(output)

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        with self.process:
            pass


@pytest.fixture
def start():
    """Starts workers; none outlives the test."""
    workers: list[Worker] = []

    def started(role: str, *arguments: object) -> Worker:
        workers.append(Worker(role, *arguments))
        return workers[-1]

    yield started
    for worker in workers:
        worker.kill()


@pytest.fixture
def store(tmp_path) -> SqliteLockStore:
    """The store that the workers share, as the test itself sees it."""
    return SqliteLockStore(str(tmp_path), SystemClock(), busy_timeout_seconds=30)


@pytest.fixture
def installation(tmp_path) -> Path:
    """A copy of the project as it lies on a server."""
    root = tmp_path / "site"
    root.mkdir()
    for folder in ("app", "public_html", "tools"):
        shutil.copytree(PROJECT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "var").mkdir(mode=0o700)
    return root
