"""The service lies compiled in one file in var/. What runs is what was uploaded last, whatever becomes of that file.

The real script answers; the web server is left out.
"""

from __future__ import annotations

import marshal
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.lane import HOT, lane_path
from tests.hosting.direct import Run, run_script
from tests.hosting.machine import SYSTEM_PYTHON, python
from tests.hosting.trees import PROJECT, copy_libraries, copy_project, edit
from tests.parts import requires

THIS_PYTHON = [sys.executable, "-IS"]
MODULES = sorted(path.name for path in (PROJECT / "app").glob("*.py"))
HOT_FILES = ["__init__.py" if name == "app" else f"{name[4:]}.py" for name in HOT]
HOLDER = {"owner": "alice", "ttl_seconds": 60}


@pytest.fixture
def root(tmp_path) -> Path:
    """A project as it has been uploaded."""
    root = copy_project(tmp_path / "project")
    (root / "var").chmod(0o700)
    return root


def ask(
    root: Path, method: str = "GET", target: str = "/", body: object = None, python: list[str] | None = None
) -> Run:
    return run_script(root, python or THIS_PYTHON, method, target, body)


def works(root: Path, python: list[str] | None = None) -> None:
    """A lock can be had, without a word in the error log."""
    run = ask(root, "POST", "/locks/x", HOLDER, python)
    assert (run.answer.status, run.log) == (200, ""), (run.answer, run.log)
    assert run.answer.json()["acquired"] is True


def lane_file(root: Path) -> Path:
    """The file of compiled code."""
    [path] = (root / "var" / "pycache").glob("lane-*")
    return path


def replace(path: Path, old: str, new: str) -> None:
    """Change a text as an upload in the same second does that leaves the size, and sets the time, as they were."""
    assert len(old.encode()) == len(new.encode())
    before = path.stat()
    upload = path.with_suffix(".upload")
    shutil.copy2(path, upload)
    edit(upload, old, new)
    os.utime(upload, ns=(before.st_atime_ns, before.st_mtime_ns))
    upload.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def no_bytecode_elsewhere(root: Path) -> None:
    assert not [*(root / "app").rglob("*.pyc"), *(root / "public_html").rglob("*.pyc")]


# Fresh


def test_the_lane_is_compiled_once_and_for_the_user_alone(root):
    works(root)
    before = lane_file(root).stat()
    works(root)
    ask(root, "GET", "/nope")
    after = lane_file(root).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    for path in (lane_file(root), lane_file(root).parent):
        assert path.stat().st_mode & 0o7777 == (0o700 if path.is_dir() else 0o600), path
    no_bytecode_elsewhere(root)


@pytest.mark.parametrize(
    ("file", "old", "new", "target"),
    [
        ("__init__.py", "0.1.0", "0.9.9", "/health"),
        ("overview.py", '"status": "ok"', '"status": "OK"', "/health"),
        ("response.py", "no-store", "no-stare", "/nope"),
        ("errors.py", "No such page.", "No such Page.", "/nope"),
        ("problems.py", "Owner mismatch.", "Owner Mismatch.", "/problems/forbidden"),
        ("sqlite_locks.py", "ORDER BY resource LIMIT", "ORDER BY no_place LIMIT", "/locks"),
    ],
)
@pytest.mark.parametrize("in_place", [False, True], ids=["renamed into place", "written over"])
def test_a_file_of_the_same_size_and_time_is_run_at_the_next_request(root, file, old, new, target, in_place):
    before = answer_at(root, target)
    path = root / "app" / file
    if in_place:
        stat = path.stat()
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    else:
        replace(path, old, new)
    changed = answer_at(root, target)
    assert changed != before
    assert answer_at(root, target) == changed
    no_bytecode_elsewhere(root)


def answer_at(root: Path, target: str) -> tuple[int, set[tuple[str, str]], bytes]:
    answer = ask(root, "GET", target).answer
    return answer.status, {header for header in answer.headers if not header[0].startswith("RateLimit")}, answer.body


