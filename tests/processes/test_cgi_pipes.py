"""What the script does with its standard input and output, which pipes of a web server are."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from app.clock import SystemClock
from app.sqlite_locks import SqliteLockStore
from tests.doors import Answer, read_cgi_answer
from tests.hosting.direct import cgi_variables, run_script
from tests.hosting.trees import copy_libraries, edit, share_waits_for_the_answer

INTERPRETER = [sys.executable, "-IS"]
HOLDER = b'{"owner": "alice", "ttl_seconds": 600}'
BIG = HOLDER + b" " * 200_000
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BROWSER = {"Accept": "text/html"}
CONFIG = 'RATE_LIMITS = {"hold": (1, 3600)}\n'
WAIT_SECONDS = 60


@pytest.fixture(scope="module")
def vendor(tmp_path_factory) -> Path:
    return copy_libraries(tmp_path_factory.mktemp("libraries") / "vendor")


@pytest.fixture
def site(installation, vendor) -> Path:
    """An installation that has answered before, with Flask, and with one renewal an hour."""
    (installation / "vendor").symlink_to(vendor)
    (installation / "var" / "config.py").write_text(CONFIG)
    assert run_script(installation, INTERPRETER, "POST", "/locks/held", HOLDER).answer.status == 200
    assert run_script(installation, INTERPRETER, "POST", "/locks/held/renew", HOLDER).answer.status == 200
    return installation


#: (method, target, headers, status)
ON_EVERY_PATH = [
    ("POST", "/locks/x", {}, 413),
    ("POST", "/locks/held/renew", {}, 429),
    ("POST", "/locks/x", FORM, 415),
    ("POST", "/nope", {}, 404),
    ("DELETE", "/nope", {}, 404),
    ("PUT", "/locks/x", {}, 405),
    ("POST", "/health", {}, 405),
    ("GET", "/health", {}, 200),
    ("GET", "/locks/held", {}, 200),
    ("HEAD", "/locks/held", {}, 200),
    ("OPTIONS", "/locks/x", {}, 204),
    ("POST", "/nope", BROWSER, 404),
    ("PUT", "/locks/x", BROWSER, 405),
    ("GET", "/", BROWSER, 200),
]


def start(root: Path, variables: dict[str, str], **pipes: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*INTERPRETER, "index.cgi"],
        cwd=root / "public_html",
        env=variables,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes},
    )


class Sender(threading.Thread):
    """Writes a body into a pipe as a web server does, however much of it the pipe holds."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.read_end, self._write_end = os.pipe()
        self._body = body
        self.start()

    def run(self) -> None:
        with open(self._write_end, "wb") as pipe:
            pipe.write(self._body)

    def unread(self) -> int:
        """Return how many bytes nobody has read, and read them."""
        with open(self.read_end, "rb") as pipe:
            rest = len(pipe.read())
        self.join()
        return rest


def ask(root: Path, variables: dict[str, str], body: bytes, log: str = "") -> Answer:
    """Return the answer to a request whose body is taken off the server's hands to its end."""
    sender = Sender(body)
    with start(root, variables, stdin=sender.read_end) as script:
        output, errors = script.communicate(timeout=WAIT_SECONDS)
    assert sender.unread() == 0, "the server would lose the answer"
    assert script.returncode == 0
    if log:
        assert log in errors.decode()
    else:
        assert errors == b""
    return read_cgi_answer(output)


@pytest.mark.parametrize("length", [str(len(BIG)), None], ids=["length told", "length unknown"])
@pytest.mark.parametrize(
    ("method", "target", "headers", "status"),
    ON_EVERY_PATH,
    ids=[
        f"{method} {target} {status}{' for a browser' * (headers is BROWSER)}"
        for method, target, headers, status in ON_EVERY_PATH
    ],
)
def test_the_body_is_read_to_its_end_whatever_the_answer_is(site, method, target, headers, status, length):
    variables = {**cgi_variables(method, target, BIG, headers), "CONTENT_LENGTH": length or ""}
    assert ask(site, variables, BIG).status == status


def settings_that_are_not_acceptable(root: Path) -> None:
    (root / "var" / "config.py").write_text("NONSENSE = 1\n")


def a_store_that_is_lost(root: Path) -> None:
    (root / "var" / "locks.sqlite3").unlink()


def code_that_does_not_start(root: Path) -> None:
    (root / "app" / "bootstrap.py").write_text("raise RuntimeError\n")


def code_that_cannot_be_compiled(root: Path) -> None:
    (root / "app" / "api.py").write_text("def broken(:\n")


def a_start_that_cannot_be_compiled(root: Path) -> None:
    (root / "app" / "startup.py").write_text("def broken(:\n")
    shutil.rmtree(root / "var" / "pycache")


def no_app(root: Path) -> None:
    shutil.rmtree(root / "app")


