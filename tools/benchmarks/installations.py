"""Copies of the service and of the scripts it is measured beside, and the requests that are sent to them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tools import environment
from tools.benchmarks.plan import Progress
from tools.benchmarks.processes import Program, Run, run
from tools.environment import ROOT

PHP_CGI = "/usr/bin/php-cgi"
OWNER = "web-7.example:4711"
OTHER_OWNER = "web-8.example:815"
#: no limit may be in the way; this is the highest that the settings take, and requests are counted all the same
HIGH_LIMITS = 'RATE_LIMITS = {"acquire": (1000000, 604800), "hold": (1000000, 604800), "read": (1000000, 604800)}\n'
#: what Flask consists of, and what it needs besides on Python 3.9
LIBRARIES = ("flask", "werkzeug", "jinja2", "click", "blinker", "itsdangerous", "markupsafe")
LIBRARIES_OF_OLD_PYTHONS = ("importlib_metadata", "zipp")

_left_out = shutil.ignore_patterns("__pycache__")


class Interpreter(NamedTuple):
    """The Python that the first line of index.cgi names, and its flags."""

    path: str
    flags: list[str]

    @property
    def shebang(self) -> str:
        """Return the first line of a script."""
        return " ".join([f"#!{self.path}", *self.flags])


class Project:
    """The project as it is when the measuring begins; somebody may go on working on it meanwhile.

    Args:
        folder: where it is copied to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("app", "public_html", "tools"):
            shutil.copytree(ROOT / name, folder / name, ignore=_left_out)
        first_line = (folder / "public_html" / "index.cgi").read_text(encoding="utf-8").partition("\n")[0]
        path, *flags = first_line[2:].split()
        self.interpreter = Interpreter(path if os.access(path, os.X_OK) else sys.executable, flags)


class Call(NamedTuple):
    """One request. The target may hold `{n}`, which is replaced by a number that is new in each round."""

    method: str
    target: str
    body: dict[str, Any] | None = None


def acquire(target: str, owner: str = OWNER) -> Call:
    """Return the request for a lock, for a day."""
    return Call("POST", target, {"owner": owner, "ttl_seconds": 86_400})


def cgi_environ(call: Call, script: Path, number: int = 0) -> dict[str, str]:
    """Return what Apache gives to a script for a request from this machine."""
    target = call.target.format(n=number)
    environ = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": "Apache",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "locks.example",
        "SERVER_ADDR": "192.0.2.80",
        "SERVER_PORT": "80",
        "SERVER_ADMIN": "[no address given]",
        "SERVER_SIGNATURE": "",
        "REMOTE_ADDR": "192.0.2.1",
        "REMOTE_PORT": "40000",
        "REQUEST_SCHEME": "http",
        "REQUEST_METHOD": call.method,
        "REQUEST_URI": target,
        "DOCUMENT_ROOT": str(script.parent),
        "CONTEXT_DOCUMENT_ROOT": str(script.parent),
        "CONTEXT_PREFIX": "",
        "SCRIPT_FILENAME": str(script),
        "SCRIPT_NAME": "/index.cgi",
        "PATH_INFO": target,
        "PATH_TRANSLATED": f"{script.parent}{target}",
        "QUERY_STRING": "",
        "HTTP_HOST": "locks.example",
        "HTTP_ACCEPT": "*/*",
        "HTTP_USER_AGENT": "bench",
        # PHP refuses to work without it.
        "REDIRECT_STATUS": "200",
    }
    if call.body is not None:
        environ["CONTENT_TYPE"] = "application/json"
        environ["CONTENT_LENGTH"] = str(len(body_of(call)))
    return environ


def body_of(call: Call) -> bytes:
    """Return the body of a request."""
    return b"" if call.body is None else json.dumps(call.body).encode()


class Script:
    """A CGI script in a folder of its own.

    Args:
        folder: where it lies.
        path: the script.
        command: what runs it, as the web server's start of it does.
    """

    def __init__(self, folder: Path, path: Path, command: list[str]) -> None:
        self.folder = folder
        self.path = path
        self.command = command
        self._bodies: dict[bytes, str] = {}

    def program(self, call: Call, number: int = 0) -> Program:
        """Return what is started for a request."""
        return Program(self.command, cgi_environ(call, self.path, number), self._body_file(body_of(call)))

    def _body_file(self, body: bytes) -> str:
        if body not in self._bodies:
            path = self.folder / f"body-{len(self._bodies)}"
            path.write_bytes(body)
            self._bodies[body] = str(path)
        return self._bodies[body]

    def answer(self, call: Call) -> Run:
        """Send a request."""
        return run(self.program(call))


