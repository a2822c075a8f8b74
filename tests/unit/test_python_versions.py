"""The code runs on each Python that is supported."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

import app
from tests.hosting.machine import python

ROOT = Path(app.__file__).parents[1]
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
FILES = sorted(path.relative_to(ROOT) for folder in ("app", "tools") for path in (ROOT / folder).rglob("*.py"))

#: compiles every file and imports what needs no Flask; a type hint that is evaluated shows only then
PROGRAM = """
import os, sys
os.chdir(sys.argv[1])
sys.path.insert(0, sys.argv[1])
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        compile(file.read(), path, "exec", dont_inherit=True)
    module = path[:-3].replace("/", ".")
    try:
        __import__(module.replace(".__init__", ""))
    except ModuleNotFoundError as error:
        if error.name != "flask":
            raise
        print(module)
"""
NEED_FLASK = ("app.web", "app.pages")


def test_the_files_are_found():
    assert {"app/lease.py", "app/sqlite_locks.py", "tools/sweep.py"} <= {str(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_file_holds_no_syntax_newer_than_python_3_9(path):
    ast.parse((ROOT / path).read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_module_compiles_and_is_imported_without_a_warning(version):
    paths = [str(path) for path in FILES if path.parts[0] == "app"]
    run = subprocess.run(
        [python(version), "-ISB", "-W", "error", "-c", PROGRAM, str(ROOT), *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert [module for module in run.stdout.split() if not module.startswith(NEED_FLASK)] == []
