"""The start of a CGI request: from one file of compiled code to the answer.

Python's own way of importing looks up, opens and checks one file after the other, which for some twenty small modules
costs a third of a bare interpreter's start. So the code of all of app/ lies compiled in one file, var/pycache/lane-…,
which app/startup.py writes. In it come one after the other

- eight digits, and so many bytes of this module's code, which public_html/index.cgi runs before any import;
- eight digits, a digest of eight bytes, and so many bytes that every request needs: the code of the modules in HOT;
- the code of each module that some requests need; its digest stands in the part before.

Python can crash on damaged code, hence the digests.

Facts about the source files stand in it too, and code counts only while they are those of the file that is there.
(Python itself takes compiled code for fresh if second and size of the source are what they were, so a file uploaded
twice in one second would go on running as it was before.)
"""

from __future__ import annotations

import gc
import marshal
import posix
import sys
from _imp import source_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Facts = tuple[int, int, int, int]
    Other = tuple[Facts, int, int, bytes]

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


def path_of(root: str, module: str) -> str:
    """Return the path of a module's source file."""
    return f"{root}/app/__init__.py" if module == "app" else f"{root}/app/{module[4:]}.py"


def lane_path(root: str) -> str:
    """Return the path of the file of compiled code for this Python."""
    # The 1 stands for what index.cgi expects of the file: eight digits, code, and in it a function run(root, lane). Who
    # changes that counts on, there too, so that it never meets a file of a release before.
    return f"{root}/var/pycache/lane-1-{sys.implementation.cache_tag}-{sys.hexversion:x}"


def facts_about(path: str) -> Facts:
    """Return what changes when a source file changes."""
    seen = posix.stat(path)
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino


class _Finder:
    """Finds in the same file of compiled code what is imported only when it is needed."""

    def __init__(self, root: str, lane: int, begin: int, others: dict[str, Other]) -> None:
        self._root = root
        self._lane = lane
        self._begin = begin
        self._others = others

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Return the spec of a module of app/, or None, which leaves the module to Python's own finders."""
        if name not in self._others:
            return None
        origin = path_of(self._root, name)
        facts, place, length, digest = self._others[name]
        code = posix.pread(self._lane, length, self._begin + place)
        if facts != facts_about(origin) or digest != source_hash(0, code):
            try:
                posix.unlink(lane_path(self._root))  # the next request compiles all anew
            except OSError:
                pass  # gone already, or it cannot be changed: then each request comes this way
            return None
        make_spec: Any = type(sys.__spec__)
        spec = make_spec(name, self, origin=origin)
        spec.has_location = True
        spec.loader_state = code
        return spec

    def create_module(self, spec: object) -> None:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module's code."""
        spec: Any = module.__spec__
        exec(marshal.loads(spec.loader_state), module.__dict__)


def run(root: str, lane: int) -> bool:
    """Answer the request by the compiled code, if it is whole and that of the source files; else return False.

    Args:
        root: the project's folder.
        lane: a descriptor of the file of compiled code, read as far as this module's.
    """
    gc.disable()  # a process that ends with its answer has nothing to collect
    sys.dont_write_bytecode = True  # what the file holds needs no other copies
    sys.path.append(root)
    try:
        _take(root, lane)
    except Exception:
        for name in HOT:
            sys.modules.pop(name, None)
        return False
    try:
        from app.bootstrap import run_cgi

        run_cgi(root)
    except Exception as error:
        from app.startup import report

        report(error)
    return True


def _take(root: str, lane: int) -> None:
    """Run the code of the modules in HOT, and let the others be found in the file.

    Raises whatever shows that the file is damaged, or not compiled from the present source files.
    """
    length = int(posix.read(lane, 8))
    digest = posix.read(lane, 8)
    content = posix.read(lane, length)
    if digest != source_hash(0, content):
        raise ValueError
    hot, others = marshal.loads(content)
    for name, (facts, _) in zip(("app.lane", *HOT), hot):
        if facts != facts_about(path_of(root, name)):
            raise ValueError
    make_module: Any = type(sys)
    for name, (_, code) in zip(HOT, hot[1:]):
        module = sys.modules[name] = make_module(name)
        module.__file__ = path_of(root, name)
        if name == "app":
            package = module
            package.__path__ = [f"{root}/app"]
        else:
            setattr(package, name[4:], module)
        exec(code, module.__dict__)
    finder: Any = _Finder(root, lane, posix.lseek(lane, 0, 1), others)
    sys.meta_path.insert(0, finder)
