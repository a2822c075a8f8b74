"""The README says what is so: its shell lines run, and everything there is stands in it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from waitress.server import create_server

from app.api import ANY, ROUTES
from app.bootstrap import build_service
from app.file_rate_limits import FileRateLimitStorage
from app.problems import PROBLEMS
from app.ratelimit import DEFAULT_RATE_LIMITS
from app.settings import DEFAULTS
from app.web import create_app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE_ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture
def address(tmp_path: Path):
    """A real server on a free port."""
    server = create_server(create_app(build_service(str(tmp_path / "var"))), host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    server.trigger.pull_trigger(server.close)
    server.task_dispatcher.shutdown()
    server.asyncore.close_all(server._map)
    thread.join(10)


def walk_through() -> list[tuple[str, str]]:
    """Return the shell blocks of the walk-through with the answers printed below them."""
    return re.findall(r"```sh\n(.*?)```\n(?:\n```json\n(.*?)```)?", README, re.DOTALL)


def without_times(document: object) -> str:
    instants = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "INSTANT", json.dumps(document, sort_keys=True))
    return re.sub(r'"fencing_token": \d{13}', "TOKEN", instants)


def test_every_shell_line_of_the_walk_through_answers_what_stands_below_it(address: str):
    assert len(walk_through()) >= 8
    for command, answer in walk_through():
        ran = subprocess.run(
            ["sh", "-c", command.replace("curl ", "curl -sS ").replace(EXAMPLE_ADDRESS, address)],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert without_times(json.loads(ran.stdout or "null")) == without_times(json.loads(answer or "null")), command


def test_every_route_is_in_the_readme():
    for path, methods in ROUTES:
        parts = ["slug}" if path[0] == b"problems" and part is ANY else part for part in path]
        names = ["{" + part if part == "slug}" else "{resource}" if part is ANY else part.decode() for part in parts]
        for method in methods:
            assert f"| `{method} /{'/'.join(names)}` |" in README


def test_every_kind_of_error_is_in_the_readme_with_its_status():
    for slug, (status, _, _) in PROBLEMS.items():
        assert f"| `{slug}` | {status} |" in README


def test_every_code_of_a_fault_is_in_the_readme():
    codes = set()
    for module in ("lease.py", "api.py", "overview.py"):
        for node in ast.walk(ast.parse((ROOT / "app" / module).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Fault":
                code = node.args[1]
                assert isinstance(code, ast.Constant)
                codes.add(code.value)
    listed = README[README.index("The codes are") :].partition(". A browser")[0]
    assert codes == set(re.findall(r"`(\w+)`", listed))


def test_every_setting_is_in_the_readme_with_its_default():
    for name, default in DEFAULTS.items():
        shown = (
            "see above"
            if name == "RATE_LIMITS"
            else f"`{json.dumps(default) if isinstance(default, str) else default}`"
        )
        assert f"| `{name}` | {shown} |" in README


def test_every_policy_is_in_the_readme_with_its_default():
    for policy, (limit, window_seconds) in DEFAULT_RATE_LIMITS.items():
        assert re.search(rf"\| `{policy}` \| [^|]+ \| {limit} in {window_seconds} s\b", README)


@pytest.mark.parametrize("tool", ["serve", "sweep", "doctor"])
def test_every_flag_of_a_tool_is_in_the_readme(tool: str):
    command = [sys.executable, str(ROOT / "tools" / f"{tool}.py"), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    for flag in set(re.findall(r"--[a-z-]+", shown)) - {"--help"}:
        assert flag in README, flag


def test_every_module_and_every_folder_of_tests_is_in_the_readme():
    for module in (ROOT / "app").glob("*.py"):
        assert module.name == "__init__.py" or f"`app/{module.name}`" in README, module.name
    for folder in (ROOT / "tests").iterdir():
        assert not folder.is_dir() or folder.name.startswith("_") or f"`tests/{folder.name}`" in README, folder.name


def test_every_state_file_is_in_the_readme(tmp_path: Path):
    service = build_service(str(tmp_path))
    service.locks.acquire("a", "b", 60)
    FileRateLimitStorage(str(tmp_path / "rate-limits"), service.clock).hit("key", 60)
    for path in tmp_path.iterdir():
        assert f"`{path.name}{'/' if path.is_dir() else ''}`" in README, path.name
