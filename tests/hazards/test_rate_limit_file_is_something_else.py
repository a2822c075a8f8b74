"""What lies at a window's path is not the service's own file, or cannot be had in time.

Then nothing is counted, nothing is touched and the caller is told so by RateLimitUnavailable: it decides whether the
request passes. One thing is no fault: a file that the sweeper unlinked meanwhile is opened anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.errors import RateLimitUnavailable
from app.file_rate_limits import FileRateLimitStorage
from tests.clocks import ManualClock
from tests.parts import requires

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def never_for_ever():
    """A hit that blocks in open, read or flock fails its test instead of stopping the run."""

    def give_up(number: int, frame: object) -> None:
        pytest.fail("a hit was blocked")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def storage(tmp_path, clock) -> FileRateLimitStorage:
    return FileRateLimitStorage(str(tmp_path), clock)


@pytest.fixture
def path(tmp_path) -> Path:
    return window_file(tmp_path)


def window_file(folder: Path, key: str = "k") -> Path:
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_a_symlink_is_not_followed(storage, path, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path.symlink_to(victim)

    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)

    assert victim.read_bytes() == b"precious"
    assert path.is_symlink()


def test_a_dangling_symlink_makes_no_file(storage, path, tmp_path):
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)

    assert not (tmp_path / "elsewhere").exists()


def test_a_fifo_is_refused_and_does_not_block(storage, path):
    os.mkfifo(path)

    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)

    assert stat.S_ISFIFO(path.lstat().st_mode)


def test_a_folder_is_refused(storage, path):
    path.mkdir()

    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)

    assert path.is_dir()


def test_a_device_is_refused(storage, path):
    """The null device takes every write and stays empty: each hit would be the first."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        requires(False, "root, to make a device file")

    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)


def test_a_hard_link_is_refused_and_its_other_name_stays_whole(storage, path, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    os.link(victim, path)

    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)

    assert victim.read_bytes() == b"precious"


def test_a_file_of_another_owner_is_refused_and_stays_whole(open_folder, unprivileged, clock):
    requires(os.geteuid() == 0, "root, to make a file that belongs to another user")
    path = window_file(open_folder)
    path.write_bytes(b"precious")
    path.chmod(0o666)

    with unprivileged(), pytest.raises(RateLimitUnavailable):
        FileRateLimitStorage(str(open_folder), clock).hit("k", 60)

    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o200])
def test_a_file_without_permission_is_refused(open_folder, unprivileged, clock, mode):
    path = window_file(open_folder)
    with unprivileged():
        storage = FileRateLimitStorage(str(open_folder), clock)
        storage.hit("k", 60)
        path.chmod(mode)

        with pytest.raises(RateLimitUnavailable):
            storage.hit("k", 60)

        path.chmod(0o600)
        assert storage.hit("k", 60)[0] == 2


def test_a_folder_without_permission_is_refused(open_folder, unprivileged, clock):
    with unprivileged():
        storage = FileRateLimitStorage(str(open_folder), clock)
        open_folder.chmod(0o500)

        with pytest.raises(RateLimitUnavailable):
            storage.hit("k", 60)

        open_folder.chmod(0o700)


def test_a_folder_that_is_a_file_is_refused(tmp_path, clock):
    (tmp_path / "rate-limits").write_bytes(b"")

    with pytest.raises(RateLimitUnavailable):
        FileRateLimitStorage(str(tmp_path / "rate-limits"), clock).hit("k", 60)


def test_a_lock_that_another_process_holds_beyond_the_budget_is_refused_and_nothing_is_counted(storage, path):
    storage.hit("k", 60)
    before = path.read_bytes()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with holder:
        assert holder.stdout.readline() == b"locked\n"

        with pytest.raises(RateLimitUnavailable):
            storage.hit("k", 60)
        assert storage.hit("another key", 60)[0] == 1

        holder.stdin.close()

    assert path.read_bytes() == before
    assert storage.hit("k", 60)[0] == 2


