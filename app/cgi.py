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

    from app.api import FailedService, Service

_PIECE_BYTES = 65_536


def run(service: Service | FailedService, make_app: Callable[[], Flask]) -> None:
    """Answer the request that the CGI variables and standard input describe; ends the process.

    Args:
        service: the service.
        make_app: makes the Flask application, for a browser.
    """
    posix.umask(0o077)
    # Bytes as Latin-1, all variables alike: what Python decodes by itself depends on the locale.
    environ = {name.decode("latin-1"): value.decode("latin-1") for name, value in posix.environ.items()}
    request = Request(environ, read_input, ends_by_itself=True)
    if request.prefers_html():
        _run_flask(make_app(), environ)
        return
    answer = render(service, request)
    drain()
    _write(answer)
    # The client is served with the end of the output. What comes now, it does not wait for.
    posix.close(1)
    service.after_answer(request)
    # Without the interpreter's own end, which frees piece by piece what the end of the process frees at once.
    posix._exit(0)


def render(service: Service | FailedService, request: Request) -> bytes:
    """Return the whole answer to a request, as a CGI script writes it."""
    response = handle(service, request)
    body = response.body()
    # Always a status line: without one Apache answers conditional requests itself.
    lines = [f"Status: {response.status_line()}"]
    lines += [f"{name}: {value}" for name, value in response.headers]
    if response.document is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head if request.method == "HEAD" else head + body


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


def _write(answer: bytes) -> None:
    try:
        while answer:
            answer = answer[posix.write(1, answer) :]
    except OSError:
        return  # the client is gone; what it asked for is done


def _run_flask(app: Flask, environ: dict[str, Any]) -> None:
    import sys
    from wsgiref.handlers import BaseCGIHandler

    class StandardInput:
        """The body, as WSGI has it."""

        read = staticmethod(read_input)

    def answer_and_drain(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        answer = app(environ, start_response)
        drain()
        return answer

    body: Any = StandardInput()
    environ["wsgi.input_terminated"] = True
    handler = BaseCGIHandler(body, sys.stdout.buffer, sys.stderr, environ, multithread=False, multiprocess=True)
    handler.run(answer_and_drain)
    try:
        sys.stdout.flush()
    except OSError:
        posix._exit(0)  # the client is gone; Python would say so in the error log
