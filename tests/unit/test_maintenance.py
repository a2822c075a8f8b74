"""Clean-up: how old is stale, how much a request does of it, and when a sweep gives way."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from app import maintenance
from app.bootstrap import build_sweeper
from app.errors import StoreUnavailable
from app.file_rate_limits import FileRateLimitStorage
from app.maintenance import CHUNK_ROWS_FIRST, CHUNK_ROWS_LEAST, CHUNK_ROWS_MOST, CHUNK_SECONDS, Sweeper
from app.settings import Settings
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock
from tests.doors import Site

NOW = 1_796_097_906.123


class Locks:
    """Stands in for the lock store: deletes as many rows as there are, or fails, and remembers what was asked."""

    def __init__(self, rows: int = 0, *failures: Exception) -> None:
        self.rows = rows
        self.failures = list(failures)
        self.asked: list[tuple[int, int]] = []

    def delete_expired(self, keep_seconds: int, chunk_rows: int) -> int:
        self.asked.append((keep_seconds, chunk_rows))
        if self.failures:
            raise self.failures.pop(0)
        deleted = min(self.rows, chunk_rows)
        self.rows -= deleted
        return deleted


class Windows:
    """Stands in for the rate-limit storage."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked: list[tuple[int, int | None]] = []

    def delete_stale(self, max_age_seconds: int, at_most: int | None = None) -> int:
        self.asked.append((max_age_seconds, at_most))
        if self.failures:
            raise self.failures.pop(0)
        return 3


class Steps:
    """The time that chunks take, without any passing."""

    def __init__(self, took: list[float]) -> None:
        self.took = took
        self.now = 0.0
        self.begun = False
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        self.begun = not self.begun
        if not self.begun:
            self.now += self.took.pop(0) if len(self.took) > 1 else self.took[0]
        return self.now

    def sleep(self, seconds: float) -> None:
        self.begun = False
        self.pauses.append(seconds)


@pytest.fixture(autouse=True)
def steps(monkeypatch) -> Steps:
    steps = Steps([0.0])
    monkeypatch.setattr(maintenance, "monotonic", steps.monotonic)
    monkeypatch.setattr(maintenance, "sleep", steps.sleep)
    monkeypatch.setattr(maintenance, "time", lambda: NOW)
    return steps


@pytest.fixture
def stamp(tmp_path) -> Path:
    return tmp_path / "sweep.stamp"


def sweeper(folder: Path, locks: Locks, windows: Windows, **settings: object) -> Sweeper:
    return Sweeper(str(folder), Settings(settings), locks, windows)  # type: ignore[arg-type]


def set_age(stamp: Path, seconds: float) -> None:
    stamp.touch()
    os.utime(stamp, (NOW - seconds, NOW - seconds))


# How old is stale


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({}, 7200),
        ({"auth": None}, 120),
        ({"auth": (30, 60)}, 120),
        ({"auth": (30, 60), "read": (600, 600)}, 1200),
        ({"acquire": (1, 604_800)}, 1_209_600),
        ({"acquire": (604_800, 1)}, 7200),
        ({"acquire": None, "hold": None, "read": (1, 1), "auth": None}, 2),
        ({"acquire": None, "hold": None, "read": None, "auth": None}, 0),
        ({"acquire": [5, 9000]}, 18_000),
    ],
)
def test_stale_is_twice_the_longest_window_of_the_policies_that_are_on(tmp_path, limits, seconds):
    windows = Windows()
    sweep = sweeper(tmp_path, Locks(), windows, RATE_LIMITS=limits)
    sweep.sweep_a_share()
    sweep.sweep()
    assert [asked[0] for asked in windows.asked] == [seconds, seconds]


@pytest.mark.parametrize("keep_seconds", [0, 1, 3600, 315_360_000])
def test_rows_are_kept_as_long_as_the_setting_says(tmp_path, keep_seconds):
    locks = Locks(rows=1)
    sweep = sweeper(tmp_path, locks, Windows(), KEEP_EXPIRED_SECONDS=keep_seconds)
    sweep.sweep_a_share()
    sweep.sweep()
    assert {asked[0] for asked in locks.asked} == {keep_seconds}


# The share of a request


def test_a_request_does_a_bounded_share_however_much_there_is(tmp_path):
    locks, windows = Locks(rows=10**6), Windows()
    sweeper(tmp_path, locks, windows).sweep_a_share()
    assert locks.asked == [(3600, 50)]
    assert windows.asked == [(7200, 500)]