class Site(Script):
    """A copy of the service with an empty state.

    Args:
        folder: where it is made.
        project: what is copied.
        config: the text of var/config.py; without it the defaults hold.
    """

    def __init__(self, folder: Path, project: Project, config: str = "") -> None:
        shutil.copytree(project.folder, folder)
        self.interpreter = project.interpreter
        self.var = folder / "var"
        self.var.mkdir(mode=0o700)
        # As where cron sweeps: otherwise some requests do a share of the clean-up.
        (self.var / "sweep.stamp").touch()
        if config:
            (self.var / "config.py").write_text(config, encoding="utf-8")
        script = folder / "public_html" / "index.cgi"
        set_first_line(script, self.interpreter.shebang)
        super().__init__(folder, script, [self.interpreter.path, *self.interpreter.flags, str(script)])

    def use_up_the_acquires(self) -> None:
        """Set the one window file of this site to a used-up one that lasts for most of a minute."""
        record = json.dumps({"count": 301, "reset_at": round(time.time()) + 50})
        for window in self.var.glob("rate-limits/*.json"):
            window.write_text(record.ljust(64), encoding="ascii")


def make_stdlib_peer(folder: Path, project: Project) -> Script:
    """Make the folder of the script on the standard library."""
    return _make_python_peer(folder, project, "stdlib_acquire.py")


def make_flask_peer(folder: Path, project: Project) -> Script:
    """Make the folder of the Flask script, with Flask beside it, compiled."""
    libraries = flask_folder()
    for name in (*LIBRARIES, *LIBRARIES_OF_OLD_PYTHONS):
        if name in LIBRARIES or (libraries / name).exists():
            shutil.copytree(libraries / name, folder / "vendor" / name, ignore=_left_out)
    # It may ask for its own version, which stands there.
    for metadata in libraries.glob("*.dist-info"):
        if metadata.name.partition("-")[0].lower() in LIBRARIES:
            shutil.copytree(metadata, folder / "vendor" / metadata.name)
    command = [project.interpreter.path, "-m", "compileall", "-q", str(folder / "vendor")]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    return _make_python_peer(folder, project, "flask_acquire.py")


def flask_folder() -> Path:
    """Return where .venv has Flask; makes .venv where there is none."""
    return environment.record_of(environment.ensure(ROOT / "tools" / "requirements.txt").parents[1]).parent


def make_floor(folder: Path, project: Project) -> Script:
    """Make the folder of the script that does nothing, with the flags that cost least."""
    return _make_python_peer(folder, project, "floor.py", ["-IS"])


def make_php_peer(folder: Path, project: Project) -> Script:
    """Make the folder of the PHP script."""
    script = _copy_peer(folder, project, "hello.php")
    set_first_line(script, f"#!{PHP_CGI} -dcgi.force_redirect=0")
    return Script(folder, script, [PHP_CGI])


def _make_python_peer(folder: Path, project: Project, name: str, flags: list[str] | None = None) -> Script:
    interpreter = Interpreter(project.interpreter.path, flags or [])
    script = _copy_peer(folder, project, name)
    set_first_line(script, interpreter.shebang)
    return Script(folder, script, [interpreter.path, *interpreter.flags, str(script)])


def _copy_peer(folder: Path, project: Project, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(project.folder / "tools" / "peers" / name, folder / "index.cgi"))


def set_first_line(script: Path, line: str) -> None:
    """Write another first line into a script, and let it be started."""
    text = script.read_text(encoding="utf-8")
    script.write_text(re.sub(r"\A#!.*", lambda _: line, text), encoding="utf-8")
    script.chmod(0o755)


def has_php(progress: Progress) -> bool:
    """Say whether the PHP script can be measured, and if not, why."""
    if not os.access(PHP_CGI, os.X_OK):
        progress.leave_out("Left out: php-cgi, since it is not installed (see --help).")
        return False
    return True


def has_flask(progress: Progress) -> bool:
    """Say whether the Flask script can be measured, and if not, why."""
    try:
        found = (flask_folder() / "flask").is_dir()
    except SystemExit as fault:
        progress.leave_out(f"Left out: the plain Flask script. {fault}")
        return False
    return found
