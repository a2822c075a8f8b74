"""What no visitor may read, wherever the document root lies."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosting import machine, trees
from tests.hosting.apache import Apache
from tests.hosting.conftest import PROBE
from tests.hosting.wire import Client

SECRET = b"not-for-visitors"
#: files of a project and of its surroundings
FILES = [
    "var/locks.sqlite3",
    "var/locks.sqlite3-journal",
    "var/config.py",
    "var/rate-limits/0123.json",
    "var/pycache/app/api.cpython-311.pyc",
    "var/.htaccess",
    "app/api.py",
    "app/requirements.txt",
    "app/pages/templates/home.html",
    "app/.htaccess",
    "tools/doctor.py",
    "tools/.htaccess",
    "tests/conftest.py",
    "tests/.htaccess",
    "vendor/flask/app.py",
    ".venv/pyvenv.cfg",
    ".venv/lib/python3.11/site-packages/flask/app.py",
    ".git/config",
    ".git/HEAD",
    ".ci/run",
    ".gitignore",
    ".htaccess",
    ".env",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "public_html/.htaccess",
    "public_html/index.cgi",
    "public_html/.hidden",
]
#: other spellings of some of the same files
SPELLINGS = [
    "//var/locks.sqlite3",
    "/./var/locks.sqlite3",
    "/public_html/../var/locks.sqlite3",
    "/%76ar/locks.sqlite3",
    "/var%2Flocks.sqlite3",
    "/var//locks.sqlite3",
    "/var/locks.sqlite3/",
    "/var/locks.sqlite3/-",
    "/var/locks.sqlite3?x",
    "/var/",
    "/var",
    "/app/",
    "/.git/",
    "/%2egit/config",
    "/.git%2fconfig",
    "/public_html/index.cgi%00",
    "/public_html/index.cgi.",
    "/public_html/%69ndex.cgi",
    "/pyproject.toml/index.cgi",
    "/pyproject.toml/index.cgi/x",
    "/.git/config/robots.txt",
    "/.git/config/public_html/index.cgi/",
    "/var/locks.sqlite3/index.cgi/x",
]


class Exposed:
    """A server whose document root is a project in which every file can be read and holds a secret.

    Args:
        mpm: the kind of Apache.
        without: the modules that it lacks.
    """

    def __init__(self, mpm: str, without: tuple[str, ...]) -> None:
        machine.SUEXEC_ROOT.mkdir(exist_ok=True)
        machine.SUEXEC_LOGS.mkdir(exist_ok=True)
        self.top = Path(tempfile.mkdtemp(prefix="kannuki-", dir=machine.SUEXEC_ROOT))
        try:
            self.top.chmod(0o755)
            project = trees.copy_project(self.top / "project")
            for folder in ("tools", "tests"):
                (project / folder).mkdir()
                shutil.copy(trees.PROJECT / folder / ".htaccess", project / folder)
            (project / "public_html" / "index.cgi").write_text(PROBE + f"# {SECRET.decode()}\n")
            for name in FILES:
                path = project / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    path.write_bytes(SECRET)
                elif path.name == ".htaccess":
                    path.write_bytes(path.read_bytes() + b"\n# " + SECRET + b"\n")
            trees.hand_over(self.top, *machine.site_ids())
            (project / "var").chmod(0o755)
            no_scripts = f"<Directory {project}/public_html>\nOptions SymLinksIfOwnerMatch\n</Directory>"
            sites = {
                "whole.test": (project, ""),
                "above.test": (self.top, ""),
                "public.test": (project / "public_html", ""),
                "no-scripts.test": (project / "public_html", no_scripts),
            }
            self.apache = Apache(mpm, self.top, sites, without)
        except BaseException:
            shutil.rmtree(self.top)
            raise

    def close(self) -> None:
        self.apache.stop()
        shutil.rmtree(self.top)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("event", ()), id="event", marks=pytest.mark.xdist_group("apache-event")),
        pytest.param(("event", ("rewrite",)), id="no-rewrite", marks=pytest.mark.xdist_group("apache-event")),
        pytest.param(("prefork", ()), id="prefork", marks=pytest.mark.xdist_group("apache-prefork")),
        pytest.param(("prefork", ("alias",)), id="no-alias", marks=pytest.mark.xdist_group("apache-prefork")),
    ],
)
def exposed(request: pytest.FixtureRequest) -> Iterator[Exposed]:
    machine.needs_apache()
    started = Exposed(*request.param)
    yield started
    started.close()


@pytest.fixture
def has_rewrite(exposed: Exposed) -> bool:
    return exposed.apache.has_module("rewrite")


@pytest.fixture(params=["the project is the document root", "the project lies in a folder"])
def project(request: pytest.FixtureRequest, exposed: Exposed) -> Client:
    if request.param == "the project is the document root":
        return exposed.apache.client("whole.test")
    return exposed.apache.client("above.test", "/project")


def assert_hidden(answer) -> None:
    assert SECRET not in answer.body
    assert b"Index of" not in answer.body
    # The server refuses or tells of a slash that is missing, or the service is asked for an address it does not have.
    assert answer.status in (301, 400, 403, 404) or b"REQUEST_URI" in answer.body, answer


@pytest.mark.parametrize("name", FILES)
def test_no_file_of_the_project_is_served(project, name):
    for method in ("GET", "POST"):
        assert_hidden(project.ask(method, f"/{name}"))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_other_spelling_serves_it(project, spelling):
    assert_hidden(project.ask("GET", spelling))


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith(("var/", "app/", "tools/", "tests/"))])
def test_code_and_state_are_refused_by_the_server_itself(project, name):
    assert project.ask("GET", f"/{name}").status == 403


def test_the_script_runs_where_it_is_the_document_roots(exposed, has_rewrite):
    client = exposed.apache.client("public.test")
    for path in ("/index.cgi/locks/.x", "/index.cgi", *(["/locks/.x", "/"] if has_rewrite else [])):
        assert client.ask("GET", path).json()["REQUEST_URI"] == path


def test_the_script_runs_wherever_it_lies(project, has_rewrite):
    for path in (
        "/public_html/index.cgi/locks/x",
        "/public_html/index.cgi",
        *(["/locks/x", "/"] if has_rewrite else []),
    ):
        answer = project.ask("GET", path, headers={"Authorization": "Bearer x"})
        assert answer.status == 200, path
        assert answer.json()["REQUEST_URI"] == project.base + path
        assert answer.json()["HTTP_AUTHORIZATION"] == "Bearer x"


def test_robots_txt_is_served(exposed, project, has_rewrite):
    expected = (trees.PROJECT / "public_html" / "robots.txt").read_bytes()
    assert exposed.apache.client("public.test").ask("GET", "/robots.txt").body == expected
    assert project.ask("GET", "/public_html/robots.txt").body == expected
    if has_rewrite:
        assert project.ask("GET", "/robots.txt").body == expected


@pytest.mark.parametrize("name", ["index.cgi", "index.cgi/", "index", ".htaccess", ".hidden", "", "../app/api.py"])
def test_the_document_root_gives_nothing_away(exposed, name):
    assert_hidden(exposed.apache.client("public.test").ask("GET", f"/{name}"))


@pytest.mark.parametrize("name", ["index.cgi", "index.cgi/locks/x", "locks/x", ""])
def test_where_scripts_are_not_allowed_the_source_is_not_served(exposed, name):
    answer = exposed.apache.client("no-scripts.test").ask("GET", f"/{name}")
    assert answer.status in (403, 404)
    assert SECRET not in answer.body
