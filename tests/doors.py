"""The doors of the service, all behind one method, so that every case of the contract runs through each of them.

A door takes the request as it stands on the wire: the raw request target, headers by name, the bytes of the body.
It gives back an :class:`Answer`. :class:`Site` is one installation in a folder of its own.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import warnings
from pathlib import Path
from typing import Any, Callable
from urllib.parse import quote, unquote_to_bytes

from webtest import lint

from tests.clocks import ManualClock

UNLIMITED = {"acquire": None, "hold": None, "read": None}
#: headers of a CGI environment that have no HTTP_ before their name
BARE_HEADERS = ("CONTENT_TYPE", "CONTENT_LENGTH")


class Answer:
    """What a door answered: the status, the headers as (name, value), the body, and the status with its phrase."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes, status_line: str = "") -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.status_line = status_line

    def __repr__(self) -> str:
        return f"<{self.status} {dict(self.headers)} {self.body[:300]!r}>"

    def header(self, name: str) -> str | None:
        """Return the one value of a header, None when it is absent; the same header twice is a fault."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) < 2, f"{name} stands {len(values)} times in {self!r}"
        return values[0] if values else None

    def header_names(self) -> set[str]:
        return {name.lower() for name, _ in self.headers}

    @property
    def media_type(self) -> str:
        return (self.header("Content-Type") or "").partition(";")[0].strip().lower()

    def json(self) -> Any:
        """Return the body as JSON; a member that stands twice is a fault."""

        def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            assert len(dict(pairs)) == len(pairs), f"a member stands twice in {self.body!r}"
            return dict(pairs)

        return json.loads(self.body.decode("utf-8"), object_pairs_hook=members)

    def text(self) -> str:
        return self.body.decode("utf-8")

    @property
    def slug(self) -> str:
        """The last part of the problem's type."""
        return self.json()["type"].rpartition("/")[2]

    def faults(self) -> set[tuple[str, str]]:
        """The (field, code) pairs of a 422."""
        return {(error["field"], error["code"]) for error in self.json()["errors"]}

    def fields(self) -> set[str]:
        return {error["field"] for error in self.json()["errors"]}


class Site:
    """One installation: a folder with var/ in it, and a clock that a test moves."""

    def __init__(self, root: Path, clock: Any = None) -> None:
        self.root = root
        self.var = root / "var"
        self.clock = clock or ManualClock()
        root.mkdir(exist_ok=True)
        self.var.mkdir(mode=0o700, exist_ok=True)

    def configure(self, text: str) -> None:
        """Write var/config.py."""
        path = self.var / "config.py"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        path.chmod(0o600)

    @property
    def database(self) -> Path:
        return self.var / "locks.sqlite3"

    def windows(self) -> list[Path]:
        """The files of the rate limiter."""
        folder = self.var / "rate-limits"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def stored(self) -> list[tuple[Any, ...]]:
        """Return every row of the lock table, whole, read past the service."""
        return self._query("SELECT * FROM distributed_locks ORDER BY id")

    def forget_rows(self, where: str = "1") -> None:
        """Delete rows as the sweep does."""
        if not self.database.exists():
            return
        with sqlite3.connect(self.database) as connection:
            connection.execute(f"DELETE FROM distributed_locks WHERE {where}")
        connection.close()

    def _query(self, statement: str) -> list[tuple[Any, ...]]:
        if not self.database.exists() or not self.database.stat().st_size:
            return []
        connection = sqlite3.connect(self.database)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()


