"""What the hazard tests need from the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock
from tests.parts import requires

NOBODY = 65534


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_folder():
    """A folder that other users can reach; pytest's own lie in one that only its user can enter."""
    folder = tempfile.mkdtemp(prefix="kannuki-test-")
    os.chmod(folder, 0o755)
    yield Path(folder)
    os.chmod(folder, 0o700)
    shutil.rmtree(folder)


@pytest.fixture
def unprivileged(open_folder):
    """A context in which file modes count: root bypasses them, so root becomes nobody, who owns open_folder."""

    @contextlib.contextmanager
    def as_nobody():
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    if os.geteuid():
        return contextlib.nullcontext
    os.chown(open_folder, NOBODY, NOBODY)
    return as_nobody


@pytest.fixture
def store(tmp_path, clock) -> SqliteLockStore:
    return SqliteLockStore(str(tmp_path), clock, busy_timeout_seconds=0.2)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "kannuki-test", folder], capture_output=True
    )
    requires(mounted.returncode == 0, "root, to mount a small disk (tmpfs)")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def sqlite_elsewhere():
    """Runs a script in another process up to its first line of output; closing its input lets it go on.

    The script has `connection`, a connection to the database whose path is given.
    """
    processes = []

    def start(database: Path, script: str) -> subprocess.Popen[bytes]:
        head = (
            "import os, signal, sqlite3, sys\n"
            "connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", head + script, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        processes.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in processes:
        process.kill()
        with process:  # closes its pipes and waits for it
            pass
