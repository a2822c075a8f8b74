"""The CGI door: one process, one request (RFC 3875).

Machines' calls are answered here without Flask, which costs many times what the lock costs. What is answered is decided
in `app.api`, as for the Flask door, so both give the same status, headers and body. A browser's request, which may get
a page, is handed to the Flask application.
"""

from __future__ import annotations

import posix

from app.api import handle
from app.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from flask import Flask

    from app.api import Service

_PIECE_BYTES = 65_536


def run(service: Service, make_app: Callable[[], Flask]) -> None:
    """Answer the request that the CGI variables and standard input describe; ends the process.

    Args:
        service: the service.
        make_app: makes the Flask application, for a browser.
    """
    posix.umask(0o077)
    # Bytes as Latin-1, all variables alike: what Python decodes by itself depends on the locale.
    environ = {name.decode("latin-1"): value.decode("latin-1") for name, value in posix.environ.items()}
    environ.setdefault("REQUEST_METHOD", "GET")
    request = Request(environ, read_input, ends_by_itself=True)
    answer = ask_flask(make_app(), environ, read_input) if request.prefers_html() else render(service, request)
    drain()
    _write(answer)
    _let_go()
    service.after_answer(request)
    # Without the interpreter's own end, which frees piece by piece what the end of the process frees at once.
    posix._exit(0)


def render(service: Service, request: Request) -> bytes:
    """Return the whole answer to a request, as a CGI script writes it."""
    response = handle(service, request)
    body = response.body()
    headers = response.headers
    if response.document is not None:
        headers = [*headers, ("Content-Length", str(len(body)))]
    return _message(response.status_line(), headers, b"" if request.method == "HEAD" else body)


def ask_flask(app: Flask, environ: dict[str, Any], read_body: Callable[[int], bytes]) -> bytes:
    """Return the whole answer of the Flask application (PEP 3333), as a CGI script writes it."""
    import sys

    class Body:
        read = staticmethod(read_body)

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[..., Any]:
        started[:] = [status, headers]
        return pieces.append

    started: list[Any] = []
    pieces: list[bytes] = []
    environ = {
        **environ,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if environ.get("HTTPS", "").lower() in ("on", "1") else "http",
        "wsgi.input": Body(),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": True,
    }
    # Not closed: what the application would do then, run() does once the client is served.
    pieces.extend(app(environ, start_response))
    status, headers = started
    return _message(status, headers, b"".join(pieces))


def _message(status: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
    # Always a status line: without one Apache answers conditional requests itself.
    lines = [f"Status: {status}", *[f"{name}: {value}" for name, value in headers]]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def read_input(size: int) -> bytes:
    """Return up to ``size`` bytes of the body, b"" at its end or where there is no input."""
    try:
        return posix.read(0, size)
    except OSError:
        return b""


def drain() -> None:
    """Read the rest of the body and forget it.

    A server that is still sending the body when the script answers loses the answer (Apache's mod_cgid does).
    """
    if posix.isatty(0):
        return  # started by hand
    while read_input(_PIECE_BYTES):
        pass


def _let_go() -> None:
    """Let the web server see the end of the answer; what comes now, the client does not wait for.

    All three streams: of mod_cgid, input and output are one socket, and mod_cgi waits for the end of the errors too.
    """
    nowhere = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
    for descriptor in (0, 1, 2):
        posix.dup2(nowhere, descriptor)


def _write(answer: bytes) -> None:
    try:
        while answer:
            answer = answer[posix.write(1, answer) :]
    except OSError:
        return  # the client is gone; what it asked for is done
