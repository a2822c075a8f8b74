"""The two commands that run on the server, each on an installation of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

import app
from app import maintenance
from app.clock import SystemClock
from app.errors import LeaseNotFound, StoreUnavailable
from app.file_rate_limits import FileRateLimitStorage
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock
from tests.doors import Site, modes_below
from tools import hosted, sweep

PROJECT = Path(app.__file__).parents[1]
TOOLS = ("sweep", "doctor")
#: long ago for the system's clock, so that everything has ended
LONG_AGO_MS = 1_000_000_000_000


@pytest.fixture
def site(tmp_path) -> Site:
    root = tmp_path / "kannuki"
    for folder in ("app", "tools"):
        shutil.copytree(PROJECT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return Site(root, SystemClock())


def run(site: Site, tool: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Start a tool as cron does: from another folder, with next to no environment. The umask here hides nothing."""
    return subprocess.run(
        [sys.executable, "-B", str(site.root / "tools" / f"{tool}.py"), *arguments],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LANG": "C", **environ},
        capture_output=True,
        text=True,
        check=False,
        umask=0,
    )


def store(site: Site) -> SqliteLockStore:
    return SqliteLockStore(str(site.var), site.clock)


def content(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder but bytecode."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "pycache" not in str(path)
    }


def lines(run: subprocess.CompletedProcess[str]) -> tuple[int, list[str], list[str]]:
    assert "Traceback" not in run.stderr
    return run.returncode, run.stdout.splitlines(), run.stderr.splitlines()


# Both


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("arguments", [[], ["--quiet"], ["--accept-new-database"], ["--help"]])
def test_called_as_a_web_script_a_tool_refuses_and_does_nothing(site, tool, arguments):
    store(site).acquire("r", "o", 60)
    site.database.unlink()
    before = content(site.root)
    refused = run(site, tool, *arguments, GATEWAY_INTERFACE="CGI/1.1", REQUEST_METHOD="GET")
    assert refused.returncode == 1
    assert refused.stderr == ""
    head, _, body = refused.stdout.replace("\r\n", "\n").partition("\n\n")
    assert head.split("\n") == ["Status: 403 Forbidden", "Content-Type: text/plain"]
    assert body == "This is a tool, not a page.\n"
    assert content(site.root) == before


@pytest.mark.parametrize("tool", TOOLS)
def test_an_argument_that_a_tool_does_not_know_is_refused(site, tool):
    before = content(site.root)
    status, out, err = lines(run(site, tool, "--everything"))
    assert (status, out) == (2, [])
    assert "--everything" in err[-1]
    assert content(site.root) == before


@pytest.mark.parametrize(("tool", "flag"), [("sweep", "--quiet"), ("doctor", "--accept-new-database")])
def test_help_tells_the_flag_and_the_exit_status(site, tool, flag):
    status, out, err = lines(run(site, tool, "--help"))
    assert (status, err) == (0, [])
    text = " ".join(" ".join(out).split())
    assert flag in text
    assert "exit status is 1" in text
    assert f"python3 tools/{tool}.py" in text


@pytest.mark.parametrize("tool", TOOLS)
def test_unacceptable_settings_are_told_by_name_and_nothing_is_done(site, tool):
    site.configure("MAX_LOCKS = 'hunter2'\nTYPO = 1\n")
    before = content(site.var)
    status, out, err = lines(run(site, tool))
    assert status == 1
    (told,) = err if tool == "sweep" else out
    assert told.startswith("sweep: The settings" if tool == "sweep" else "FAIL settings: The settings")
    assert "MAX_LOCKS must be" in told
    assert "TYPO is no setting." in told
    assert "hunter2" not in told
    assert content(site.var) == before


def test_new_files_are_the_owners_alone_from_the_beginning_on(monkeypatch):
    monkeypatch.delenv("GATEWAY_INTERFACE", raising=False)
    before = os.umask(0)
    try:
        hosted.begin()
    finally:
        begun = os.umask(before)
    assert begun == 0o077


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_tool_makes_is_for_its_user_alone(site, tool):
    assert run(site, tool).returncode == 0
    modes = modes_below(site.var)
    assert "locks.sqlite3" in modes
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


# Sweep


