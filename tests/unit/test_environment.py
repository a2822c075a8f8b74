"""How the tools make `.venv`: with a stand-in for venv and pip, and once for real without any network."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import environment

ENSURE = "import sys, pathlib; from tools import environment as e; print(e.ensure(*map(pathlib.Path, sys.argv[1:])))"


class Commands:
    """Stands in for venv and pip: remembers what was run and leaves behind what they would."""

    def __init__(self, root: Path) -> None:
        self.run: list[str] = []
        self.complaint = ""
        self._venv = root / ".venv"

    def __call__(self, command: list[str], lock: int) -> str:
        self.run.append(command[2])
        if command[2] == "venv":
            make_empty_venv(self._venv)
            return ""
        return self.complaint


def make_empty_venv(venv: Path) -> None:
    packages = environment.record_of(venv).parent
    packages.mkdir(parents=True, exist_ok=True)
    environment.record_of(venv).unlink(missing_ok=True)
    environment.python_of(venv).parent.mkdir(exist_ok=True)
    environment.python_of(venv).unlink(missing_ok=True)
    environment.python_of(venv).touch(mode=0o755)
    (venv / "pyvenv.cfg").touch()


@pytest.fixture
def root(tmp_path):
    for name, content in {
        "app": "flask==1\n",
        "tools": "-r ../app/requirements.txt\n",
        "tests": "-r ../tools/requirements.txt\n",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "requirements.txt").write_text(content)
    return tmp_path


@pytest.fixture
def commands(root, monkeypatch):
    stand_in = Commands(root)
    monkeypatch.setattr(environment, "last_words", stand_in)
    return stand_in


def ensure(root: Path, name: str = "tools") -> Path:
    return environment.ensure(root / name / "requirements.txt", root)


def refusal(root: Path, name: str = "tools") -> str:
    """The sentence that the program ends with, and nothing else: exit code 1."""
    with pytest.raises(SystemExit) as ended:
        ensure(root, name)
    assert isinstance(ended.value.code, str)
    assert "\n" not in ended.value.code
    assert ended.value.code.endswith(".")
    return ended.value.code


def test_the_first_start_makes_the_environment_and_says_so(root, commands, capsys):
    assert ensure(root) == root / ".venv" / "bin" / "python"
    assert commands.run == ["venv", "pip"]
    assert capsys.readouterr().err.startswith("Setting up .venv with Python ")


def test_the_second_start_runs_nothing_and_says_nothing(root, commands, capsys):
    ensure(root)
    capsys.readouterr()
    commands.run.clear()
    ensure(root)
    assert commands.run == []
    assert capsys.readouterr() == ("", "")


def test_what_was_installed_for_the_tests_is_enough_for_the_server(root, commands):
    ensure(root, "tests")
    commands.run.clear()
    ensure(root, "tools")
    assert commands.run == []


@pytest.mark.parametrize("changed", ["app", "tools"])
def test_a_changed_requirement_file_is_installed_into_the_same_environment(root, commands, changed):
    ensure(root)
    commands.run.clear()
    with (root / changed / "requirements.txt").open("a") as file:
        file.write("another==1\n")
    ensure(root)
    assert commands.run == ["pip"]


def lose_python(venv: Path) -> None:
    environment.python_of(venv).unlink()


def point_python_nowhere(venv: Path) -> None:
    environment.python_of(venv).unlink()
    environment.python_of(venv).symlink_to("/nowhere/python3")


def lose_packages(venv: Path) -> None:
    (venv / "lib").rename(venv / "away")


def lose_settings(venv: Path) -> None:
    (venv / "pyvenv.cfg").unlink()


def end_before_the_record(venv: Path) -> None:
    environment.record_of(venv).unlink()


def spoil_the_record(venv: Path) -> None:
    environment.record_of(venv).write_text("[")


def make_the_record_a_list(venv: Path) -> None:
    environment.record_of(venv).write_text("[]")


@pytest.mark.parametrize(
    "harm",
    [
        lose_python,
        point_python_nowhere,
        lose_packages,
        lose_settings,
        end_before_the_record,
        spoil_the_record,
        make_the_record_a_list,
    ],
)
def test_a_broken_or_half_made_environment_is_made_anew(root, commands, harm):
    ensure(root)
    commands.run.clear()
    harm(root / ".venv")
    ensure(root)
    assert commands.run == ["venv", "pip"]


def test_an_environment_of_another_python_version_is_made_anew(root, commands, monkeypatch):
    ensure(root)
    commands.run.clear()
    monkeypatch.setattr(environment, "version", lambda: "3.99")
    ensure(root)
    assert commands.run == ["venv", "pip"]


def test_a_first_start_without_network_is_one_sentence_and_is_tried_again(root, commands):
    commands.complaint = "No matching distribution found for flask==1"
    said = refusal(root)
    assert "needs the network" in said
    assert commands.complaint in said
    commands.complaint = ""
    commands.run.clear()
    ensure(root)
    assert commands.run == ["venv", "pip"]


def test_an_update_without_network_leaves_what_was_there_in_use(root, commands):
    ensure(root, "tools")
    commands.complaint = "No matching distribution found for pytest==1"
    refusal(root, "tests")
    commands.run.clear()
    ensure(root, "tools")
    assert commands.run == []


def test_a_start_that_dies_while_pip_runs_leaves_no_record(root, commands, monkeypatch):
    ensure(root, "tools")

    def die(command, lock):
        assert not environment.record_of(root / ".venv").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(environment, "last_words", die)
    assert "next start" in refusal(root, "tests")
    assert environment.recorded(root / ".venv") == {}


def test_a_folder_that_cannot_be_written_is_one_sentence(root, commands):
    # Not by its mode, which means nothing to root.
    (root / ".venv.lock").mkdir()
    assert str(root / ".venv.lock") in refusal(root)


def test_a_missing_requirement_file_is_one_sentence(root, commands):
    (root / "app" / "requirements.txt").unlink()
    assert "requirements.txt" in refusal(root)


@pytest.mark.parametrize("missing", ["ensurepip", "venv"])
def test_a_python_without_venv_is_told_the_package_to_install(root, commands, monkeypatch, missing):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find_spec(name))
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert "`apt install python3-venv`" in refusal(root)
    monkeypatch.setattr(sys, "executable", "/opt/python")
    assert f"`apt install python{environment.version()}-venv`" in refusal(root)


def test_an_old_python_is_refused_in_one_sentence(root, commands, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 8, 18, "final", 0))
    assert "needs Python 3.9 or newer" in refusal(root)
    assert commands.run == []


def test_another_kind_of_system_is_refused_in_one_sentence(root, commands, monkeypatch):
    monkeypatch.setattr(os, "name", "nt")
    with pytest.raises(SystemExit, match="WSL"):
        environment.require_supported_python()


@pytest.mark.parametrize("name", ["environment.py", "serve.py", "test.py", "__init__.py"])
def test_what_refuses_an_old_python_parses_there(name):
    source = (environment.ROOT / "tools" / name).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    # The parser lets it pass, Python 3.6 does not.
    assert not [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "WARNING: retrying\nERROR: No matching distribution found for x==1\n\n",
            "No matching distribution found for x==1",
        ),
        ("ERROR: disk full.\n[notice] A new release of pip is available\n", "disk full"),
        ("", "exit code 3"),
    ],
)
def test_the_last_words_of_a_failed_command_are_its_last_line(tmp_path, said, expected):
    script = f"import sys; sys.stderr.write({said!r}); sys.exit(3)"
    with environment.only_one_at_a_time(tmp_path / "lock") as lock:
        assert environment.last_words([sys.executable, "-c", script], lock) == expected


def make_wheel(folder: Path, name: str) -> None:
    """Write a package of one empty module, as small as pip takes it."""
    about = f"{name}-1.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", f"{name}.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")


def start(root: Path, **pip_settings: str) -> subprocess.Popen[str]:
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    return subprocess.Popen(
        [sys.executable, "-c", ENSURE, str(root / "tools" / "requirements.txt"), str(root)],
        cwd=environment.ROOT,
        env={**surroundings, "PIP_CONFIG_FILE": os.devnull, **pip_settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_first_starts_at_once_share_one_environment_that_works(root):
    wheels = root / "wheels"
    wheels.mkdir()
    make_wheel(wheels, "locksmith")
    (root / "tools" / "requirements.txt").write_text("locksmith==1\n")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}

    starts = [start(root, **offline), start(root, **offline)]
    ended = [process.communicate(timeout=120) for process in starts]

    python = str(root / ".venv" / "bin" / "python")
    assert [process.returncode for process in starts] == [0, 0], ended
    assert [output.strip() for output, _ in ended] == [python, python]
    assert "".join(said for _, said in ended).count("Setting up") == 1
    subprocess.run([python, "-c", "import locksmith"], check=True)
    assert list(json.loads(environment.record_of(root / ".venv").read_text())) == ["tools/requirements.txt"]

    # Nothing listens on the discard port: a machine without network.
    (root / "tools" / "requirements.txt").write_text("locksmith==2\n")
    unreachable = start(root, PIP_INDEX_URL="http://127.0.0.1:9/simple")
    _, said = unreachable.communicate(timeout=120)
    assert unreachable.returncode == 1
    assert said.splitlines()[1:] == [
        f"The packages of {root}/tools/requirements.txt could not be installed, which needs the network and free disk "
        "space once: No matching distribution found for locksmith==2."
    ]
    subprocess.run([python, "-c", "import locksmith"], check=True)
