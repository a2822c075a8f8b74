"""One installation and one door per test; each test runs once through every door."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.doors import DOORS, UNLIMITED, open_door, open_door_on_root

# Every grant waits for the disk, and no test here is about power cuts: where memory can hold the files, it does.
FAST_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


@pytest.fixture
def root():
    with tempfile.TemporaryDirectory(prefix="kannuki-", dir=FAST_FOLDER) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def kept_root():
    with tempfile.TemporaryDirectory(prefix="kannuki-", dir=FAST_FOLDER) as folder:
        yield Path(folder)


@pytest.fixture(params=sorted(DOORS))
def open_site(request, root):
    """Opens doors on one installation: `open_site(MAX_LOCKS=2)`; a second call is a restart on the same state."""

    def opened(clock=None, **settings):
        return open_door(request.param, root, clock, **settings)

    return opened


@pytest.fixture
def door(open_site):
    """A door with the default settings."""
    return open_site()


@pytest.fixture(params=sorted(DOORS))
def open_root(request, root):
    """Opens the door on an installation with this text in its settings file, which may be broken."""

    def opened(config):
        (root / "var").mkdir(mode=0o700)
        (root / "var" / "config.py").write_bytes(config if isinstance(config, bytes) else config.encode())
        return open_door_on_root(request.param, root)

    return opened


@pytest.fixture(scope="module", params=sorted(DOORS))
def kept_door(request, kept_root):
    """One door without limits for a module of generated requests, where a new one for each would be slow."""
    return open_door(request.param, kept_root / "free", RATE_LIMITS=dict(UNLIMITED))


@pytest.fixture(scope="module", params=sorted(DOORS))
def limited_door(request, kept_root):
    """One door with limits and a trusted proxy for a module of generated requests."""
    return open_door(request.param, kept_root / "limited", RATE_LIMITS={"read": (5, 60)}, TRUSTED_PROXY_HOPS=1)
