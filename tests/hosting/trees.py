"""Copies of the project as they lie on a rented server."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
#: what Flask consists of
LIBRARIES = ("flask", "werkzeug", "jinja2", "click", "blinker", "itsdangerous", "markupsafe")
NO_LIMITS = 'RATE_LIMITS = {"acquire": None, "hold": None, "read": None}\n'

_left_out = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", "*.c")


def copy_project(root: Path, vendor: Path | None = None, config: str = "") -> Path:
    """Make a project folder like one that was uploaded and return it.

    Args:
        root: the folder to make.
        vendor: an existing vendor folder that this project shares.
        config: the text of `var/config.py`, none where it is empty.
    """
    root.mkdir(parents=True)
    shutil.copy(PROJECT / ".htaccess", root)
    for folder in ("app", "public_html"):
        shutil.copytree(PROJECT / folder, root / folder, ignore=_left_out)
    (root / "var").mkdir()
    shutil.copy(PROJECT / "var" / ".htaccess", root / "var")
    if config:
        (root / "var" / "config.py").write_text(config)
    if vendor is not None:
        (root / "vendor").symlink_to(vendor)
    return root


def copy_libraries(vendor: Path) -> Path:
    """Fill a vendor folder with Flask and its parts as they are installed for these tests, without compiled files."""
    for library in LIBRARIES:
        found = importlib.util.find_spec(library)
        if found is None or not found.submodule_search_locations:
            raise AssertionError(f"the test environment has no {library}")
        shutil.copytree(found.submodule_search_locations[0], vendor / library, ignore=_left_out)
    return vendor


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file exactly once."""
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path.name}"
    path.write_text(text.replace(old, new))


#: stands for the clean-up: waits until a test says by the file answer-came that it has its answer
_SHARE = """
    def sweep_a_share(self) -> None:
        for _ in range(1000):
            if os.path.exists(self._var_dir + "/answer-came"):
                os.rename(self._var_dir + "/answer-came", self._var_dir + "/answer-came-first")
                return
            sleep(0.01)
        os.mkdir(self._var_dir + "/answer-came-never")

    def never_called(self) -> None:
"""


def share_waits_for_the_answer(root: Path) -> None:
    """Make every change do a share of the clean-up, which tells whether its client was served before."""
    edit(root / "app" / "maintenance.py", "\n    def sweep_a_share(self) -> None:\n", _SHARE)
    edit(root / "app" / "api.py", "CHANGES_A_SHARE = 20", "CHANGES_A_SHARE = 1")


def hand_over(top: Path, uid: int, gid: int) -> None:
    """Give everything below and including a folder to a user, with the modes that an upload is told to set."""
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            os.chown(path, uid, gid)
            os.chmod(path, 0o755 if name == "index.cgi" else 0o644)
        os.chown(folder, uid, gid)
        os.chmod(folder, 0o700 if os.path.basename(folder) == "var" else 0o755)


def processes_in(top: Path) -> set[int]:
    """Return the processes whose working folder lies below a folder: scripts that are still running."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                folder = os.readlink(f"/proc/{name}/cwd")
            except OSError:
                continue
            if (folder + "/").startswith(f"{top}/"):
                found.add(int(name))
    return found
