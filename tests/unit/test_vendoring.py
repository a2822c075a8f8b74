"""Which folder Flask is taken from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app import vendoring

OWN = f"python{sys.version_info[0]}.{sys.version_info[1]}"


def put_flask(folder: Path) -> str:
    (folder / "flask").mkdir(parents=True)
    (folder / "flask" / "__init__.py").write_text("")
    return str(folder)


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that says what the module puts on the import path."""
    monkeypatch.setattr(sys, "path", ["/elsewhere"])

    def add() -> list[str]:
        vendoring.add_library_path(str(tmp_path))
        assert sys.path[0] == "/elsewhere"
        return sys.path[1:]

    return add


def environment(root: Path, version: str) -> Path:
    return root / ".venv" / "lib" / version / "site-packages"


def test_vendor_comes_before_the_virtual_environment(tmp_path, added):
    vendor = put_flask(tmp_path / "vendor")
    put_flask(environment(tmp_path, OWN))
    assert added() == [vendor]


def test_a_vendor_folder_without_flask_is_passed_over(tmp_path, added):
    (tmp_path / "vendor").mkdir()
    own = put_flask(environment(tmp_path, OWN))
    assert added() == [own]


def test_the_environment_of_the_same_python_comes_before_newer_ones(tmp_path, added):
    put_flask(environment(tmp_path, "python3.99"))
    own = put_flask(environment(tmp_path, OWN))
    assert added() == [own]


def test_of_other_environments_the_newest_is_taken_by_number(tmp_path, added):
    put_flask(environment(tmp_path, "python3.100"))
    newest = put_flask(environment(tmp_path, "python3.101"))
    put_flask(environment(tmp_path, "python3.99"))
    assert added() == [newest]


def test_an_environment_without_flask_is_passed_over(tmp_path, added):
    environment(tmp_path, OWN).mkdir(parents=True)
    other = put_flask(environment(tmp_path, "python3.99"))
    assert added() == [other]


def test_strange_names_in_the_environment_are_passed_over(tmp_path, added):
    put_flask(environment(tmp_path, "python3.x"))
    put_flask(environment(tmp_path, "pypy3.10"))
    assert added() == []


def test_a_folder_is_added_once(tmp_path, added):
    vendor = put_flask(tmp_path / "vendor")
    added()
    assert added() == [vendor]


def test_nothing_is_added_where_python_has_its_own_packages(added):
    assert added() == []


def test_without_site_the_packages_of_python_and_of_the_user_are_added(tmp_path):
    user_packages = tmp_path / "home" / ".local" / "lib" / OWN / "site-packages"
    put_flask(user_packages)
    (tmp_path / "project").mkdir()
    program = (
        f"import sys; sys.path.insert(0, {str(Path(vendoring.__file__).parents[1])!r})\n"
        f"from app import vendoring; vendoring.add_library_path({str(tmp_path / 'project')!r})\n"
        "import flask; print(flask.__file__); print(*sys.path, sep='\\n')"
    )
    found = subprocess.run(
        [sys.executable, "-ISB", "-c", program],
        env={"HOME": str(tmp_path / "home"), "PYTHONUSERBASE": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert str(user_packages) in found
    assert any(place.endswith("-packages") and not place.startswith(str(tmp_path)) for place in found)
