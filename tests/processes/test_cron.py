"""The sweep as cron starts it: /bin/sh, an empty environment, another working directory, nobody watching."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from time import time

import pytest

from app.file_rate_limits import FileRateLimitStorage
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock

COUNTS = re.compile(r"[^\n]*\b(\d+)\b[^\n]*\b(\d+)\b[^\n]*\n")
DAY_MS = 86_400_000


def cron(root: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the sweep's line of a crontab."""
    words = [sys.executable, str(root / "tools" / "sweep.py"), *arguments]
    return subprocess.run(
        ["env", "-i", "PATH=/usr/bin:/bin", "/bin/sh", "-c", f"{before} {shlex.join(words)}"],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def fill(root: Path, leases: int = 3, windows: int = 2) -> None:
    """Make ended leases and stale windows of yesterday, and one of each that lives."""
    yesterday = ManualClock(round(time() * 1000) - DAY_MS)
    locks = SqliteLockStore(str(root / "var"), yesterday)
    for number in range(leases):
        locks.acquire(f"ended {number}", "o", 60)
    locks.acquire("living", "o", 2 * 86_400)
    storage = FileRateLimitStorage(str(root / "var" / "rate-limits"), yesterday)
    for number in range(windows):
        storage.hit(f"stale {number}", 60)
    for path in (root / "var" / "rate-limits").iterdir():
        os.utime(path, (time() - 86_400,) * 2)
    storage.hit("living", 60)


def living_window(root: Path) -> Path:
    return root / "var" / "rate-limits" / f"{hashlib.sha256(b'living').hexdigest()}.json"


def test_the_sweep_prints_one_line_of_counts_and_keeps_what_lives(installation):
    fill(installation)

    swept = cron(installation)

    assert (swept.returncode, swept.stderr) == (0, "")
    counts = COUNTS.fullmatch(swept.stdout)
    assert counts, swept.stdout
    assert sorted(counts.groups()) == ["2", "3"]
    assert list((installation / "var" / "rate-limits").iterdir()) == [living_window(installation)]
    store = SqliteLockStore(str(installation / "var"), ManualClock(round(time() * 1000)))
    assert [lease.resource for lease in store.list_live("", 10, "")] == ["living"]

    again = cron(installation)
    assert sorted(COUNTS.fullmatch(again.stdout).groups()) == ["0", "0"]


def test_a_quiet_sweep_prints_nothing_and_does_the_same(installation):
    fill(installation)

    swept = cron(installation, "--quiet")

    assert (swept.returncode, swept.stdout, swept.stderr) == (0, "", "")
    assert list((installation / "var" / "rate-limits").iterdir()) == [living_window(installation)]


def test_a_sweep_before_the_first_request_finds_nothing_to_do(installation):
    swept = cron(installation)

    assert (swept.returncode, swept.stderr) == (0, "")
    assert sorted(COUNTS.fullmatch(swept.stdout).groups()) == ["0", "0"]


def test_leases_that_ended_less_than_an_hour_ago_are_kept(installation):
    locks = SqliteLockStore(str(installation / "var"), ManualClock(round(time() * 1000) - 3_500_000))
    locks.acquire("ended lately", "o", 1)

    assert COUNTS.fullmatch(cron(installation).stdout).groups() == ("0", "0")


def unusable_state_folder(root: Path) -> None:
    (root / "var").rmdir()


def unusable_windows_folder(root: Path) -> None:
    (root / "var" / "rate-limits").write_bytes(b"")


def lost_database(root: Path) -> None:
    fill(root)
    (root / "var" / "locks.sqlite3").unlink()


def corrupt_database(root: Path) -> None:
    fill(root)
    (root / "var" / "locks.sqlite3").write_bytes(b"x" * 10_000)


def broken_settings(root: Path) -> None:
    (root / "var" / "config.py").write_text("KEEP_EXPIRED_SECONDS = 'long'\n")


@pytest.mark.parametrize(
    "spoil", [unusable_state_folder, unusable_windows_folder, lost_database, corrupt_database, broken_settings]
)
@pytest.mark.parametrize("arguments", [[], ["--quiet"]], ids=["plain", "quiet"])
def test_what_cannot_be_swept_is_said_in_a_sentence_with_status_1(installation, spoil, arguments):
    spoil(installation)

    swept = cron(installation, *arguments)

    assert swept.returncode == 1
    assert swept.stdout == ""
    assert swept.stderr.endswith(".\n")
    assert "Traceback" not in swept.stderr


def test_called_as_a_web_script_the_sweep_refuses_and_deletes_nothing(installation):
    fill(installation)
    before = sorted((installation / "var" / "rate-limits").iterdir())

    refused = cron(installation, before="GATEWAY_INTERFACE=CGI/1.1")

    assert refused.returncode != 0
    assert "\n\n" in refused.stdout.replace("\r", ""), "a web server needs headers even for a refusal"
    assert refused.stdout.startswith("Status: 403")
    assert sorted((installation / "var" / "rate-limits").iterdir()) == before


def test_sweeps_that_overlap_delete_each_thing_once_and_all_end_well(installation):
    fill(installation, leases=300, windows=300)
    command = ["env", "-i", "PATH=/usr/bin:/bin", sys.executable, str(installation / "tools" / "sweep.py")]
    sweeps = [
        subprocess.Popen(command, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]

    outputs = [sweep.communicate(timeout=60) for sweep in sweeps]

    assert [sweep.returncode for sweep in sweeps] == [0] * 4
    assert [errors for _, errors in outputs] == [""] * 4
    counts = [COUNTS.fullmatch(line).groups() for line, _ in outputs if COUNTS.fullmatch(line)]
    assert sorted((sum(int(one) for one, _ in counts), sum(int(other) for _, other in counts))) == [300, 300]


def test_the_files_that_a_sweep_makes_are_for_its_user_only(installation):
    fill(installation)
    cron(installation, before="umask 0;")

    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (installation / "var").iterdir() if path.is_file()}
    assert set(modes.values()) == {"0o600"}
    assert {"sweep.lock", "sweep.stamp"} <= set(modes)
