"""The sweeper deletes what hits write; a hit in a file that loses its name is lost, and a client's count with it."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

import pytest

from app.bootstrap import build_sweeper
from app.file_rate_limits import FileRateLimitStorage
from tests.clocks import ManualClock

STALE_SECONDS = 7200  # twice the longest window of the default settings


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "rate-limits"


@pytest.fixture
def storage(folder, clock) -> FileRateLimitStorage:
    folder.mkdir(mode=0o700)
    return FileRateLimitStorage(str(folder), clock)


def window_file(folder: Path, key: str = "k") -> Path:
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def set_age(path: Path, clock: ManualClock, seconds: float) -> None:
    """Let a file have changed so long ago by the test's clock."""
    changed_ns = (clock.now_ms() - round(seconds * 1000)) * 1_000_000
    os.utime(path, ns=(changed_ns, changed_ns), follow_symlinks=False)


def hit(storage: FileRateLimitStorage, folder: Path, clock: ManualClock, **how: int) -> tuple[int, float]:
    """Hit, and let the file's time be that of the test's clock, as the two are one on a server."""
    before = window_file(folder).stat().st_mtime_ns if window_file(folder).exists() else 0
    answer = storage.hit("k", 3600, **how)
    if window_file(folder).stat().st_mtime_ns != before:
        set_age(window_file(folder), clock, 0)
    return answer


def test_sweeper_never_unlinks_a_live_window(storage, folder, clock, tmp_path):
    """The longest window there is, at its limit from its first moments: nothing is written until it ends."""
    sweeper = build_sweeper(str(tmp_path), clock)
    for _ in range(31):
        hit(storage, folder, clock, ceiling=31)

    for seconds in [1] * 10 + [60] * 59 + [1] * 49 + [0.999]:
        clock.advance(seconds)
        assert sweeper.sweep().windows == 0
        assert hit(storage, folder, clock, ceiling=31)[0] == 31


def test_sweeper_deletes_a_file_that_is_older_than_twice_the_longest_window_and_no_younger(
    storage, folder, clock, tmp_path
):
    storage.hit("k", 60)
    sweeper = build_sweeper(str(tmp_path), clock)

    set_age(window_file(folder), clock, STALE_SECONDS)
    assert sweeper.sweep().windows == 0
    assert window_file(folder).exists()

    set_age(window_file(folder), clock, STALE_SECONDS + 0.001)
    assert sweeper.sweep().windows == 1
    assert not window_file(folder).exists()


def test_twice_the_longest_window_follows_the_settings(storage, folder, clock, tmp_path):
    (tmp_path / "config.py").write_text('RATE_LIMITS = {"read": (5, 36000)}\n')
    storage.hit("k", 60)
    sweeper = build_sweeper(str(tmp_path), clock)

    set_age(window_file(folder), clock, 72_000)
    assert sweeper.sweep().windows == 0
    set_age(window_file(folder), clock, 72_000.001)
    assert sweeper.sweep().windows == 1


def test_sweeper_skips_a_stale_file_that_is_in_use(storage, folder, clock):
    storage.hit("k", 60)
    set_age(window_file(folder), clock, 100)

    with window_file(folder).open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert storage.delete_stale(10) == 0
        assert window_file(folder).exists()

    assert storage.delete_stale(10) == 1


class HittingClock(ManualClock):
    """While the sweeper looks at a file's age, a hit comes in and makes the file young."""

    def __init__(self, folder: Path, start: ManualClock) -> None:
        super().__init__(start.now_ms())
        self._folder = folder
        self._hits = 0

    def now_ms(self) -> int:
        self._hits += 1
        if self._hits == 1:
            storage = FileRateLimitStorage(str(self._folder), ManualClock(super().now_ms()))
            assert storage.hit("k", 60)[0] == 1
            set_age(window_file(self._folder), self, 0)
        return super().now_ms()


def test_a_hit_between_the_look_at_the_age_and_the_lock_saves_the_file(storage, folder, clock):
    storage.hit("k", 60)
    clock.advance(100)
    set_age(window_file(folder), clock, 100)

    assert FileRateLimitStorage(str(folder), HittingClock(folder, clock)).delete_stale(90) == 0

    assert storage.hit("k", 60)[0] == 2


def test_a_window_made_anew_between_the_sweepers_open_and_its_lock_is_kept(storage, folder, clock, monkeypatch):
    """Another sweep has unlinked the stale file, and a hit has made a new one: the path names a live window now."""
    storage.hit("k", 60)
    clock.advance(100)
    set_age(window_file(folder), clock, 100)
    flock = fcntl.flock

    def flock_late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        window_file(folder).unlink()
        storage.hit("k", 60)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_late)

    assert storage.delete_stale(90) == 0

    assert fcntl.flock is flock
    assert storage.hit("k", 60)[0] == 2


def test_sweeper_deletes_nothing_else(storage, folder, clock, tmp_path):
    storage.hit("k", 60)
    name = "0" * 64 + ".json"
    (tmp_path / "victim").write_bytes(b"precious")
    others = [
        folder / "notes.txt",
        folder / ".htaccess",
        folder / ("0" * 63 + ".json"),
        folder / ("0" * 65 + ".json"),
        folder / ("0" * 64),
        folder / ("A" * 64 + ".json"),
        folder / ("g" * 64 + ".json"),
        folder / (name + ".bak"),
        folder / ("." + name),
    ]
    for path in others:
        path.write_bytes(b"{}")
    (folder / "1").mkdir()
    (folder / "1" / name).write_bytes(b"{}")
    (folder / ("2" * 64 + ".json")).mkdir()
    (folder / ("3" * 64 + ".json")).symlink_to(tmp_path / "victim")
    os.mkfifo(folder / ("4" * 64 + ".json"))
    everything = sorted(folder.rglob("*"))
    for path in [*everything, tmp_path / "victim"]:
        set_age(path, clock, 1_000_000)

    assert build_sweeper(str(tmp_path), clock).sweep().windows == 1

    assert sorted(folder.rglob("*")) == [path for path in everything if path != window_file(folder)]
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_where_cron_is_missing_the_shares_of_requests_reach_every_stale_file(storage, folder, clock, tmp_path):
    """Also behind more living files than one share looks at: what is never reached fills the inode quota."""
    sweeper = build_sweeper(str(tmp_path), clock)
    for number in range(1500):
        path = window_file(folder, f"client {number}")
        path.write_bytes(b"{}")
        set_age(path, clock, 10 if number % 50 else 100_000)

    for _ in range(60):
        sweeper.sweep_a_share()

    assert len(list(folder.iterdir())) == 1470


def test_a_folder_that_has_never_been_made_is_swept_clean(tmp_path, clock):
    swept = build_sweeper(str(tmp_path), clock).sweep()

    assert (swept.windows, swept.leases) == (0, 0)


def test_a_second_sweep_leaves_at_once(storage, folder, clock, tmp_path):
    storage.hit("k", 60)
    set_age(window_file(folder), clock, 1_000_000)

    with (tmp_path / "sweep.lock").open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert build_sweeper(str(tmp_path), clock).sweep() is None
        assert window_file(folder).exists()

    assert build_sweeper(str(tmp_path), clock).sweep().windows == 1
