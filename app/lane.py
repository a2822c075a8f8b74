"""The start of a CGI request: from one file of compiled code to the answer.

Python's own way of importing looks up, opens and checks one file after the other, which for some twenty small modules
costs a third of a bare interpreter's start. So the code of all of app/ lies compiled in one file, var/pycache/lane-…,
which public_html/index.cgi reads and app/startup.py writes. Facts about the source files stand in it too, and it counts
only while they are those of the files that are there. (Python itself takes compiled code for fresh if second and size
of the source are what they were, so a file uploaded twice in one second would go on running as it was before.)

This module's own code is the first in that file, and runs before any import.
"""

from __future__ import annotations

import gc
import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any

    Facts = list[tuple[str, int, int, int, int]]

#: what every request needs, each after what it imports: run one after the other, without a search
HOT = (
    "app",
    "app.errors",
    "app.log",
    "app.interpreter",
    "app.jsontext",
    "app.lease",
    "app.response",
    "app.api",
    "app.clock",
    "app.ratelimit",
    "app.settings",
    "app.throttle",
    "app.bootstrap",
    "app.request",
    "app.file_rate_limits",
    "app.cgi",
)


def facts_about(folder: str) -> Facts:
    """Return what changes when a source file changes, for each one in a folder."""
    facts = []
    for name in posix.listdir(folder):
        if name.endswith(".py"):
            seen = posix.stat(f"{folder}/{name}")
            facts.append((name, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino))
    return facts


class _Finder:
    """Finds what is imported only when it is needed in the same file of compiled code."""

    def __init__(self, root: str, others: dict[str, bytes]) -> None:
        self._root = root
        self._others = others

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Return the spec of a module of app/, or None."""
        if name not in self._others:
            return None
        make_spec: Any = type(sys.__spec__)
        spec = make_spec(name, self, origin=f"{self._root}/{name.replace('.', '/')}.py")
        spec.has_location = True
        return spec

    def create_module(self, spec: object) -> None:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module's code."""
        exec(marshal.loads(self._others[module.__name__]), module.__dict__)


def run(root: str, facts: Facts, hot: list[CodeType], others: dict[str, bytes]) -> bool:
    """Answer the request, if the compiled code is that of the source files; else return False.

    Args:
        root: the project's folder.
        facts: what was seen of the source files when they were compiled.
        hot: the code of the modules in HOT.
        others: name -> marshalled code, for the other modules.
    """
    if facts != facts_about(f"{root}/app"):
        return False
    gc.disable()  # a process that ends with its answer has nothing to collect
    make_module: Any = type(sys)
    for name, code in zip(HOT, hot):
        module = sys.modules[name] = make_module(name)
        module.__file__ = code.co_filename
        if name == "app":
            package = module
            package.__path__ = [f"{root}/app"]
        else:
            setattr(package, name[4:], module)
        exec(code, module.__dict__)
    finder: Any = _Finder(root, others)
    sys.meta_path.insert(0, finder)
    from app.bootstrap import run_cgi

    run_cgi(root)
    return True
