"""The lines for the web server's error log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import log

ROOT = Path(log.__file__).parents[1]
NOW = 1_796_097_906.123
#: a traceback shows the lines of the source, so the word stands in a line of its own
SECRET = "hunter2"


@pytest.fixture
def stamp(tmp_path):
    return tmp_path / "rate-limits.fault"


@pytest.fixture
def written(capsys):
    """Return a function that gives what was written to standard error since it was called last."""

    def read() -> str:
        out, err = capsys.readouterr()
        assert out == ""
        return err

    return read


@pytest.fixture
def clock(monkeypatch):
    """Return a function that sets what the module takes for the present."""

    def show(now: float) -> None:
        monkeypatch.setattr(log, "time", lambda: now)

    show(NOW)
    return show


def test_a_line_is_one_line_with_the_name_of_the_service(written):
    log.line("lock store full: disk I/O error")
    assert written() == "kannuki: lock store full: disk I/O error\n"


def test_a_line_can_hold_anything_that_a_name_can(written):
    log.line("\ud800 \U0001f512")
    assert written().count("\n") <= 1


ENDS_OF_STDERR = {
    "none": "sys.stderr = None",
    "closed": "sys.stderr.close()",
    "closed below": "os.close(2)",
    "its reader is gone": "r, w = os.pipe(); os.dup2(w, 2); os.close(w); os.close(r)",
    "on a full disk": "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
    "open for reading": "os.dup2(os.open('/dev/null', os.O_RDONLY), 2)",
    "of another encoding": "sys.stderr.reconfigure(encoding='ascii', errors='strict')",
}


@pytest.mark.parametrize("end", ENDS_OF_STDERR.values(), ids=ENDS_OF_STDERR.keys())
def test_a_line_that_cannot_be_written_does_no_harm(end, tmp_path):
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from app import log\n"
        f"{end}\n"
        "log.line('one \\u00e9')\n"
        "log.line_once_a_minute(sys.argv[1], 'two')\n"
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    log.failure(error)\n"
        "os.write(1, b'the answer')\n"
        "os._exit(0)\n"
    )
    run = subprocess.run(
        [sys.executable, "-ISB", "-c", program, str(tmp_path / "stamp")], capture_output=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, b"the answer")
    assert b"Traceback" not in run.stderr


# Once a minute


def test_a_repeated_line_is_written_once_a_minute(stamp, written, clock):
    for now, lines in [(NOW, 1), (NOW + 1, 0), (NOW + 59, 0), (NOW + 61, 1)]:
        clock(now)
        log.line_once_a_minute(str(stamp), "not counted")
        assert written() == "kannuki: not counted\n" * lines
        if lines:
            os.utime(stamp, (now, now))


@pytest.mark.parametrize(
    ("age_seconds", "lines"),
    [(0, 0), (0.5, 0), (59.5, 0), (60, 1), (60.5, 1), (10**6, 1), (-0.5, 1), (-3600, 1), (-(10**9), 1)],
)
def test_a_line_is_held_back_by_a_stamp_of_the_last_minute_and_not_by_one_from_the_future(
    stamp, written, clock, age_seconds, lines
):
    stamp.touch()
    os.utime(stamp, (NOW - age_seconds, NOW - age_seconds))
    before = stamp.stat().st_mtime
    log.line_once_a_minute(str(stamp), "not counted")
    assert written() == "kannuki: not counted\n" * lines
    assert (stamp.stat().st_mtime != before) is bool(lines)


def test_the_stamp_is_an_empty_file_for_its_owner_alone(stamp, clock):
    before = os.umask(0)
    try:
        log.line_once_a_minute(str(stamp), "not counted, ip:192.0.2.1")
    finally:
        os.umask(before)
    assert stamp.stat().st_mode & 0o777 == 0o600
    assert stamp.read_bytes() == b""


def test_other_lines_and_other_stamps_are_not_held_back(stamp, written, clock):
    log.line_once_a_minute(str(stamp), "one")
    log.line("two")
    log.line_once_a_minute(str(stamp) + ".other", "three")
    assert written() == "kannuki: one\nkannuki: two\nkannuki: three\n"


def test_another_process_is_held_back_too(stamp):
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from app import log; log.line_once_a_minute(sys.argv[1], 'not counted')"
    )
    lines = []
    for _ in range(3):
        run = subprocess.run([sys.executable, "-ISB", "-c", program, str(stamp)], capture_output=True, check=True)
        lines.append(run.stderr)
    assert lines == [b"kannuki: not counted\n", b"", b""]


@pytest.mark.parametrize("place", ["missing/stamp", "file/stamp", "folder"])
def test_where_no_stamp_can_be_had_every_line_is_written(tmp_path, written, clock, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.utime(tmp_path / "folder", (NOW - 3600, NOW - 3600))
    for _ in range(2):
        log.line_once_a_minute(str(tmp_path / place), "not counted")
        assert written() == "kannuki: not counted\n"


# Failures


def fail(text: str) -> None:
    raise KeyError(text)


def test_a_failure_is_written_with_its_traceback_and_without_its_message(written):
    try:
        fail(SECRET)
    except KeyError as error:
        log.failure(error)
    lines = written()
    assert lines.startswith("kannuki: internal error, KeyError, at\n")
    assert ", in fail\n" in lines
    assert Path(__file__).name in lines
    assert SECRET not in lines
    assert lines.endswith("\n")
    assert not lines.endswith("\n\n")


def test_a_failure_that_another_caused_tells_neither_message(written):
    try:
        try:
            fail(SECRET)
        except KeyError as error:
            raise ValueError(SECRET) from error
    except ValueError as error:
        log.failure(error)
    lines = written()
    assert "ValueError" in lines
    assert SECRET not in lines


def test_a_failure_that_was_never_raised_is_written_by_its_kind(written):
    log.failure(OSError(SECRET))
    lines = written()
    assert lines.startswith("kannuki: internal error, OSError")
    assert SECRET not in lines