@pytest.mark.parametrize(
    ("age_seconds", "shares"),
    [(0, 0), (60, 0), (3600, 0), (7199, 0), (7200, 0), (7201, 1), (10**6, 1), (10**9, 1)],
)
def test_a_request_cleans_up_only_where_no_sweep_has_run_for_two_hours(tmp_path, stamp, age_seconds, shares):
    set_age(stamp, age_seconds)
    locks, windows = Locks(), Windows()
    sweeper(tmp_path, locks, windows).sweep_a_share()
    assert (len(locks.asked), len(windows.asked)) == (shares, shares)


def test_where_no_sweep_has_ever_run_requests_clean_up(tmp_path):
    locks, windows = Locks(), Windows()
    sweeper(tmp_path, locks, windows).sweep_a_share()
    assert (len(locks.asked), len(windows.asked)) == (1, 1)


def test_a_stamp_from_the_future_does_not_end_the_clean_up(tmp_path, stamp):
    """A clock that was far ahead for a moment has left it."""
    set_age(stamp, -(10**8))
    locks, windows = Locks(), Windows()
    sweeper(tmp_path, locks, windows).sweep_a_share()
    assert (len(locks.asked), len(windows.asked)) == (1, 1)


def test_a_share_is_no_sweep_and_leaves_no_stamp(tmp_path):
    sweeper(tmp_path, Locks(rows=10), Windows()).sweep_a_share()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "failure", [OSError(5, "I/O"), PermissionError(), StoreUnavailable("busy"), StoreUnavailable("full")]
)
def test_a_fault_in_a_share_is_left_to_the_next_sweep(tmp_path, failure):
    sweeper(tmp_path, Locks(0, failure), Windows()).sweep_a_share()
    if isinstance(failure, OSError):
        sweeper(tmp_path, Locks(), Windows(failure)).sweep_a_share()


def test_a_lock_store_that_fails_does_not_keep_a_share_from_the_windows(tmp_path):
    """On a full disk the windows are what can still be deleted."""
    windows = Windows()
    sweeper(tmp_path, Locks(0, StoreUnavailable("full")), windows).sweep_a_share()
    assert len(windows.asked) == 1


def test_a_share_where_the_stamp_cannot_be_seen_does_no_harm(tmp_path):
    (tmp_path / "file").touch()
    sweeper(tmp_path / "file", Locks(), Windows()).sweep_a_share()


def test_a_share_of_real_stores_leaves_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance, "SHARE_ROWS", 3)
    monkeypatch.setattr(maintenance, "SHARE_FILES", 4)
    clock = ManualClock()
    var = Site(tmp_path).var
    store = SqliteLockStore(str(var), clock)
    storage = FileRateLimitStorage(str(var / "rate-limits"), clock)
    for number in range(5):
        store.acquire(f"ended-{number}", "o", 1)
        storage.hit(f"stale-{number}", 60)
    for path in (var / "rate-limits").iterdir():
        os.utime(path, (clock.now_ms() / 1000, clock.now_ms() / 1000))
    clock.advance(3600 + 7200)
    store.acquire("live", "o", 60)

    def left() -> tuple[int, int]:
        return len(Site(tmp_path).stored()), len(list((var / "rate-limits").iterdir()))

    build_sweeper(str(var), clock).sweep_a_share()
    assert left() == (5 - 3 + 1, 5 - 4)
    build_sweeper(str(var), clock).sweep_a_share()
    assert left() == (1, 0)
    assert store.read("live").owner == "o"


# A sweep


def test_a_sweep_counts_what_it_has_deleted_and_leaves_its_stamp(tmp_path, stamp):
    locks, windows = Locks(rows=12), Windows()
    swept = sweeper(tmp_path, locks, windows).sweep()
    assert (swept.windows, swept.leases) == (3, 12)
    assert windows.asked == [(7200, None)]
    assert stamp.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "sweep.lock").stat().st_mode & 0o777 == 0o600


def test_a_sweep_makes_an_old_stamp_new(tmp_path, stamp):
    set_age(stamp, NOW - 1000)
    sweeper(tmp_path, Locks(), Windows()).sweep()
    assert stamp.stat().st_mtime > 1000