def no_flask(root: Path) -> None:
    (root / "vendor").unlink()
    (root / "vendor").mkdir()
    (root / "vendor" / "flask").mkdir()
    (root / "vendor" / "flask" / "__init__.py").write_text("raise ModuleNotFoundError('No Flask', name='flask')\n")


@pytest.mark.parametrize(
    ("spoil", "headers", "status", "log"),
    [
        (settings_that_are_not_acceptable, {}, 503, "NONSENSE"),
        (settings_that_are_not_acceptable, BROWSER, 503, "NONSENSE"),
        (a_store_that_is_lost, {}, 503, "missing"),
        (code_that_does_not_start, {}, 500, "RuntimeError"),
        (code_that_does_not_start, BROWSER, 500, "RuntimeError"),
        (code_that_cannot_be_compiled, {}, 500, "SyntaxError"),
        (a_start_that_cannot_be_compiled, {}, 500, "SyntaxError"),
        (no_app, {}, 500, "app"),
        (no_flask, BROWSER, 500, "flask"),
    ],
    ids=lambda value: "browser" if value is BROWSER else getattr(value, "__name__", str(value)),
)
def test_the_body_is_read_to_its_end_where_nothing_works(site, spoil, headers, status, log):
    spoil(site)
    assert ask(site, cgi_variables("GET", "/locks/x", BIG, headers), BIG, log).status == status


def pieces(root: Path, variables: dict[str, str], body: bytes) -> list[bytes]:
    """Return what the script wrote, one item for each system call."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sender = Sender(body)
    with here, start(root, variables, stdin=sender.read_end, stdout=there) as script:
        there.close()
        here.settimeout(WAIT_SECONDS)
        found = []
        while True:
            piece = here.recv(1_000_000)
            if not piece:
                break
            found.append(piece)
        assert script.stderr is not None
        assert script.stderr.read() == b""
    assert sender.unread() == 0
    return found


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("POST", "/locks/new", HOLDER, 200),
        ("GET", "/locks/held", b"", 200),
        ("GET", "/locks", b"", 200),
        ("HEAD", "/locks/held", b"", 200),
        ("DELETE", "/locks/none", HOLDER, 429),
        ("GET", "/locks/none", b"", 404),
        ("POST", "/locks/new", b"{}", 422),
        ("OPTIONS", "/locks", b"", 204),
    ],
)
def test_an_answer_is_one_system_call(site, method, target, body, status):
    """So that it is whole or not there where the process is killed, and costs one change of processes."""
    if target == "/locks":
        store = SqliteLockStore(str(site / "var"), SystemClock())
        for number in range(300):
            store.acquire(f"n{number}", "alice", 600)
    [answer] = pieces(site, cgi_variables(method, target, body), body)
    assert read_cgi_answer(answer).status == status


@pytest.mark.parametrize("headers", [{}, BROWSER], ids=["machine", "browser"])
@pytest.mark.parametrize(("method", "target"), [("POST", "/locks/after"), ("GET", "/locks/held"), ("GET", "/nope")])
def test_a_client_that_is_gone_is_no_fault(site, method, target, headers):
    read_end, write_end = os.pipe()
    os.close(read_end)
    sender = Sender(HOLDER)
    script = start(site, cgi_variables(method, target, HOLDER, headers), stdin=sender.read_end, stdout=write_end)
    os.close(write_end)
    with script:
        _, errors = script.communicate(timeout=WAIT_SECONDS)
    sender.unread()
    assert (script.returncode, errors) == (0, b"")
    if method == "POST":
        assert SqliteLockStore(str(site / "var"), SystemClock()).read("after").owner == "alice"


def test_the_client_is_served_before_its_request_does_a_share_of_the_clean_up(site):
    share_waits_for_the_answer(site)
    sender = Sender(HOLDER)
    with start(site, cgi_variables("POST", "/locks/held", HOLDER), stdin=sender.read_end) as script:
        assert script.stdout is not None
        assert read_cgi_answer(script.stdout.read()).status == 200
        (site / "var" / "answer-came").touch()
        _, errors = script.communicate(timeout=WAIT_SECONDS)
    sender.unread()
    assert (script.returncode, errors) == (0, b"")
    assert [path.name for path in (site / "var").glob("answer-came*")] == ["answer-came-first"]


def test_a_share_of_the_clean_up_that_fails_harms_nobody(site):
    share_waits_for_the_answer(site)
    edit(site / "app" / "maintenance.py", "from time import monotonic, sleep, time", "from time import monotonic, time")
    run = run_script(site, INTERPRETER, "POST", "/locks/held", HOLDER)
    assert (run.answer.status, run.status) == (200, 0)


def test_a_script_without_standard_input_answers(site):
    """Servers that have no body to give may give no input either."""
    variables = cgi_variables("GET", "/locks/held")
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -IS index.cgi <&-', sys.executable],
        cwd=site / "public_html",
        env=variables,
        capture_output=True,
        check=True,
    )
    assert (read_cgi_answer(ended.stdout).status, ended.stderr) == (200, b"")
