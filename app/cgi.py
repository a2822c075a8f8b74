"""The CGI door: one process, one request (RFC 3875)."""

from __future__ import annotations

import os
import sys
from wsgiref.handlers import BaseCGIHandler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from flask import Flask

_DRAIN_BYTES = 65_536


class _StandardInput:
    """The request's body; ends by itself, also where the server does not say how long it is."""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, b"" at the end or where there is no input."""
        try:
            return os.read(0, size)
        except OSError:
            return b""


def run(app: Flask) -> None:
    """Answer the request that the CGI variables and standard input describe, on standard output."""
    os.umask(0o077)
    body = _StandardInput()
    # Bytes as Latin-1, all variables alike: what Python decodes by itself depends on the locale.
    environ: dict[str, Any] = {name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()}
    environ["wsgi.input_terminated"] = True
    stream: Any = body

    def answer_and_drain(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        answer = app(environ, start_response)
        drain(body.read)
        return answer

    handler = BaseCGIHandler(stream, sys.stdout.buffer, sys.stderr, environ, multithread=False, multiprocess=True)
    handler.run(answer_and_drain)
    try:
        sys.stdout.flush()
    except OSError:
        os._exit(0)  # the client is gone; Python would say so in the error log


def drain(read: Callable[[int], bytes]) -> None:
    """Read the rest of the body and forget it.

    A server that is still sending the body when the script answers loses the answer (Apache's mod_cgid does).
    """
    if os.isatty(0):
        return  # started by hand
    while read(_DRAIN_BYTES):
        pass
