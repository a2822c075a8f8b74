"""The machine that figures were measured on; without it they say little."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

from tools.benchmarks.installations import Interpreter
from tools.benchmarks.tables import median

SYNCS = 20


def describe(interpreter: Interpreter, folder: Path) -> dict[str, str]:
    """Return the facts that the figures depend on.

    Args:
        interpreter: the Python of the service.
        folder: a folder on the disk that is written to.
    """
    program = "import sqlite3, sys; print(sys.version.split()[0], sqlite3.sqlite_version)"
    asked = subprocess.run([interpreter.path, "-I", "-c", program], capture_output=True, text=True, check=True)
    python, sqlite = asked.stdout.split()
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "CPU": _cpu_model(),
        "cores": str(os.cpu_count()),
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{python} ({interpreter.path})",
        "SQLite": sqlite,
        "fsync of 4 KiB": f"{_sync_ms(folder):.2f} ms",
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _sync_ms(folder: Path) -> float:
    """Return what a small write to the disk takes, which every durable grant waits for."""
    path = folder / "sync"
    took = []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(SYNCS):
            os.pwrite(descriptor, os.urandom(4096), 0)
            began = time.perf_counter()
            os.fsync(descriptor)
            took.append((time.perf_counter() - began) * 1000)
    finally:
        os.close(descriptor)
        path.unlink()
    return median(took)
