"""What index.cgi and app/startup.py do by themselves, with a few lines in the place of the service."""

from __future__ import annotations

import re
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
STAND_IN = """
import sys
def run_cgi(root):
    import app.part
    print("Status: 200 OK\\r\\n\\r\\n" + app.part.WORD, root, sys.flags.isolated, sys.flags.no_site)
"""
BIG = b"x" * 300_000


@pytest.fixture
def root(tmp_path):
    """A project with a stand-in for the service, a hot module and one that is not."""
    root = tmp_path / "project"
    (root / "app").mkdir(parents=True)
    shutil.copytree(PROJECT / "public_html", root / "public_html")
    shutil.copy(PROJECT / "app" / "startup.py", root / "app")
    lane = (PROJECT / "app" / "lane.py").read_text()
    lane, replaced = re.subn(r"(?s)\nHOT = \(.*?\n\)\n", '\nHOT = ("app", "app.bootstrap")\n', lane)
    assert replaced == 1
    (root / "app" / "lane.py").write_text(lane)
    (root / "app" / "__init__.py").write_text("")
    (root / "app" / "part.py").write_text('WORD = "v-1"\n')
    (root / "app" / "bootstrap.py").write_text(STAND_IN)
    (root / "var").mkdir(mode=0o700)
    return root


def without_other_pythons(root: Path) -> None:
    startup = root / "app" / "startup.py"
    startup.write_text(startup.read_text().replace('    "/', '    "/nowhere/'))


def break_code(root: Path) -> None:
    (root / "app" / "bootstrap.py").write_text("raise RuntimeError('secret')")


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


@pytest.mark.parametrize("written", ["{root}", "{root}/"])
def test_the_project_is_what_the_script_says(root, written):
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    script = shutil.copy(root / "public_html" / "index.cgi", elsewhere / "index.cgi")
    edit(script, 'ROOT = ""', f'ROOT = "{written.format(root=root)}"')
    run = run_script(root.parent, THIS_PYTHON, script="elsewhere/index.cgi")
    assert Path(run.answer.text().split()[1]) == root


def test_a_folder_with_a_dot_at_its_beginning_is_no_hindrance(root, tmp_path):
    hidden = tmp_path / ".hidden"
    root.rename(hidden)
    assert str(hidden) in run_script(hidden, THIS_PYTHON).answer.text()


def test_without_the_app_it_says_so(root):
    shutil.rmtree(root / "app")
    run = run_script(root, THIS_PYTHON, body=BIG)
    assert_readable(run, root, logged="The folder app was not found")
    assert "app" in run.answer.json()["detail"]


def assert_readable(run, root, logged: str = "") -> None:
    assert run.answer.status == 500
    assert run.answer.media_type == "application/problem+json"
    problem = run.answer.json()
    assert problem["type"] == "/problems/internal-error"
    assert problem["title"] == "Internal error."
    assert problem["status"] == 500
    assert str(root) not in run.answer.text()
    assert run.answer.header("Cache-Control") == "no-store"
    assert run.answer.header("X-Content-Type-Options") == "nosniff"
    assert (logged or problem["detail"]) in run.log
    assert run.unread == 0


# A Python that is too old


@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_an_old_python_hands_over_to_a_newer_one(root, version):
    old = machine.python(version)
    edit(root / "app" / "startup.py", '    "/usr/bin/python3",\n', f'    "{sys.executable}",\n')
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
    startup = root / "app" / "startup.py"
    edit(startup, "PYTHONS = (\n", f'PYTHONS = (\n    "/nowhere/at/all",\n    "{old}",\n    "{older}",\n    "{old}",\n')
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
    break_code(root)
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
    break_code(root)
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
    break_code(root)
    answer = run_script(root, THIS_PYTHON, target=target, variables={"SCRIPT_NAME": script_name}).answer
    assert answer.json()["type"] == base + "/problems/internal-error"


def test_a_terminal_is_not_waited_for(root):
    """Outside of a web server nobody sends a body."""
    break_code(root)
    run = run_script(root, THIS_PYTHON, body=b"left alone", variables={"GATEWAY_INTERFACE": ""})
    assert run.answer.status == 500


# The file itself


def test_the_file_is_one_that_a_web_server_accepts():
    script = PROJECT / "public_html" / "index.cgi"
    text = script.read_bytes()
    assert text.startswith(b"#!/usr/bin/python3 -IS\n"), "an absolute path and one group of flags, no byte-order mark"
    assert b"\r" not in text, "a carriage return becomes part of the interpreter's name"
    assert text.isascii(), "Python 2 does not read other characters"
    assert script.stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("version", [*OLD_PYTHONS, "3.9", "3.10", "3.11", "3.12", "3.13"])
@pytest.mark.parametrize("file", ["public_html/index.cgi", "app/startup.py", "app/__init__.py"])
def test_what_runs_before_the_version_is_known_is_read_by_every_python(version, file, tmp_path):
    copy = shutil.copy(PROJECT / file, tmp_path / "script.py")
    check = ["-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')"]
    subprocess.run([machine.python(version), *check, str(copy)], check=True)