def make_service(root: Path, clock: Any, **settings: Any) -> Any:
    """Build the service on root/var with these settings in its config.py."""
    from app.bootstrap import build_service

    site = Site(root, clock)
    if settings:
        site.configure("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    return build_service(str(site.var), clock=clock)


class Door:
    """A way into the service. Subclasses say how one request gets in and its answer out."""

    #: whether one process serves all requests, so that it can count them in its memory
    counts_in_memory = True

    def __init__(self, site: Site) -> None:
        self.site = site
        self.clock = site.clock
        self.log = io.StringIO()

    def answer(self, environ: dict[str, Any]) -> Answer:
        raise NotImplementedError

    def request(
        self,
        method: str,
        target: str,
        body: Any = b"",
        headers: dict[str, str | None] | None = None,
        remote_addr: str | None = "192.0.2.1",
        environ_extra: dict[str, Any] | None = None,
    ) -> Answer:
        """Send one request.

        Args:
            target: the request target as on the wire, its bytes as latin-1.
            body: bytes, or a value to send as JSON.
            headers: by name; None leaves out what would be sent by itself (Content-Type, Content-Length).
            remote_addr: the peer's address; None when the server does not tell it.
            environ_extra: set last; a value of None removes the variable.
        """
        raw = body if isinstance(body, bytes) else json.dumps(body).encode("ascii")
        sent: dict[str, str | None] = {}
        if raw or method not in ("GET", "HEAD", "OPTIONS", "DELETE"):
            sent["Content-Length"] = str(len(raw))
        if not isinstance(body, bytes):
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        environ = self.environ(method, target, io.BytesIO(raw))
        for name, value in sent.items():
            key = name.upper().replace("-", "_")
            if value is not None:
                environ[key if key in BARE_HEADERS else "HTTP_" + key] = value
        if remote_addr is not None:
            environ["REMOTE_ADDR"] = remote_addr
        for name, value in (environ_extra or {}).items():
            environ.pop(name, None)
            if value is not None:
                environ[name] = value
        return self.answer(environ)

    def environ(self, method: str, target: str, stream: io.BytesIO) -> dict[str, Any]:
        """The environment of a service at a domain's root; PATH_INFO is decoded and lossy, as servers make it."""
        path, _, query = target.partition("?")
        return {
            "GATEWAY_INTERFACE": "CGI/1.1",
            "HTTP_HOST": "locks.example",
            "PATH_INFO": "/" + unquote_to_bytes(path.encode("latin-1")).decode("latin-1").lstrip("/"),
            "QUERY_STRING": query,
            "REMOTE_PORT": "40000",
            "REQUEST_METHOD": method,
            "REQUEST_URI": target,
            "SCRIPT_NAME": "",
            "SERVER_NAME": "locks.example",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.errors": self.log,
            "wsgi.input": stream,
            "wsgi.multiprocess": False,
            "wsgi.multithread": False,
            "wsgi.run_once": False,
            "wsgi.url_scheme": "http",
            "wsgi.version": (1, 0),
        }

    # The calls of the API

    def acquire(self, resource: str, owner: Any = "alice", ttl_seconds: Any = 60, **how: Any) -> Answer:
        return self.request("POST", lock_path(resource), {"owner": owner, "ttl_seconds": ttl_seconds}, **how)

    def renew(self, resource: str, owner: Any = "alice", ttl_seconds: Any = 60, **how: Any) -> Answer:
        return self.request("POST", lock_path(resource) + "/renew", {"owner": owner, "ttl_seconds": ttl_seconds}, **how)

    def delete(self, resource: str, owner: Any = "alice", **how: Any) -> Answer:
        return self.request("DELETE", lock_path(resource), {"owner": owner}, **how)

    def release(self, resource: str, owner: Any = "alice", **how: Any) -> Answer:
        return self.request("POST", lock_path(resource) + "/release", {"owner": owner}, **how)

    def read(self, resource: str, **how: Any) -> Answer:
        return self.request("GET", lock_path(resource), **how)

    def list(self, **parameters: Any) -> Answer:
        return self.request("GET", list_path(**parameters))

    def granted(self, resource: str, owner: str = "alice", ttl_seconds: int = 60, **how: Any) -> dict[str, Any]:
        """Acquire what must be granted and return the LOCK."""
        answer = self.acquire(resource, owner, ttl_seconds, **how)
        assert answer.status == 200, answer
        assert answer.json()["acquired"] is True, answer
        lock: dict[str, Any] = answer.json()["lock"]
        return lock


def lock_path(resource: str) -> str:
    """The address of a lock; a lone surrogate stands for a raw byte."""
    return "/locks/" + quote(resource.encode("utf-8", "surrogateescape"), safe="")


def list_path(**parameters: Any) -> str:
    """The address of a list; values are given as text and encoded here."""
    query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items())
    return "/locks" + ("?" + query if query else "")


