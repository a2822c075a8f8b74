"""Serves Kannuki on this machine, for development and for a first try. The first start sets up .venv."""

import argparse
import errno
import logging
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import environment
from tools.environment import ROOT

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
#: the disk takes one write at a time, so more threads would only wait for one another
THREADS = 4
#: far above the service's own limit, so that it is the service that refuses a large body
MAX_BODY_BYTES = 64 * 1024 * 1024

EXAMPLES = """\
examples:
  python3 tools/serve.py                   serve http://127.0.0.1:8000
  python3 tools/serve.py --port 0          take any free port and print it
  python3 tools/serve.py --host 0.0.0.0    let other machines in, too

Ctrl-C ends it. The state is kept in the folder var/, the settings are read from var/config.py.
"""


def port_number(text: str) -> int:
    """Read a port."""
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 65535")
    return int(text)


def parse(arguments: "list[str]") -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python3 tools/serve.py",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default=DEFAULT_HOST, help=f"name or address to listen on (default {DEFAULT_HOST})")
    parser.add_argument("--port", default=DEFAULT_PORT, type=port_number, help=f"0-65535 (default {DEFAULT_PORT})")
    return parser.parse_args(arguments)


def load_application() -> "WSGIApplication":
    """Return the service as a WSGI application, built on the state and the settings in var/."""
    from app import bootstrap, settings
    from app.errors import SettingsError

    try:
        settings.load(str(ROOT / "var"))
        application: WSGIApplication = bootstrap.wsgi_app(str(ROOT))
    except SettingsError as fault:
        environment.fail(str(fault))
    return application


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or end the program with a sentence."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError):
        environment.fail(f"No address is known for the host {host!r}; check the name, or leave --host out.")
    try:
        listener = socket.socket(family, kind, protocol)
        # Without it the port stays taken for a minute after the server has ended.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Now, not later: two sockets can be bound to one port as long as neither listens.
        listener.listen()
    except OSError as fault:
        environment.fail(why_not(host, port, fault))
    return listener


def why_not(host: str, port: int, fault: OSError) -> str:
    """Say why a port cannot be listened on, and what to do."""
    if fault.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use; end the program that has it, or choose another port with --port."
    if fault.errno == errno.EACCES:
        return f"Port {port} is not open to this user; choose one from 1024 on with --port."
    if fault.errno == errno.EADDRNOTAVAIL:
        return f"The host {host} is not an address of this machine; 127.0.0.1 always is."
    return f"Cannot listen on port {port} of {host}: {fault.strerror}."


def url_of(listener: socket.socket) -> str:
    """Return the address that a client on this machine uses."""
    host, port = listener.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"


def greeting(url: str) -> str:
    """Return what a newcomer needs: the address and a first request."""
    return (
        f"Kannuki serves {url} until Ctrl-C. Acquire a first lock with:\n\n"
        "  curl -H 'Content-Type: application/json' "
        f"""-d '{{"owner": "me", "ttl_seconds": 60}}' '{url}/locks/demo'\n"""
    )


def end(signal_number: int, _frame: object) -> NoReturn:
    """End the server; the same signal once more ends it at once."""
    signal.signal(signal_number, signal.SIG_DFL)
    raise SystemExit(0)


def serve(application: "WSGIApplication", listener: socket.socket) -> None:
    """Answer requests until a signal comes."""
    from waitress.server import create_server

    # A full queue and a client that went away are nothing to report.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    server = create_server(
        application,
        sockets=[listener],
        threads=THREADS,
        ident=None,
        max_request_body_size=MAX_BODY_BYTES,
        # Which proxies are to be trusted is a setting of the service; it must see the headers.
        clear_untrusted_proxy_headers=False,
    )
    server.run()


def main(arguments: "list[str]") -> None:
    """Set up, listen and serve."""
    options = parse(arguments)
    environment.enter(ROOT / "tools" / "requirements.txt")
    # Set by hand, since a shell starts background jobs with Ctrl-C ignored.
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    application = load_application()
    listener = listen(options.host, options.port)
    print(greeting(url_of(listener)), flush=True)
    serve(application, listener)


if __name__ == "__main__":
    main(sys.argv[1:])
