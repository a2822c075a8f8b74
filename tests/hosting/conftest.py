"""One Apache of each kind for all hosting tests, with every layout and every broken installation as a site of it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosting import machine, trees
from tests.hosting.apache import Apache
from tests.hosting.wire import Client

#: name of a layout -> the site, where the service is on it, and what addresses in its answers begin with
LAYOUTS = {
    "public_html is the document root": ("root.test", "", ""),
    "public_html lies in a folder": ("folder.test", "/service", "/service"),
    "public_html has an alias": ("folder.test", "/aliased", "/aliased"),
    "public_html holds the project": ("flat.test", "", ""),
    "the project is the document root": ("whole.test", "", ""),
    "the project lies in a folder": ("above.test", "/site", "/site"),
    "called by name": ("root.test", "/index.cgi", ""),
    "called by name in a folder": ("folder.test", "/service/index.cgi", "/service"),
    "called by name in the project": ("whole.test", "/public_html/index.cgi", "/public_html"),
}

#: says what a script is given by the server
PROBE = """#!/usr/bin/python3 -IS
import json, os, sys
found = dict(os.environ, BODY_BYTES=len(sys.stdin.buffer.read()), USER_ID=os.geteuid())
sys.stdout.write("Status: 200 OK\\r\\nContent-Type: application/json\\r\\n\\r\\n" + json.dumps(found))
"""

SETTLE_SECONDS = 60


class Hosting:
    """A running server and the folders that its sites are made of.

    Args:
        mpm: which kind of Apache, `event` or `prefork`.
    """

    def __init__(self, mpm: str) -> None:
        self.mpm = mpm
        machine.SUEXEC_ROOT.mkdir(exist_ok=True)
        machine.SUEXEC_LOGS.mkdir(exist_ok=True)
        self.top = Path(tempfile.mkdtemp(prefix="kannuki-", dir=machine.SUEXEC_ROOT))
        try:
            self.top.chmod(0o755)
            self.apache = Apache(mpm, self.top, self._make_sites())
        except BaseException:
            shutil.rmtree(self.top)
            raise

    def _make_sites(self) -> dict[str, tuple[Path, str]]:
        top = self.top
        vendor = trees.copy_libraries(top / "vendor")
        site = trees.copy_project(top / "site", vendor, trees.NO_LIMITS)

        service = top / "plain" / "service"
        shutil.copytree(site / "public_html", service)
        trees.edit(service / "index.cgi", 'ROOT = ""', f'ROOT = "{site}"')

        flat = trees.copy_project(top / "flat", vendor, trees.NO_LIMITS)
        for name in (".htaccess", "index.cgi", "robots.txt"):
            shutil.move(flat / "public_html" / name, flat / name)
        (flat / "public_html").rmdir()

        limited = trees.copy_project(top / "limited", vendor, 'RATE_LIMITS = {"acquire": (2, 600)}\n')

        share = trees.copy_project(top / "share", vendor, trees.NO_LIMITS)
        trees.share_waits_for_the_answer(share)

        broken = {"old": vendor, "no-newer": vendor, "no-flask": None, "no-app": vendor, "no-rights": vendor}
        broken.update({"bad-settings": vendor, "memory": vendor, "bad-code": vendor})
        for name, its_vendor in broken.items():
            trees.copy_project(top / name, its_vendor)
        for name in ("old", "no-newer"):
            trees.edit(top / name / "app" / "startup.py", "(3, 9)", "(9, 9)")
        startup = top / "no-newer" / "app" / "startup.py"
        startup.write_text(startup.read_text().replace('    "/', '    "/nowhere/'))
        shutil.rmtree(top / "no-app" / "app")
        (top / "bad-settings" / "var" / "config.py").write_text('MAX_LOCKS = "secret-value"\nNO_SUCH_NAME = 1\n')
        (top / "memory" / "var" / "config.py").write_text('RATE_LIMIT_STORAGE = "memory"\n')
        (top / "bad-code" / "app" / "bootstrap.py").write_text("raise RuntimeError('secret-value')\n")

        probe = trees.copy_project(top / "probe")
        (probe / "public_html" / "index.cgi").write_text(PROBE)

        uid, gid = machine.site_ids()
        trees.hand_over(top, uid, gid)
        shutil.chown(top / "no-rights" / "var", 0, 0)
        (top / "no-rights" / "var").chmod(0o755)

        sites = {
            "root.test": (site / "public_html", ""),
            "folder.test": (top / "plain", f"Alias /aliased {site}/public_html\nAlias /probe {top}/probe/public_html"),
            "flat.test": (flat, ""),
            "limited.test": (limited / "public_html", ""),
            "share.test": (share / "public_html", ""),
            "whole.test": (site, ""),
            "above.test": (top, ""),
            "probe.test": (probe / "public_html", ""),
            "probe-whole.test": (probe, ""),
        }
        sites.update({f"{name}.test": (top / name / "public_html", "") for name in broken})
        return sites

    def client(self, site: str, base: str = "") -> Client:
        return self.apache.client(site, base)

    def stored_resources(self) -> list[str]:
        """Return the names of all stored leases of the service at the top of a domain, read past the service."""
        database = self.top / "site" / "var" / "locks.sqlite3"
        if not database.exists():
            return []
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            return [row[0] for row in connection.execute("SELECT resource FROM distributed_locks ORDER BY id")]
        finally:
            connection.close()

    def wait_until_idle(self) -> None:
        """Wait until no script runs any more; a client that hangs up does not end the script it started."""
        give_up_at = time.monotonic() + SETTLE_SECONDS
        while trees.processes_in(self.top):
            assert time.monotonic() < give_up_at, "a script still runs"
            time.sleep(0.05)

    def close(self) -> None:
        self.apache.stop()
        self.wait_until_idle()
        shutil.rmtree(self.top)


@pytest.fixture(
    scope="session",
    params=[pytest.param(mpm, marks=pytest.mark.xdist_group(f"apache-{mpm}")) for mpm in ("event", "prefork")],
)
def hosting(request: pytest.FixtureRequest) -> Iterator[Hosting]:
    """A server of each kind: event with mod_cgid, prefork with mod_cgi."""
    machine.needs_apache()
    started = Hosting(request.param)
    yield started
    started.close()


@pytest.fixture
def site(hosting: Hosting) -> Client:
    """The service at the top of a domain."""
    return hosting.client("root.test")


@pytest.fixture
def probe(hosting: Hosting) -> Client:
    """A script that says what it was given, in the place of the service."""
    return hosting.client("probe.test")
