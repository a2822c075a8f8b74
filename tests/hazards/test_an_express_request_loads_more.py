"""A module more on the express lane is easily added, goes unnoticed, and costs every request of every user.

The real script answers real requests; what it has loaded for its answer is counted, never the time that took.
(What it does after that, nobody waits for.)
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.file_rate_limits import FileRateLimitStorage
from app.ratelimit import DEFAULT_RATE_LIMITS, window_key
from tests.doors import read_cgi_answer
from tests.hosting.machine import SYSTEM_PYTHON, python
from tests.hosting.trees import copy_project
from tests.parts import requires

#: runs a script; says what has been loaded when its answer is written, and how the process ends
WITNESS = """
import posix, sys

def say(text):
    write(log, text.encode())

def tell_and_write(descriptor, data):
    if descriptor == 1:
        say(" ".join(sys.modules))
    return write(descriptor, data)

def tell_and_end(status):
    say(f"\\n_exit {status}")
    end(status)

log = posix.dup(2)
write, posix.write = posix.write, tell_and_write
end, posix._exit = posix._exit, tell_and_end
path = sys.argv[1]
with open(path) as file:
    script = compile(file.read(), path, "exec")
exec(script, {"__name__": "__main__", "__file__": path})
"""
BARE = 'import posix\nposix.write(1, b"")\nposix._exit(0)\n'

#: what every request loads: what lies in app.lane.HOT, and what has no line of Python in it
LANE = [
    "app",
    "app.api",
    "app.bootstrap",
    "app.cgi",
    "app.clock",
    "app.errors",
    "app.file_rate_limits",
    "app.interpreter",
    "app.jsontext",
    "app.lease",
    "app.log",
    "app.ratelimit",
    "app.request",
    "app.response",
    "app.settings",
    "app.throttle",
]
ALWAYS = [*LANE, "SHA-256", "fcntl", "gc"]
STORE = ["_sqlite3", "app.sqlite_locks"]
PROBLEM = ["app.problems"]
OVERVIEW = ["app.overview", "app.problems"]

ALICE = '{"owner": "alice", "ttl_seconds": 600}'
BOB = '{"owner": "bob", "ttl_seconds": 600}'
ESCAPED = '{"owner": "\\u0061lice", "ttl_seconds": 60}'
#: (what, method, target, body, status, what it loads beside ALWAYS); one after the other on one installation
REQUESTS = [
    ("acquire", "POST", "/locks/x", ALICE, 200, STORE),
    ("acquire again", "POST", "/locks/x", ALICE, 200, STORE),
    ("contended", "POST", "/locks/x", BOB, 200, STORE),
    ("status", "GET", "/locks/x", "", 200, STORE),
    ("status by HEAD", "HEAD", "/locks/x", "", 200, STORE),
    ("renew", "POST", "/locks/x/renew", ALICE, 200, STORE),
    ("renew what another holds", "POST", "/locks/x/renew", BOB, 403, STORE + PROBLEM),
    ("release", "DELETE", "/locks/x", ALICE, 204, STORE),
    ("release by POST", "POST", "/locks/x/release", ALICE, 404, STORE + PROBLEM),
    ("status of nothing", "GET", "/locks/x", "", 404, STORE + PROBLEM),
    ("list", "GET", "/locks", "", 200, STORE + OVERVIEW),
    ("health", "GET", "/health", "", 200, STORE + OVERVIEW),
    ("first page", "GET", "/", "", 200, STORE + OVERVIEW),
    ("about a problem", "GET", "/problems/forbidden", "", 200, OVERVIEW),
    ("no such page", "GET", "/nope", "", 404, PROBLEM),
    ("no such method", "PUT", "/locks/x", ALICE, 405, PROBLEM),
    ("options", "OPTIONS", "/locks/x", "", 204, []),
    ("values", "POST", "/locks/x", '{"owner": "", "ttl_seconds": 0}', 422, PROBLEM),
    ("a name with an escape", "POST", "/locks/x", ESCAPED, 200, [*STORE, "_json"]),
]


class Installation:
    """A project whose lane has been compiled, and a Python that runs it."""

    def __init__(self, root: Path, interpreter: str) -> None:
        self.root = copy_project(root)
        (self.root / "var").chmod(0o700)
        self.interpreter = interpreter
        self.witness = root.parent / f"{root.name}-witness.py"
        self.witness.write_text(WITNESS)
        bare = root.parent / f"{root.name}-bare.py"
        bare.write_text(BARE)
        self.bare = set(self._run(bare, {}, b"")[1])
        # The first request compiles the lane and makes the database, the second makes the folder of the windows.
        self.request("GET", "/health", "")
        self.request("DELETE", "/locks/x", ALICE)

    def _run(self, script: Path, variables: dict[str, str], body: bytes) -> tuple[bytes, list[str]]:
        ended = subprocess.run(
            [self.interpreter, "-IS", str(self.witness), str(script)],
            env={"PATH": "/usr/bin:/bin", **variables},
            input=body,
            capture_output=True,
            check=True,
        )
        loaded, end = ended.stderr.decode().split("\n")
        assert end == "_exit 0", "the interpreter is taken down piece by piece"
        return ended.stdout, loaded.split()

    def use_up(self, policy: str) -> None:
        """Let the client have used its budget up."""
        limit, window_seconds = DEFAULT_RATE_LIMITS[policy]
        storage = FileRateLimitStorage(str(self.root / "var" / "rate-limits"), SystemClock())
        for _ in range(limit):
            storage.hit(window_key(policy, limit, window_seconds, "ip:192.0.2.1"), window_seconds)

    def request(self, method: str, target: str, body: str) -> tuple[int, list[str]]:
        """Send a request; return its status and what it loaded, by names that hold for all Pythons."""
        variables = {
            "GATEWAY_INTERFACE": "CGI/1.1",
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": "application/json",
            "HTTP_ACCEPT": "*/*",
            "PATH_INFO": "/-",
            "QUERY_STRING": "",
            "REMOTE_ADDR": "192.0.2.1",
            "REQUEST_METHOD": method,
            "REQUEST_URI": target,
            "SCRIPT_NAME": "/index.cgi",
            "SERVER_PROTOCOL": "HTTP/1.1",
        }
        output, loaded = self._run(self.root / "public_html" / "index.cgi", variables, body.encode())
        names = {"SHA-256" if name in ("_sha2", "_sha256") else name for name in set(loaded) - self.bare}
        return read_cgi_answer(output).status, sorted(names)


@pytest.mark.parametrize("version", ["system", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_a_request_loads_exactly_what_its_answer_takes(version, tmp_path):
    if version == "system":
        requires(SYSTEM_PYTHON.exists(), f"{SYSTEM_PYTHON}, which the script names")
    interpreter = str(SYSTEM_PYTHON) if version == "system" else python(version)
    installation = Installation(tmp_path / "project", interpreter)
    for what, method, target, body, status, besides in REQUESTS:
        answered = installation.request(method, target, body)
        assert (what, *answered) == (what, status, sorted([*ALWAYS, *besides]))

    installation.use_up("read")
    assert installation.request("GET", "/locks/x", "") == (429, sorted([*ALWAYS, *PROBLEM]))

    (installation.root / "var" / "config.py").write_text("MAX_LOCKS = 5\n")
    assert installation.request("POST", "/locks/x", ALICE) == (200, sorted([*ALWAYS, *STORE, "app.settings_file"]))
