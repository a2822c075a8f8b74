"""What index.cgi does by itself, with a few lines in the place of the service."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosting import machine
from tests.hosting.direct import run_script
from tests.hosting.trees import PROJECT, edit

THIS_PYTHON = [sys.executable, "-IS"]
OLD_PYTHONS = ("2.7", "3.6", "3.7", "3.8")
#: the flags of the first line that those Pythons know
OLD_FLAGS = {"2.7": "-ES"}
NO_OTHER_PYTHONS = ('    "/', '    "/nowhere/')
STAND_IN = """
import sys
def run_cgi(root):
    import app.part
    print("Status: 200 OK\\r\\n\\r\\n" + app.part.WORD, root, sys.flags.isolated, sys.flags.no_site)
"""
BIG = b"x" * 300_000


@pytest.fixture
def root(tmp_path):
    """A project with a stand-in for the service."""
    root = tmp_path / "project"
    (root / "app").mkdir(parents=True)
    shutil.copytree(PROJECT / "public_html", root / "public_html")
    (root / "app" / "__init__.py").write_text("")
    (root / "app" / "part.py").write_text('WORD = "v-1"\n')
    (root / "app" / "bootstrap.py").write_text(STAND_IN)
    (root / "var").mkdir(mode=0o700)
    return root


def without_other_pythons(root: Path) -> None:
    script = root / "public_html" / "index.cgi"
    script.write_text(script.read_text().replace(*NO_OTHER_PYTHONS))


# Which project


def test_the_project_is_the_folder_above(root):
    assert str(root) in run_script(root, THIS_PYTHON).answer.text()


def test_the_project_is_the_folder_of_the_script_if_it_holds_the_app(root):
    shutil.move(root / "public_html" / "index.cgi", root / "index.cgi")
    assert str(root) in run_script(root, THIS_PYTHON, script="index.cgi").answer.text()


def test_another_app_in_the_folder_above_is_not_taken_for_the_project(root):
    shutil.move(root / "public_html" / "index.cgi", root / "index.cgi")
    (root.parent / "app").mkdir()
    assert str(root) in run_script(root, THIS_PYTHON, script="index.cgi").answer.text()


@pytest.mark.parametrize("written", ["{root}", "{root}/", "../project"])
def test_the_project_is_what_the_script_says(root, written):
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    script = shutil.copy(root / "public_html" / "index.cgi", elsewhere / "index.cgi")
    edit(script, 'ROOT = ""', f'ROOT = "{written.format(root=root)}"')
    run = run_script(root.parent, THIS_PYTHON, script="elsewhere/index.cgi")
    assert f" {root} " in run.answer.text()


def test_a_folder_with_a_dot_at_its_beginning_is_no_hindrance(root, tmp_path):
    hidden = tmp_path / ".hidden"
    root.rename(hidden)
    assert str(hidden) in run_script(hidden, THIS_PYTHON).answer.text()


def test_without_the_app_it_says_so(root):
    shutil.rmtree(root / "app")
    run = run_script(root, THIS_PYTHON, body=BIG)
    assert_readable(run, root)
    assert "app" in run.answer.json()["detail"]


def assert_readable(run, root) -> None:
    assert run.answer.status == 500
    assert run.answer.media_type == "application/problem+json"
    problem = run.answer.json()
    assert problem["type"] == "/problems/internal-error"
    assert problem["title"] == "Internal error."
    assert problem["status"] == 500
    assert str(root) not in run.answer.text()
    assert run.answer.header("Cache-Control") == "no-store"
    assert run.answer.header("X-Content-Type-Options") == "nosniff"
    assert problem["detail"] in run.log
    assert run.unread == 0


# A Python that is too old


@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_an_old_python_hands_over_to_a_newer_one(root, version):
    old = machine.python(version)
    edit(root / "public_html" / "index.cgi", '    "/usr/bin/python3",\n', f'    "{sys.executable}",\n')
    run = run_script(root, [old, OLD_FLAGS.get(version, "-IS")], body=b"{}")
    assert run.answer.status == 200, run.log
    assert run.answer.text().split()[-2:] == ["1", "1"], "the flags of the first line are not kept"
    assert run.unread == 2, "the body is no longer there for the service"


@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_an_old_python_says_what_to_do_where_there_is_no_newer_one(root, version):
    old = machine.python(version)
    without_other_pythons(root)
    run = run_script(root, [old, OLD_FLAGS.get(version, "-IS")], method="POST", body=BIG)
    assert_readable(run, root)
    detail = run.answer.json()["detail"]
    assert f"Python {version}" in detail
    assert "3.9" in detail
    assert "first line of index.cgi" in detail


@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_an_old_python_answers_a_browser_in_html(root, version):
    old = machine.python(version)
    without_other_pythons(root)
    run = run_script(root, [old, OLD_FLAGS.get(version, "-IS")], headers={"Accept": "text/html,*/*;q=0.8"})
    assert run.answer.status == 500
    assert run.answer.media_type == "text/html"
    assert "<p>The service needs Python 3.9" in run.answer.text()


def test_other_old_pythons_are_each_tried_once(root):
    old, older = machine.python("3.8"), machine.python("3.7")
    without_other_pythons(root)
    script = root / "public_html" / "index.cgi"
    edit(script, "PYTHONS = (\n", f'PYTHONS = (\n    "/nowhere/at/all",\n    "{old}",\n    "{older}",\n    "{old}",\n')
    run = run_script(root, [older, "-IS"])
    assert_readable(run, root)
    assert run.log.count("kannuki:") == 1
    assert "Python 3.8" in run.answer.json()["detail"], "the last in the list was not tried"


@pytest.mark.parametrize("tried", ["", "x", "-1", "99", "²"])
def test_a_strange_count_of_tried_pythons_is_no_hindrance(root, tried):
    old = machine.python("3.8")
    without_other_pythons(root)
    run = run_script(root, [old, "-IS"], variables={"KANNUKI_PYTHONS_TRIED": tried})
    assert_readable(run, root)


# Other faults


def test_a_fault_while_starting_is_told_and_its_reason_is_only_in_the_log(root):
    (root / "app" / "bootstrap.py").write_text("raise RuntimeError('secret')")
    run = run_script(root, THIS_PYTHON, body=BIG)
    assert_readable(run, root)
    assert "secret" not in run.answer.text()
    assert "RuntimeError: secret" in run.log
    assert "Traceback" in run.log


@pytest.mark.parametrize("name", ["flask", "flask.json", "werkzeug.exceptions", "jinja2", "click", "markupsafe"])
def test_a_missing_package_is_named_with_the_command_that_brings_it(root, name):
    (root / "app" / "part.py").write_text(f"raise ModuleNotFoundError('No module', name={name!r})")
    run = run_script(root, THIS_PYTHON, body=BIG)
    assert_readable(run, root)
    detail = run.answer.json()["detail"]
    assert name.partition(".")[0] in detail
    assert "python3 -m pip install --target vendor -r app/requirements.txt" in detail


def test_a_missing_part_of_the_service_is_not_taken_for_a_missing_package(root):
    (root / "app" / "part.py").unlink()
    run = run_script(root, THIS_PYTHON)
    assert_readable(run, root)
    assert "vendor" not in run.answer.json()["detail"]


def test_a_head_request_gets_the_headers_of_a_fault_without_its_page(root):
    shutil.rmtree(root / "app")
    answer = run_script(root, THIS_PYTHON, method="HEAD").answer
    assert answer.status == 500
    assert answer.body == b""


@pytest.mark.parametrize(
    ("script_name", "target", "base"),
    [
        ("/index.cgi", "/locks/x", ""),
        ("/service/index.cgi", "/service/locks/x", "/service"),
        ("/public_html/index.cgi", "/locks/x", ""),
        ("/public_html/index.cgi", "/locks/x?y=/public_html/", ""),
        ("/public_html/index.cgi", "/public_html/locks/x", "/public_html"),
        ("/site/public_html/index.cgi", "/site/locks/x", "/site"),
        ("/site/public_html/index.cgi", "http://h/site/locks/x", "/site"),
        ('/a "b"/index.cgi', "/locks/x", '/a "b"'),
    ],
)
def test_the_type_of_a_fault_is_an_address_of_this_service(root, script_name, target, base):
    shutil.rmtree(root / "app")
    answer = run_script(root, THIS_PYTHON, target=target, variables={"SCRIPT_NAME": script_name}).answer
    assert answer.json()["type"] == base + "/problems/internal-error"


def test_a_terminal_is_not_waited_for(root):
    """Outside of a web server nobody sends a body."""
    shutil.rmtree(root / "app")
    run = run_script(root, THIS_PYTHON, body=b"left alone", variables={"GATEWAY_INTERFACE": ""})
    assert run.answer.status == 500


# Bytecode


def bytecode(root: Path) -> list[Path]:
    return sorted((root / "var" / "pycache").rglob("*.pyc"))


def rewrite(path: Path, text: str) -> None:
    """Replace a file's text as an upload within the same second and of the same size does."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def test_bytecode_is_kept_in_var_for_the_user_alone(root):
    run_script(root, THIS_PYTHON)
    assert [path.name.partition(".")[0] for path in bytecode(root)] == ["__init__", "bootstrap", "part"]
    assert not list((root / "app").rglob("*.pyc"))
    for path in (root / "var").rglob("*"):
        assert path.stat().st_mode & 0o7777 == (0o700 if path.is_dir() else 0o600), path


