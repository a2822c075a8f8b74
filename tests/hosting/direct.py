"""The script run as a web server runs it, without the web server: for Pythons that suEXEC's user cannot reach."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.doors import Answer, read_cgi_answer

TIMEOUT_SECONDS = 120


class Run:
    """How one run of the script ended.

    Args:
        answer: what it wrote to its standard output, as the web server would read it.
        log: what it wrote to the error log.
        unread: how many bytes of the body it left unread.
        status: its exit status.
    """

    def __init__(self, answer: Answer, log: str, unread: int, status: int) -> None:
        self.answer = answer
        self.log = log
        self.unread = unread
        self.status = status


def cgi_variables(
    method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> dict[str, str]:
    """Return the environment that a web server gives the script for a request."""
    environ = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "locks.example",
        "SERVER_PORT": "80",
        "REMOTE_ADDR": "192.0.2.1",
        "REQUEST_METHOD": method,
        "REQUEST_URI": target,
        "SCRIPT_NAME": "/index.cgi",
        "PATH_INFO": "/-",
        "QUERY_STRING": target.partition("?")[2],
    }
    if body:
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["CONTENT_TYPE"] = "application/json"
    for name, value in (headers or {}).items():
        variable = name.upper().replace("-", "_")
        environ[variable if variable == "CONTENT_TYPE" else "HTTP_" + variable] = value
    return environ


def run_script(
    root: Path,
    interpreter: list[str],
    method: str = "GET",
    target: str = "/health",
    body: Any = None,
    headers: dict[str, str] | None = None,
    script: str = "public_html/index.cgi",
    variables: dict[str, str] | None = None,
) -> Run:
    """Start the script for one request.

    Args:
        root: the project's folder.
        interpreter: the Python and its flags.
        method: the request's method.
        target: the path and query.
        body: bytes, or a value sent as JSON.
        headers: the request's headers.
        script: the script's path below the root.
        variables: further environment variables.
    """
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    path = root / script
    with tempfile.TemporaryFile() as standard_input:
        standard_input.write(body or b"")
        standard_input.seek(0)
        # As with suEXEC: the script's folder is the working directory, and the script is named without one.
        ended = subprocess.run(
            [*interpreter, path.name],
            cwd=path.parent,
            env={**cgi_variables(method, target, body, headers), **(variables or {})},
            stdin=standard_input,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        # The script read through the same open file, so its place in it is where the script stopped.
        unread = len(body or b"") - os.lseek(standard_input.fileno(), 0, os.SEEK_CUR)
    return Run(read_cgi_answer(ended.stdout), ended.stderr.decode(errors="replace"), unread, ended.returncode)