@pytest.mark.parametrize("file", ["lane.py", *HOT_FILES])
def test_a_change_of_any_file_of_the_lane_is_compiled_at_the_next_request(root, file):
    works(root)
    before = lane_file(root).stat().st_mtime_ns
    path = root / "app" / file
    path.write_text(path.read_text().rstrip("\n") + "\n\n")
    works(root)
    assert lane_file(root).stat().st_mtime_ns != before
    works(root)


@pytest.mark.parametrize("file", MODULES)
def test_a_change_of_any_other_file_does_no_harm(root, file):
    works(root)
    path = root / "app" / file
    path.write_text(path.read_text() + "# changed\n")
    for _ in range(2):
        works(root)
        for method, target, body, status in (
            ("GET", "/locks/none", None, 404),
            ("POST", "/locks/x", {}, 422),
            ("DELETE", "/locks/x", {"owner": "alice"}, 204),
            ("GET", "/health", None, 200),
        ):
            run = ask(root, method, target, body)
            assert (run.answer.status, run.log) == (status, ""), run.answer
    no_bytecode_elsewhere(root)


def test_a_module_that_is_loaded_late_is_noticed_by_many_requests_at_once(root):
    """The compiled code is taken away by one of them, and the others find it gone."""
    works(root)
    (root / "app" / "problems.py").touch()
    statuses = []
    threads = [
        threading.Thread(target=lambda: statuses.append(ask(root, "GET", "/nope").answer.status)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [404] * 8


def test_a_browser_that_comes_first_leaves_no_bytecode_in_the_folder_of_the_code(root):
    """A page loads more of the service, and Flask, whose bytecode is kept in var/ too."""
    copy_libraries(root / "vendor")
    for _ in range(2):
        run = run_script(root, THIS_PYTHON, target="/", headers={"Accept": "text/html"})
        assert (run.answer.status, run.answer.media_type, run.log) == (200, "text/html", "")
    no_bytecode_elsewhere(root)
    assert not list((root / "vendor").rglob("*.pyc"))
    assert list((root / "var" / "pycache").rglob("flask/app.*.pyc"))


# Broken


class Compiled:
    """A project with its file of compiled code."""

    def __init__(self, folder: Path) -> None:
        self.root = copy_project(folder / "project")
        (self.root / "var").chmod(0o700)
        works(self.root)
        self.path = lane_file(self.root)
        self.whole = self.path.read_bytes()

    def does_no_harm(self, damaged: bytes) -> None:
        """With a damaged file all is answered, and where the damage is met, it is mended for the requests after it."""
        self.path.write_bytes(damaged)
        try:
            for _ in range(2):
                works(self.root)
                for target, status in (("/nope", 404), ("/locks", 200)):
                    run = ask(self.root, "GET", target)
                    assert (run.answer.status, run.log) == (status, ""), run.answer
            works(self.root)
            mended = self.path.read_bytes()
            assert ask(self.root, "GET", "/nope").answer.status == 404
            assert self.path.read_bytes() == mended
        finally:
            self.path.write_bytes(self.whole)

    def is_mended(self, damaged: bytes) -> None:
        """The same for damage that every request meets."""
        self.does_no_harm(damaged)
        self.path.write_bytes(damaged)
        try:
            works(self.root)
            assert self.path.read_bytes() != damaged
        finally:
            self.path.write_bytes(self.whole)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return Compiled(tmp_path_factory.mktemp("compiled"))


@pytest.mark.parametrize("share", [0, 0.00001, 0.0001, 0.1, 0.3])
def test_a_file_that_is_cut_off_is_made_anew(compiled, share):
    compiled.is_mended(compiled.whole[: round(share * len(compiled.whole))])


@pytest.mark.parametrize("share", [0.5, 0.6, 0.7, 0.8, 0.9, 0.999])
def test_a_file_without_its_end_does_no_harm(compiled, share):
    compiled.does_no_harm(compiled.whole[: round(share * len(compiled.whole))])


@pytest.mark.parametrize("seed", range(5))
def test_a_file_of_garbage_is_made_anew(compiled, seed):
    chance = random.Random(seed)
    compiled.is_mended(bytes(chance.randrange(256) for _ in range(2000)))


@pytest.mark.parametrize("frame", [b"", b"%08d", b"99999999", b"-0000001"], ids=ascii)
@pytest.mark.parametrize(
    "content", [None, 7, b"", (), (1, 2), ([], {}), ([((), 1)], {}), (1, 2, 3), "abc", {"lane": 1}], ids=repr
)
def test_a_file_of_another_layout_is_made_anew(compiled, content, frame):
    """That of an older release, whose script and lane agreed on something else."""
    raw = marshal.dumps(content)
    compiled.is_mended((frame % len(raw) if b"%" in frame else frame) + raw)


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_each_python_has_a_file_of_its_own(compiled, version):
    other = [python(version), "-IS"]
    works(compiled.root)
    for _ in range(2):
        before = compiled.path.stat().st_mtime_ns
        works(compiled.root, other)
        works(compiled.root)
        if version != f"{sys.version_info[0]}.{sys.version_info[1]}":
            assert compiled.path.stat().st_mtime_ns == before


# Not to be written


def test_without_a_folder_for_it_requests_are_answered(root):
    (root / "var" / "pycache").write_bytes(b"")
    works(root)
    works(root)
    no_bytecode_elsewhere(root)


def test_a_folder_in_its_place_is_no_hindrance(root):
    works(root)
    path = lane_file(root)
    path.unlink()
    path.mkdir()
    works(root)
    works(root)


@pytest.fixture
def as_nobody(open_folder):
    """A project, and the Python that runs it as a user whom the modes of files bind."""
    requires(SYSTEM_PYTHON.exists(), f"{SYSTEM_PYTHON}, to run the script as another user")
    root = copy_project(open_folder / "project")
    (root / "var").chmod(0o700)
    command = [str(SYSTEM_PYTHON), "-IS"]
    if os.geteuid() == 0:
        requires(shutil.which("setpriv"), "setpriv (the package util-linux)")
        os.chown(root / "var", 65534, 65534)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    return root, command


def test_code_that_cannot_be_written_is_run(as_nobody):
    root, command = as_nobody
    for folder in ("app", "public_html"):
        (root / folder).chmod(0o555)
    works(root, command)
    works(root, command)
    assert lane_file(root).exists()
    no_bytecode_elsewhere(root)


def test_where_the_compiled_code_cannot_be_written_requests_are_answered(as_nobody):
    root, command = as_nobody
    (root / "var" / "pycache").mkdir(0o755)
    (root / "var" / "pycache").chmod(0o555)
    works(root, command)
    works(root, command)
    assert not list((root / "var" / "pycache").iterdir())
    no_bytecode_elsewhere(root)


@pytest.mark.parametrize("file", ["problems.py", "response.py", "sqlite_locks.py", "lane.py", "startup.py"])
def test_where_old_compiled_code_cannot_be_taken_away_requests_are_answered(as_nobody, file):
    root, command = as_nobody
    works(root, command)
    (root / "var" / "pycache").chmod(0o555)
    if os.geteuid() == 0:
        os.chown(root / "var" / "pycache", 0, 0)
    path = root / "app" / file
    path.write_text(path.read_text() + "# changed\n")
    for _ in range(2):
        works(root, command)
        run = ask(root, "GET", "/nope", python=command)
        assert (run.answer.status, run.log) == (404, "")


def test_where_nothing_can_be_written_the_store_says_so(as_nobody):
    root, command = as_nobody
    (root / "var").chmod(0o555)
    if os.geteuid() == 0:
        os.chown(root / "var", 0, 0)
    for _ in range(2):
        assert ask(root, "POST", "/locks/x", HOLDER, command).answer.status == 503
        assert ask(root, "GET", "/nope", python=command).answer.status == 404


# Made by two, or half


def test_first_requests_that_come_at_once_are_all_answered(root):
    answers = []
    threads = [
        threading.Thread(target=lambda number=number: answers.append(ask(root, "POST", f"/locks/{number}", HOLDER)))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(run.answer.status, run.log) for run in answers] == [(200, "")] * 6
    before = lane_file(root).stat().st_mtime_ns
    works(root)
    assert lane_file(root).stat().st_mtime_ns == before


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_process_killed_while_it_writes_the_file_leaves_nothing_that_is_run(root, share):
    file = root / "app" / "startup.py"
    whole = file.read_text()
    kill = (
        f"file.write(content[: round({share} * len(content))]), file.flush(), os.kill(os.getpid(), {signal.SIGKILL:d})"
    )
    edit(file, "file.write(content)", kill)
    with pytest.raises(AssertionError, match="no headers in b''"):
        ask(root)
    file.write_text(whole)
    assert not Path(lane_path(str(root))).exists()
    works(root)
    works(root)


def test_a_request_killed_at_any_moment_of_the_first_start_harms_no_later_one(root):
    chance = random.Random(5)
    environ = {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "GET", "REQUEST_URI": "/", "PATH": "/usr/bin:/bin"}
    for _ in range(8):
        shutil.rmtree(root / "var" / "pycache", ignore_errors=True)
        process = subprocess.Popen(
            [*THIS_PYTHON, "index.cgi"],
            cwd=root / "public_html",
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(chance.random() / 8)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        works(root)


# A file that is no Python


FAULTY = {"a NUL": b"WORD = '\0'\n", "Latin-1": b"WORD = '\xff'\n", "half a file": b'"""Half a file.\n'}
FAULTS = [(file, "a syntax error", b"def broken(:\n") for file in MODULES]
FAULTS += [(file, *fault) for file in ("__init__.py", "lane.py", "problems.py") for fault in FAULTY.items()]


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled before", "never compiled"])
@pytest.mark.parametrize(("file", "fault", "text"), FAULTS, ids=[f"{file}, {fault}" for file, fault, _ in FAULTS])
def test_a_faulty_file_is_told_readably_and_cured_by_the_next_upload(root, file, fault, text, is_compiled):
    if is_compiled:
        works(root)
    path = root / "app" / file
    whole = path.read_bytes()
    path.write_bytes(text)
    for method, target in (("GET", "/health"), ("GET", "/nope"), ("HEAD", "/nope")):
        run = ask(root, method, target)
        # Files that such a request does not need may be broken without anybody noticing.
        assert run.answer.status in (200, 404, 500), run.answer
        if run.answer.status == 500:
            assert run.answer.media_type == "application/problem+json"
            assert method == "HEAD" or run.answer.slug == "internal-error"
            assert "Error" in run.log
            assert str(root) not in run.answer.text()
    path.write_bytes(whole)
    works(root)
    assert ask(root, "GET", "/nope").answer.status == 404
    no_bytecode_elsewhere(root)


@pytest.mark.parametrize("name", ["._api.py", ".#api.py", "api (1).py", "api.old.py", "notes.py"])
def test_a_file_in_the_folder_that_is_no_part_of_the_service_is_no_hindrance(root, name):
    """Such as macOS, editors and FTP programs leave."""
    stray = root / "app" / name
    if name.startswith(".#"):
        stray.symlink_to("nobody@nowhere.1234")
    else:
        stray.write_bytes(b"\0\x05\x16\x07\0Mac OS X (:")
    works(root)
    works(root)
    assert lane_file(root).exists()


@pytest.mark.parametrize("share", [0.06, 0.3, 0.6, 0.8, 0.99])
def test_damage_that_keeps_the_size_of_the_file_is_run_by_nobody(compiled, share):
    """As a power cut leaves it: zeros from some place on. Python can crash on such code."""
    whole = compiled.path.read_bytes()
    place = int(len(whole) * share)
    compiled.path.write_bytes(whole[:place] + bytes(len(whole) - place))
    works(compiled.root)
    works(compiled.root)
