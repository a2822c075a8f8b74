"""`tools/test.py` on a small project: what its last lines say and what its exit code is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.parts import requires
from tools import environment
from tools import test as test_tool
from tools.environment import ROOT

TESTS = '''\
"""Tests that pass and tests that ask for a part."""

import pytest

from tests.parts import requires


def test_passes():
    pass


def test_asks_for_a_part():
    requires(False, "a part")


@pytest.mark.xdist_group("server")
@pytest.mark.requires(False, "a server")
@pytest.mark.parametrize("address", ["me@home", "you"])
def test_asks_for_a_server(address):
    raise AssertionError
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of one module and a few tests, with the tools and the `.venv` of this one."""
    required = environment.digests(ROOT / "tests" / "requirements.txt", ROOT)
    requires(environment.is_installed(ROOT / ".venv", required), "a .venv that tools/test.py has made with this Python")
    root = tmp_path_factory.mktemp("project")
    copied = ["pyproject.toml", "app/__init__.py", "tests/__init__.py", "tests/conftest.py", "tests/parts.py"]
    copied += ["tools/__init__.py", "tools/environment.py", "tools/test.py"]
    for name in [*copied, *required]:
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "tests" / "test_three.py").write_text(TESTS)
    (root / ".venv").symlink_to(ROOT / ".venv")
    return root


def run(project, command: str, *arguments: str, **surroundings: str) -> tuple[int, list[str]]:
    """Run a command of Python where it finds no apt-get; return its exit code and what it printed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "KANNUKI_", "CI"))}
    ended = subprocess.run(
        [sys.executable, *command.split(), *arguments],
        cwd=project,
        env={**kept, "PATH": "/nowhere", **surroundings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ended.returncode, [line for line in ended.stdout.splitlines() if line]


def test_skipped_tests_are_named_with_their_reason_in_the_last_lines(project):
    code, lines = run(project, "tools/test.py -n 1")
    assert code == 0, lines
    assert lines[-3:-1] == [
        "tests/test_three.py::test_asks_for_a_part: a part",
        "tests/test_three.py::test_asks_for_a_server: a server (2 cases)",
    ]
    assert "1 passed, 3 skipped" in lines[-1]


def test_in_ci_a_missing_part_is_a_failure(project):
    code, lines = run(project, "-m pytest", CI="true")
    assert code == 1
    assert "1 failed, 1 passed, 2 errors" in lines[-1]


def test_a_failed_check_fails_the_run_and_is_named_in_the_last_lines(project):
    faulty = project / "app" / "faulty.py"
    faulty.write_text("import os\ncount: int='none'\n")
    try:
        code, lines = run(project, "tools/test.py -n 0", "tests/test_three.py::test_passes")
    finally:
        faulty.unlink()
    assert code == 1
    assert "1 passed" in lines[-1]
    assert lines[-2] == "ruff format --check, ruff check, mypy"
    for said in ("unformatted", "F401", "Incompatible types"):
        assert [line for line in lines if line.startswith("app/faulty.py:") and said in line]


def test_the_exit_code_of_pytest_comes_back(monkeypatch):
    ended = subprocess.CompletedProcess([], pytest.ExitCode.NO_TESTS_COLLECTED)
    monkeypatch.setattr(test_tool, "install_debian_packages", lambda: None)
    monkeypatch.setattr(environment, "ensure", lambda file: file)
    monkeypatch.setattr(test_tool, "failed_checks", lambda python: [])
    monkeypatch.setattr(test_tool.subprocess, "run", lambda *arguments, **options: ended)
    assert test_tool.main(["-k", "nothing"]) == pytest.ExitCode.NO_TESTS_COLLECTED


def test_help_runs_nothing(project):
    code, lines = run(project, "tools/test.py --help")
    assert code == 0
    assert lines[0] == "usage: python3 tools/test.py [-h] [pytest arguments]"


class Debian:
    """Stands in for dpkg-query and apt-get."""

    def __init__(self, installed: list[str], failing: int = 0) -> None:
        self.installed = installed
        self.failing = failing
        self.ran: list[str] = []

    def run(self, command: list[str], **_options: object) -> subprocess.CompletedProcess[bytes]:
        if command[0] == "dpkg-query":
            listed = "".join(f"{package} installed\n" for package in self.installed) + "another config-files\n"
            return subprocess.CompletedProcess(command, 1, listed.encode())
        self.ran.append(" ".join(command[command.index("DPkg::Lock::Timeout=120") + 1 :]))
        self.failing -= 1
        return subprocess.CompletedProcess(
            command, 100 if self.failing >= 0 else 0, b"E: said at length\nE: no network\n"
        )


@pytest.fixture
def debian(monkeypatch):
    def stand_in(**facts) -> Debian:
        system = Debian(**facts)
        monkeypatch.setattr(test_tool.subprocess, "run", system.run)
        monkeypatch.setattr(test_tool.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(test_tool.os, "geteuid", lambda: 0)
        monkeypatch.setattr(test_tool.importlib.util, "find_spec", lambda name: name)
        return system

    return stand_in


INSTALL = "install --yes --no-install-recommends"


def test_nothing_is_installed_where_nothing_is_missing(debian):
    system = debian(installed=test_tool.DEBIAN_PACKAGES)
    test_tool.install_debian_packages()
    assert system.ran == []


def test_only_what_is_missing_is_installed(debian):
    system = debian(installed=["apache2-suexec-pristine", "curl"])
    test_tool.install_debian_packages()
    assert system.ran == [f"{INSTALL} apache2-bin"]


def test_the_package_lists_are_fetched_only_after_a_failure(debian, capsys):
    system = debian(installed=["apache2-bin", "curl"], failing=1)
    test_tool.install_debian_packages()
    assert system.ran == [f"{INSTALL} apache2-suexec-pristine", "update", f"{INSTALL} apache2-suexec-pristine"]
    assert "could not install" not in capsys.readouterr().err


def test_a_failed_installation_is_a_sentence_and_the_rest_goes_on(debian, capsys):
    debian(installed=["apache2-bin", "curl"], failing=3)
    test_tool.install_debian_packages()
    assert "E: no network" in capsys.readouterr().err.splitlines()[-1]


def test_a_user_who_is_not_root_installs_nothing(debian, monkeypatch):
    system = debian(installed=[])
    monkeypatch.setattr(test_tool.os, "geteuid", lambda: 1000)
    test_tool.install_debian_packages()
    assert system.ran == []