def test_bytecode_is_used_again(root):
    run_script(root, THIS_PYTHON)
    before = [path.stat().st_mtime_ns for path in bytecode(root)]
    assert "v-1" in run_script(root, THIS_PYTHON).answer.text()
    assert [path.stat().st_mtime_ns for path in bytecode(root)] == before


def test_a_new_file_of_the_same_size_and_second_is_run(root):
    run_script(root, THIS_PYTHON)
    rewrite(root / "app" / "part.py", 'WORD = "v-2"\n')
    assert "v-2" in run_script(root, THIS_PYTHON).answer.text()
    assert len(bytecode(root)) == 3, "bytecode of the old file is left behind"


def test_a_file_renamed_into_place_is_run(root):
    run_script(root, THIS_PYTHON)
    upload = root / "app" / "part.py.upload"
    shutil.copy2(root / "app" / "part.py", upload)
    rewrite(upload, 'WORD = "v-2"\n')
    upload.replace(root / "app" / "part.py")
    assert "v-2" in run_script(root, THIS_PYTHON).answer.text()


@pytest.mark.parametrize("length", [0, 8, 16, 20, 60])
def test_bytecode_that_a_full_disk_cut_off_is_made_anew(root, length):
    run_script(root, THIS_PYTHON)
    whole = [path.read_bytes() for path in bytecode(root)]
    for path in bytecode(root):
        path.write_bytes(path.read_bytes()[:length])
    assert "v-1" in run_script(root, THIS_PYTHON).answer.text()
    assert [path.read_bytes() for path in bytecode(root)] == whole