def ended(site: Site, leases: int, windows: int) -> None:
    clock = ManualClock(LONG_AGO_MS)
    locks, storage = SqliteLockStore(str(site.var), clock), FileRateLimitStorage(str(site.var / "rate-limits"), clock)
    for number in range(leases):
        locks.acquire(f"ended-{number}", "o", 1)
    for number in range(windows):
        storage.hit(f"ended-{number}", 60)
    for path in site.windows():
        os.utime(path, (LONG_AGO_MS // 1000, LONG_AGO_MS // 1000))


def test_a_sweep_prints_one_line_of_counts_and_leaves_what_lives(site):
    ended(site, leases=3, windows=2)
    store(site).acquire("live", "o", 600)
    FileRateLimitStorage(str(site.var / "rate-limits"), site.clock).hit("live", 60)
    assert lines(run(site, "sweep")) == (0, ["sweep: 2 rate-limit files and 3 ended leases deleted"], [])
    assert [row[1] for row in site.stored()] == ["live"]
    assert len(site.windows()) == 1
    assert lines(run(site, "sweep")) == (0, ["sweep: 0 rate-limit files and 0 ended leases deleted"], [])


def test_a_quiet_sweep_prints_nothing_and_does_the_same(site):
    ended(site, leases=1, windows=1)
    assert lines(run(site, "sweep", "--quiet")) == (0, [], [])
    assert (site.stored(), site.windows()) == ([], [])


@pytest.mark.parametrize("arguments", [[], ["--quiet"]])
def test_a_second_sweep_leaves_at_once_without_a_fault(site, arguments):
    ended(site, leases=1, windows=1)
    with (site.var / "sweep.lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        status, out, err = lines(run(site, "sweep", *arguments))
    assert (status, err) == (0, [])
    assert out == ([] if arguments else ["sweep: another sweep is at work, nothing to do"])
    assert (len(site.stored()), len(site.windows())) == (1, 1)


@pytest.mark.parametrize("arguments", [[], ["--quiet"]])
def test_a_sweep_tells_which_folder_is_missing(site, arguments):
    site.var.rmdir()
    status, out, (told,) = lines(run(site, "sweep", *arguments))
    assert (status, out) == (1, [])
    assert told.startswith(f"sweep: {site.var}/")
    assert "user that the website runs as" in told
    assert not site.var.exists()


def test_a_sweep_tells_when_the_folder_of_the_windows_cannot_be_used(site):
    (site.var / "rate-limits").touch()
    status, out, (told,) = lines(run(site, "sweep"))
    assert (status, out) == (1, [])
    assert told.startswith(f"sweep: {site.var}/rate-limits cannot be used: ")


@pytest.mark.parametrize("arguments", [[], ["--quiet"]])
def test_a_sweep_tells_when_the_database_is_gone_and_makes_none(site, arguments):
    store(site).acquire("r", "o", 60)
    site.database.unlink()
    status, out, (told,) = lines(run(site, "sweep", *arguments))
    assert (status, out) == (1, [])
    assert told.startswith("sweep: The lock database is gone")
    assert not site.database.exists()


def test_a_sweep_tells_when_the_database_is_damaged(site):
    site.database.write_bytes(b"not SQLite" * 100)
    status, out, (told,) = lines(run(site, "sweep"))
    assert (status, out) == (1, [])
    assert told.startswith("sweep: The lock database is damaged.")
    assert site.database.read_bytes() == b"not SQLite" * 100


def test_a_disk_that_knows_no_locks_is_told_in_words(site, capsys, monkeypatch):
    def no_locks(descriptor: int) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(maintenance, "try_lock", no_locks)
    assert sweep.sweep(str(site.var), quiet=True) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "No locks available" in err
    assert "None" not in err


# Doctor

HEALTHY = ["PASS settings", "PASS lock database"]
WARNING = "WARN access: there are no API keys, so anyone who knows the address may call"


@pytest.mark.parametrize("used", [False, True])
def test_the_doctor_passes_an_installation_that_can_grant_locks(site, used):
    if used:
        store(site).acquire("r", "o", 60)
    assert lines(run(site, "doctor")) == (0, [*HEALTHY, WARNING], [])
    store(site).acquire("r", "o", 60)


def test_the_doctor_says_what_to_do_about_a_lost_database_and_does_nothing_unasked(site):
    store(site).acquire("r", "o", 60)
    site.database.unlink()
    before = content(site.var)
    status, out, err = lines(run(site, "doctor"))
    assert (status, err) == (1, [])
    assert out[0] == "PASS settings"
    assert out[1].startswith("FAIL lock database: The lock database is gone")
    assert "--accept-new-database" in out[1]
    assert len(out) == 2
    assert content(site.var) == before


def gone(site: Site) -> None:
    site.database.unlink()


def emptied(site: Site) -> None:
    site.database.write_bytes(b"")


def overwritten(site: Site) -> None:
    site.database.write_bytes(b"not SQLite" * 1000)


def cut_off(site: Site) -> None:
    site.database.write_bytes(site.database.read_bytes()[:5000])


def zeroed_behind_its_head(site: Site) -> None:
    site.database.write_bytes(site.database.read_bytes()[:100] + b"\0" * 20_000)


def destroyed_root(name: str) -> Callable[[Site], None]:
    """Return what overwrites the first page of a table or index, as a failing disk does."""

    def spoil(site: Site) -> None:
        connection = sqlite3.connect(site.database)
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchall()
        ((page_bytes,),) = connection.execute("PRAGMA page_size").fetchall()
        connection.close()
        with site.database.open("r+b") as file:
            file.seek((page - 1) * page_bytes)
            file.write(b"\x5a" * page_bytes)

    return spoil


ROOTS = [
    "distributed_locks",
    "sqlite_autoindex_distributed_locks_1",
    "distributed_locks_by_end",
    "lock_totals",
    "sqlite_sequence",
]
DAMAGES = {
    "gone": gone,
    "emptied": emptied,
    "overwritten": overwritten,
    "cut off": cut_off,
    "zeroed behind its head": zeroed_behind_its_head,
    **{f"without the root of {name}": destroyed_root(name) for name in ROOTS},
}


@pytest.mark.parametrize("spoil", DAMAGES.values(), ids=DAMAGES.keys())
def test_the_doctor_fails_a_database_that_cannot_grant_a_lock(site, spoil):
    store(site).acquire("r", "holder", 600)
    spoil(site)
    with pytest.raises(StoreUnavailable):
        store(site).acquire("new", "o", 60)
    status, out, err = lines(run(site, "doctor"))
    assert (status, err) == (1, [])
    assert out[1].startswith("FAIL lock database: ")


@pytest.mark.parametrize("spoil", DAMAGES.values(), ids=DAMAGES.keys())
def test_accepting_a_new_database_frees_every_lock_and_gives_higher_tokens(site, spoil):
    for number in range(3):
        last = store(site).acquire(f"r{number}", "holder", 600)
    spoil(site)
    damaged = site.database.read_bytes() if site.database.exists() else b""

    status, out, err = lines(run(site, "doctor", "--accept-new-database"))

    assert (status, err) == (0, [])
    assert out[0] == "PASS settings"
    assert out[1].strip().startswith("A new lock database was made.")
    assert out[2:] == ["PASS lock database", WARNING]
    kept = [path for path in site.var.iterdir() if "damaged" in path.name]
    assert [path.read_bytes() for path in kept] == ([damaged] if damaged else [])
    assert all(f"kept as {path.name}." in out[1] for path in kept)
    assert (site.var / "locks.created").exists()
    with pytest.raises(LeaseNotFound):
        store(site).read("r0")
    assert store(site).acquire("r0", "next", 60).fencing_token > last.fencing_token


def test_a_new_database_is_accepted_once_and_again_only_when_asked_again(site):
    tokens = [store(site).acquire("r", "holder", 600).fencing_token]
    for _ in range(2):
        gone(site)
        with pytest.raises(StoreUnavailable):
            store(site).acquire("r", "thief", 60)
        assert lines(run(site, "doctor"))[0] == 1
        assert lines(run(site, "doctor", "--accept-new-database"))[0] == 0
        tokens.append(store(site).acquire("r", "next", 60).fencing_token)
    assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("used", [False, True])
def test_accepting_a_new_database_beside_one_that_works_changes_nothing(site, used):
    if used:
        store(site).acquire("r", "holder", 600)
    else:
        assert lines(run(site, "doctor"))[0] == 0
    before, rows = content(site.var), site.stored()
    status, out, err = lines(run(site, "doctor", "--accept-new-database"))
    assert (status, err) == (0, [])
    assert out == [HEALTHY[0], "     The lock database works, so nothing was changed.", HEALTHY[1], WARNING]
    assert site.stored() == rows
    assert set(content(site.var)) == set(before)
    assert content(site.var)["locks.sqlite3"] == before["locks.sqlite3"]


def test_a_busy_database_is_not_taken_for_a_damaged_one(site):
    store(site).acquire("r", "holder", 600)
    site.configure("BUSY_TIMEOUT_SECONDS = 0.01\n")
    journal = {"locks.sqlite3-journal"}
    before = set(content(site.var)) | journal
    other = sqlite3.connect(site.database, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        status, out, err = lines(run(site, "doctor", "--accept-new-database"))
    finally:
        other.close()
    assert (status, err) == (1, [])
    assert out[1].startswith("FAIL lock database: The lock database is in use")
    assert set(content(site.var)) | journal == before
    assert store(site).read("r").owner == "holder"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_state_folder_that_is_a_file_is_told_in_a_sentence(site, tool):
    site.var.rmdir()
    site.var.touch()
    status, out, err = lines(run(site, tool))
    assert status == 1
    assert len(out + err) == 1
    assert not any(line.startswith("PASS lock") for line in out)