class FlaskDoor(Door):
    """The Flask application, called as a WSGI server calls it, with WebTest's lint in between."""

    def __init__(self, site: Site, app: Callable[..., Any]) -> None:
        super().__init__(site)
        self._app = app

    @classmethod
    def on_service(cls, site: Site, service: Any) -> FlaskDoor:
        from app.web import create_app

        return cls(site, create_app(service))

    @classmethod
    def on_root(cls, site: Site) -> FlaskDoor:
        """The door as it opens on a real installation, where a broken config.py has to be answered too."""
        from app.bootstrap import wsgi_app

        return cls(site, wsgi_app(str(site.root)))

    def answer(self, environ: dict[str, Any]) -> Answer:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], None]:
            started.append((status, headers))
            return lambda data: None

        # Lint refuses some environments that a careless server could make; the application has to bear them.
        odd = {name: environ.pop(name) for name in ("CONTENT_LENGTH",) if not _is_number(environ.get(name, "0"))}

        def inner(environ: dict[str, Any], start_response: Any) -> Any:
            environ.update(odd)
            return self._app(environ, start_response)

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Unknown REQUEST_METHOD", category=lint.WSGIWarning)
            chunks = lint.middleware(inner)(environ, start_response)
            try:
                body = b"".join(chunks)
            finally:
                chunks.close()
        status, headers = started[-1]
        return Answer(int(status[:3]), headers, body, status)


class ExpressDoor(Door):
    """The express lane of `app.cgi` in this process; a browser's request goes to the Flask application, as there."""

    counts_in_memory = False

    def __init__(self, site: Site, service: Any) -> None:
        super().__init__(site)
        self._service = service

    @classmethod
    def on_service(cls, site: Site, service: Any) -> ExpressDoor:
        return cls(site, service)

    @classmethod
    def on_root(cls, site: Site) -> ExpressDoor:
        """The door as it opens on a real installation, where a broken config.py has to be answered too."""
        from app.bootstrap import build_service

        return cls(site, build_service(str(site.var), under_cgi=True))

    def answer(self, environ: dict[str, Any]) -> Answer:
        from app.cgi import render
        from app.request import Request

        variables = {name: value for name, value in environ.items() if not name.startswith("wsgi.")}
        stream = environ["wsgi.input"]
        request = Request(variables, stream.read, ends_by_itself=True)
        if request.prefers_html():
            return read_cgi_answer(self._page(variables, stream))
        output = render(self._service, request)
        self._service.after_answer(request)
        return read_cgi_answer(output)

    def _page(self, variables: dict[str, Any], stream: Any) -> bytes:
        from app.cgi import ask_flask
        from app.web import create_app

        return ask_flask(create_app(self._service), variables, stream.read)


def read_cgi_answer(output: bytes) -> Answer:
    """Read what a CGI script has written (RFC 3875, 6); a status is among it always, or the server makes one up."""
    head, end, body = output.partition(b"\r\n\r\n")
    assert end, f"no headers in {output!r}"
    headers = []
    for line in head.split(b"\r\n"):
        name, colon, value = line.decode("latin-1").partition(": ")
        assert colon, f"no header in {line!r}"
        assert name.replace("-", "").isalnum(), f"no header in {line!r}"
        assert value.isprintable(), f"no header in {line!r}"
        headers.append((name, value))
    [status_line] = [value for name, value in headers if name == "Status"]
    headers.remove(("Status", status_line))
    return Answer(int(status_line[:3]), headers, body, status_line)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 1000


#: name -> class with on_service(site, service) and on_root(site); every test of the contract runs through each
DOORS: dict[str, Any] = {"express": ExpressDoor, "flask": FlaskDoor}


def open_door(name: str, root: Path, clock: Any = None, **settings: Any) -> Door:
    """Open a door of that name on a new or an existing installation at root."""
    site = Site(root, clock)
    door: Door = DOORS[name].on_service(site, make_service(root, site.clock, **settings))
    return door


def open_door_on_root(name: str, root: Path) -> Door:
    """Open a door of that name as a server opens it, on the settings found at root."""
    door: Door = DOORS[name].on_root(Site(root))
    return door


def modes_below(folder: Path) -> dict[str, int]:
    """The permission bits of everything below a folder, by relative path."""
    return {
        str(Path(parent, name).relative_to(folder)): Path(parent, name).lstat().st_mode & 0o7777
        for parent, folders, files in os.walk(folder)
        for name in folders + files
    }