@pytest.mark.parametrize("text", ["WORD = '\0'\n", "WORD = '\udcff'\n", "WORD = (\n"])
def test_a_faulty_file_of_the_service_is_told_in_the_log(root, text):
    (root / "app" / "part.py").write_bytes(text.encode("utf-8", "surrogateescape"))
    run = run_script(root, THIS_PYTHON)
    assert_readable(run, root)
    assert "Error" in run.log


def test_without_a_place_for_bytecode_it_runs_all_the_same(root):
    (root / "var").rmdir()
    (root / "var").write_text("not a folder")
    assert "v-1" in run_script(root, THIS_PYTHON).answer.text()


def test_packages_below_the_project_are_found_and_kept_too(root):
    (root / "vendor" / "library").mkdir(parents=True)
    (root / "vendor" / "library" / "__init__.py").write_text('WORD = "from a package"\n')
    (root / "app" / "part.py").write_text(
        'import sys\nsys.path.append(sys.path[0] + "/vendor")\nfrom library import WORD\nimport json.tool\n'
    )
    assert "from a package" in run_script(root, THIS_PYTHON).answer.text()
    kept = [str(path) for path in bytecode(root)]
    assert any("/vendor/library/" in path for path in kept)
    assert not any("/json/" in path for path in kept), "the library of Python has bytecode of its own"


def test_the_public_way_to_the_import_machinery_does_the_same(root):
    edit(root / "public_html" / "index.cgi", "import _frozen_importlib_external as", "import _no_such_module as")
    assert "v-1" in run_script(root, THIS_PYTHON).answer.text()
    assert len(bytecode(root)) == 3


def test_it_loads_nothing_that_python_has_not_loaded_itself(root):
    (root / "app" / "bootstrap.py").write_text(
        "def run_cgi(root):\n    import sys\n    print('Status: 200 OK\\r\\n\\r\\n', *sys.modules)\n"
    )
    loaded = set(run_script(root, THIS_PYTHON).answer.text().split())
    (root / "bare.py").write_text("import sys\nprint('Status: 200 OK\\r\\n\\r\\n', *sys.modules)\n")
    bare = set(run_script(root, THIS_PYTHON, script="bare.py").answer.text().split())
    assert loaded - bare == {"app", "app.bootstrap"}


# The file itself


def test_the_file_is_one_that_a_web_server_accepts():
    script = PROJECT / "public_html" / "index.cgi"
    text = script.read_bytes()
    assert text.startswith(b"#!/usr/bin/python3 -IS\n"), "an absolute path and one group of flags, no byte-order mark"
    assert b"\r" not in text, "a carriage return becomes part of the interpreter's name"
    assert text.isascii(), "Python 2 does not read other characters"
    assert script.stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("version", [*OLD_PYTHONS, "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_the_file_is_read_by_every_python(version, tmp_path):
    copy = shutil.copy(PROJECT / "public_html" / "index.cgi", tmp_path / "script.py")
    check = ["-c", "import sys; compile(open(sys.argv[1]).read(), 'index.cgi', 'exec')"]
    subprocess.run([machine.python(version), *check, str(copy)], check=True)