@pytest.mark.parametrize("replaced", [False, True], ids=["unlinked", "replaced"])
def test_a_file_that_vanishes_between_open_and_lock_is_opened_anew(storage, path, tmp_path, replaced):
    """A count written into a file without a name is lost: the next hit would start at 1 again."""
    counted = None
    while counted is None:
        path.unlink(missing_ok=True)
        storage.hit("k", 60)
        counted = hit_of_a_file_that_vanishes(storage, path, tmp_path / "other", replaced)

    assert counted == (2 if replaced else 1)
    assert json.loads(path.read_bytes())["count"] == counted
    assert storage.hit("k", 60)[0] == counted + 1


def hit_of_a_file_that_vanishes(storage: FileRateLimitStorage, path: Path, other: Path, replaced: bool) -> int | None:
    """Return the count, or None where the hit could not be scheduled within its budget."""
    counts: list[int] = []

    def hit() -> None:
        with contextlib.suppress(RateLimitUnavailable):
            counts.append(storage.hit("k", 60)[0])

    other.write_bytes(path.read_bytes())
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        thread = threading.Thread(target=hit)
        thread.start()
        while descriptors_of(file.fileno()) < 2 and thread.is_alive():
            pass
        if replaced:
            other.replace(path)
        else:
            path.unlink()
    thread.join()
    return counts[0] if counts else None


def descriptors_of(descriptor: int) -> int:
    """How many descriptors of this process are open on the same file."""
    wanted = os.fstat(descriptor)
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.path.samestat(os.stat(f"/proc/self/fd/{name}"), wanted)
        except FileNotFoundError:
            continue
    return found


def test_no_outcome_leaves_a_descriptor_open(storage, path, tmp_path):
    storage.hit("warm-up", 60)
    before = open_descriptors()

    storage.hit("k", 60)
    storage.hit("k", 60)
    os.link(path, tmp_path / "second name")
    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)
    path.unlink()
    path.mkdir()
    with pytest.raises(RateLimitUnavailable):
        storage.hit("k", 60)
    path.rmdir()
    with (tmp_path / "second name").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.replace(tmp_path / "second name", path)
        with pytest.raises(RateLimitUnavailable):
            storage.hit("k", 60)

    assert open_descriptors() == before


def test_over_the_limit_nothing_is_written(storage, path):
    """An attacker must not cost the disk a write for every refused request."""
    for _ in range(3):
        storage.hit("k", 60, ceiling=3)
    os.utime(path, ns=(1, 1))

    for _ in range(5):
        storage.hit("k", 60, ceiling=3)

    assert path.stat().st_mtime_ns == 1


def test_a_write_that_is_cut_short_is_no_count(tmp_path):
    """Some quotas let a part of a write through; the half record would be a new window on every hit, for ever."""
    code = (
        "import resource, signal, sys\n"
        "from app.errors import RateLimitUnavailable\n"
        "from app.file_rate_limits import FileRateLimitStorage\n"
        "from tests.clocks import ManualClock\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try:\n"
        "    answer = FileRateLimitStorage(sys.argv[1], ManualClock()).hit('k', 60)\n"
        "except RateLimitUnavailable:\n"
        "    answer = 'refused'\n"
        "sys.stdout.write(str(answer))\n"
    )
    root = Path(__file__).resolve().parents[2]

    answer = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, capture_output=True, timeout=30)

    assert (answer.stdout, answer.stderr) == (b"refused", b"")


def test_umask_zero_does_not_widen_the_files_mode(tmp_path, clock):
    before = os.umask(0)
    try:
        FileRateLimitStorage(str(tmp_path), clock).hit("k", 60)
    finally:
        os.umask(before)

    assert stat.S_IMODE(window_file(tmp_path).stat().st_mode) == 0o600


def test_the_path_is_read_once_the_key_is_hashed(storage, tmp_path):
    """Nothing that a client chose reaches the file system as a name."""
    storage.hit("../../../../etc/passwd", 60)
    storage.hit("/absolute", 60)
    storage.hit("a/b\0c", 60)

    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * 3
    assert all(len(path.stem) == 64 and set(path.stem) <= set("0123456789abcdef") for path in tmp_path.iterdir())


def test_the_clock_of_another_start_does_not_matter(tmp_path):
    """Each request is a process of its own; nothing of a window may live in the storage object."""
    clock = ManualClock()

    assert [FileRateLimitStorage(str(tmp_path), clock).hit("k", 60)[0] for _ in range(4)] == [1, 2, 3, 4]
