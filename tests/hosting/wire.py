"""HTTP as it stands on the wire: nothing is encoded, sorted out or added on the way."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from tests.doors import Answer

TIMEOUT_SECONDS = 60


class Connection:
    """One connection to a server on this machine.

    Args:
        port: the server's port on 127.0.0.1.
        host: what the Host header says.
    """

    def __init__(self, port: int, host: str) -> None:
        self.host = host
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def write(self, raw: bytes) -> None:
        """Send bytes; a server that has stopped listening is no fault, what it answered is read next."""
        try:
            self._socket.sendall(raw)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def head(self, method: str, target: str | bytes, headers: dict[str, str]) -> bytes:
        """Return a request's first line and headers with the empty line behind them."""
        target = target.encode("utf-8") if isinstance(target, str) else target
        lines = [method.encode() + b" " + target + b" HTTP/1.1", f"Host: {self.host}".encode()]
        lines += [f"{name}: {value}".encode() for name, value in headers.items()]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def ask(self, method: str, target: str | bytes, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Send one request and read its answer.

        Args:
            method: the request's method.
            target: the request's target, sent as it is.
            body: bytes are sent as they are, anything else but None as JSON.
            headers: further headers; Content-Length is added for a body.
        """
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        if body is not None:
            headers.setdefault("Content-Length", str(len(body)))
        self.write(self.head(method, target, headers) + (body or b""))
        return self.read_answer(method)

    def read_answer(self, method: str) -> Answer:
        response = http.client.HTTPResponse(self._socket, method=method)
        response.begin()
        body = response.read()
        return Answer(response.status, response.getheaders(), body)

    def end_writing(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)


class Client:
    """A site of a server, one connection for each request.

    Args:
        port: the server's port.
        host: the site's name.
        base: where on the site the service is: `""` or a path without a slash at its end.
    """

    def __init__(self, port: int, host: str, base: str = "") -> None:
        self.port = port
        self.host = host
        self.base = base

    def connect(self) -> Connection:
        return Connection(self.port, self.host)

    def ask(self, method: str, path: str | bytes, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Send one request to an address of the service and return the answer."""
        path = path.encode("utf-8") if isinstance(path, str) else path
        with self.connect() as connection:
            return connection.ask(method, self.base.encode() + path, body, {"Connection": "close", **(headers or {})})

    def acquire(self, name: str, owner: str = "alice", ttl_seconds: int = 3600) -> Answer:
        return self.ask("POST", f"/locks/{name}", {"owner": owner, "ttl_seconds": ttl_seconds})

    def is_held(self, name: str) -> bool:
        answer = self.ask("GET", f"/locks/{name}")
        assert answer.status in (200, 404), answer
        return answer.status == 200