def test_a_second_sweep_leaves_at_once_and_touches_nothing(tmp_path, stamp):
    locks, windows = Locks(rows=12), Windows()
    with (tmp_path / "sweep.lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert sweeper(tmp_path, locks, windows).sweep() is None
    assert (locks.asked, windows.asked, stamp.exists()) == ([], [], False)
    assert sweeper(tmp_path, locks, windows).sweep() is not None


@pytest.mark.parametrize(
    ("locks", "windows"),
    [(Locks(0, StoreUnavailable("corrupt")), Windows()), (Locks(), Windows(PermissionError()))],
    ids=["the lock store", "the windows"],
)
def test_a_sweep_that_failed_says_so_leaves_no_stamp_and_lets_the_next_one_in(tmp_path, stamp, locks, windows):
    with pytest.raises((StoreUnavailable, PermissionError)):
        sweeper(tmp_path, locks, windows).sweep()
    assert not stamp.exists()
    assert sweeper(tmp_path, locks, windows).sweep() is not None


def test_a_sweep_goes_on_until_nothing_is_left(tmp_path):
    locks = Locks(rows=100_000)
    assert sweeper(tmp_path, locks, Windows()).sweep().leases == 100_000
    assert locks.rows == 0


def test_fast_chunks_grow_to_the_largest(tmp_path):
    locks = Locks(rows=20_000)
    sweeper(tmp_path, locks, Windows()).sweep()
    sizes = [rows for _, rows in locks.asked]
    assert sizes[0] == CHUNK_ROWS_FIRST
    assert sizes == sorted(sizes)
    assert sizes[-1] == CHUNK_ROWS_MOST


@pytest.mark.parametrize("took", [CHUNK_SECONDS, CHUNK_SECONDS * 10])
def test_slow_chunks_shrink_to_the_smallest(tmp_path, steps, took):
    steps.took = [took]
    locks = Locks(rows=400)
    sweeper(tmp_path, locks, Windows()).sweep()
    sizes = [rows for _, rows in locks.asked]
    assert sizes[0] == CHUNK_ROWS_FIRST
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == CHUNK_ROWS_LEAST


def test_between_chunks_requests_have_three_times_the_time_that_the_last_one_took(tmp_path, steps):
    steps.took = [0.25, 0.5, 0.125, 0.0]
    sweeper(tmp_path, Locks(rows=100 + 50 + 25), Windows()).sweep()
    assert steps.pauses == [0.75, 1.5, 0.375]


def test_a_chunk_is_planned_to_hold_requests_up_for_less_than_50_ms():
    assert CHUNK_SECONDS < 0.05
    assert 0 < CHUNK_ROWS_LEAST < CHUNK_ROWS_FIRST < CHUNK_ROWS_MOST


@pytest.mark.parametrize("reason", ["full", "failing"])
def test_on_a_full_disk_the_reserve_is_given_back_and_a_small_chunk_tried(tmp_path, reason):
    (tmp_path / "locks.reserve").write_bytes(b"x")
    locks = Locks(30, StoreUnavailable(reason))
    assert sweeper(tmp_path, locks, Windows()).sweep().leases == 30
    assert not (tmp_path / "locks.reserve").exists()
    assert all(rows <= CHUNK_ROWS_FIRST for _, rows in locks.asked[:2])


def test_a_disk_that_stays_full_ends_the_sweep(tmp_path):
    locks = Locks(30, StoreUnavailable("full"), StoreUnavailable("full"))
    with pytest.raises(StoreUnavailable):
        sweeper(tmp_path, locks, Windows()).sweep()
    assert len(locks.asked) == 2


@pytest.mark.parametrize("reason", ["busy", "corrupt", "missing", "read-only", "unreadable", "not-owner"])
def test_another_fault_leaves_the_reserve_alone(tmp_path, reason):
    (tmp_path / "locks.reserve").write_bytes(b"x")
    locks = Locks(30, StoreUnavailable(reason))
    with pytest.raises(StoreUnavailable):
        sweeper(tmp_path, locks, Windows()).sweep()
    assert (tmp_path / "locks.reserve").exists()
    assert len(locks.asked) == 1


@pytest.mark.parametrize("place", ["missing", "file"])
def test_a_folder_that_cannot_be_used_is_an_error_of_the_system(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=place) as error:
        sweeper(tmp_path / place, Locks(), Windows()).sweep()
    assert error.value.filename.startswith(str(tmp_path / place))
