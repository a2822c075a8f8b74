"""An import that runs up, or loads what a lock never uses, is easily added and costs every request of a CGI script."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.lane import HOT

PROJECT = Path(__file__).resolve().parents[2]
APP = PROJECT / "app"

#: Floors of the house, the lowest first. A module imports only modules of lower floors.
FLOORS = (
    {"", "problems", "interpreter", "clock", "log", "vendoring"},
    {"errors"},
    {"lease", "ratelimit", "jsontext"},
    {"settings_file"},
    {"settings", "request", "response", "sqlite_locks", "file_rate_limits", "memory_stores"},
    {"throttle", "maintenance"},
    {"api"},
    {"pages"},
    {"web"},
    {"cgi", "failed_service"},
    {"bootstrap"},
    {"startup"},
    {"lane"},
)
FLOOR_OF = {module: number for number, floor in enumerate(FLOORS) for module in floor}

#: One module in two files: the half that a request which finds all well does not load.
HALVES = {"lock_files": "sqlite_locks", "stale_windows": "file_rate_limits", "overview": "api"}

#: Rules: nothing of ours but other rules, no disk, no clock, no framework.
PURE = {"lease", "ratelimit", "errors", "problems"}
PURE_LIBRARY = {"__future__", "time.gmtime"}

#: Adapters are named after technologies and know the rules only, never one another or what calls them.
ADAPTERS = {"sqlite_locks", "file_rate_limits", "memory_stores"}
ADAPTERS_MAY_IMPORT = {"lease", "ratelimit", "errors", "interpreter", "jsontext"}

#: The files that the answer to a machine's request loads; the lock store only where a lock is touched.
HOT_PATH = {module.partition(".")[2] for module in HOT} | {"lane", "sqlite_locks"}
#: What they may import at their start: all else costs more than what it spares. (app.startup takes `__future__` out.)
CHEAP = {"__future__", "_imp", "_sha2", "_sha256", "fcntl", "gc", "marshal", "posix", "sys", "time"}
ONLY_IMPORTERS = {
    "sqlite3": {"interpreter"},
    "_sqlite3": {"interpreter"},
    "_json": {"interpreter"},
    "_sha2": {"interpreter"},
    "_sha256": {"interpreter"},
    "fcntl": {"file_rate_limits"},
    "_imp": {"lane", "startup", "interpreter"},
    "marshal": {"lane", "startup"},
    "flask": {"web", "pages"},
    "wsgiref": {"cgi"},
}


class Import:
    """One import.

    Args:
        name: the dotted name of what is imported; for `from a import b`, `a.b`.
        at_start: whether it runs when its module is imported, and not as the stand-in for one that failed.
        for_types: whether only a type checker ever sees it.
    """

    def __init__(self, name: str, line: int, at_start: bool, for_types: bool) -> None:
        self.name = name
        self.line = line
        self.at_start = at_start
        self.for_types = for_types

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def own_file(self) -> str | None:
        """The file of app/ that it names, "" for app itself, None for what is not ours."""
        parts = self.name.split(".")
        if parts[0] != "app":
            return None
        return parts[1] if len(parts) > 1 and is_module(parts[1]) else ""

    @property
    def own_module(self) -> str | None:
        """The same with two halves counted as one module."""
        return None if self.own_file is None else HALVES.get(self.own_file, self.own_file)


def modules() -> dict[str, list[Path]]:
    """The modules of app/ with their files; a package counts as one module."""
    found: dict[str, list[Path]] = {}
    for path in sorted(APP.rglob("*.py")):
        first = path.relative_to(APP).parts[0].removesuffix(".py")
        module = "" if first == "__init__" else HALVES.get(first, first)
        found.setdefault(module, []).append(path)
    return found


def is_module(name: str) -> bool:
    return (APP / f"{name}.py").exists() or (APP / name).is_dir()


def imports(path: Path) -> list[Import]:
    package = ".".join(path.relative_to(PROJECT).parent.parts)
    return list(found_in(ast.parse(path.read_text(encoding="utf-8")), package, at_start=True, for_types=False))


def found_in(node: ast.AST, package: str, at_start: bool, for_types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, at_start, for_types)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        for alias in node.names:
            yield Import(f"{base}.{alias.name}", node.lineno, at_start, for_types)
    elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        for child in node.body:
            yield from found_in(child, package, at_start, for_types=True)
        for child in node.orelse:
            yield from found_in(child, package, at_start, for_types)
    else:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            at_start = False
        if isinstance(node, ast.ExceptHandler) and node.type is not None and ast.unparse(node.type) == "ImportError":
            at_start = False
        for child in ast.iter_child_nodes(node):
            yield from found_in(child, package, at_start, for_types)


def all_imports() -> list[tuple[str, Import]]:
    return [(module, found) for module, paths in modules().items() for path in paths for found in imports(path)]


def sentences(faults: list[tuple[str, Import]]) -> list[str]:
    return [f"app/{module or '__init__'}, line {found.line}: imports {found.name}" for module, found in faults]


def test_every_module_has_its_floor():
    assert set(modules()) <= set(FLOOR_OF)


def test_no_import_runs_up():
    """Also those within functions and for type checkers: an arrow is an arrow."""
    running_up = [
        (module, found)
        for module, found in all_imports()
        if found.own_module is not None
        and found.own_module != module
        and FLOOR_OF[found.own_module] >= FLOOR_OF[module]
    ]

    assert sentences(running_up) == []


def test_pure_modules_import_rules_only():
    impure = [
        (module, found)
        for module, found in all_imports()
        if module in PURE
        and not found.for_types
        and found.own_module not in PURE
        and found.package not in PURE_LIBRARY
        and found.name not in PURE_LIBRARY
    ]

    assert sentences(impure) == []


def test_adapters_know_the_rules_only_and_never_one_another():
    faults = [
        (module, found)
        for module, found in all_imports()
        if module in ADAPTERS and not found.for_types and found.own_module not in {None, module} | ADAPTERS_MAY_IMPORT
    ]

    assert sentences(faults) == []


def test_only_bootstrap_knows_the_concrete_stores():
    faults = [
        (module, found)
        for module, found in all_imports()
        if module not in ADAPTERS | {"bootstrap", "maintenance"}
        and not found.for_types
        and found.own_module in ADAPTERS
    ]

    assert sentences(faults) == []


def test_the_in_memory_models_are_imported_where_they_are_asked_for_only():
    faults = [
        (module, found)
        for module, found in all_imports()
        if found.own_module == "memory_stores" and found.at_start and not found.for_types
    ]

    assert sentences(faults) == []


@pytest.mark.parametrize("package", ONLY_IMPORTERS)
def test_each_technology_has_its_only_importers(package):
    importers = {
        path.relative_to(APP).parts[0].removesuffix(".py")
        for path in APP.rglob("*.py")
        for found in imports(path)
        if found.package == package and not found.for_types
    }

    assert importers <= ONLY_IMPORTERS[package]


def hot_imports() -> list[tuple[str, Import]]:
    """What the files on the hot path import at their start."""
    return [
        (module, found)
        for module in sorted(HOT_PATH)
        for found in imports(APP / f"{module or '__init__'}.py")
        if found.at_start and not found.for_types
    ]


def test_the_hot_path_keeps_its_diet():
    faults = [
        (module, found) for module, found in hot_imports() if found.own_file is None and found.package not in CHEAP
    ]

    assert sentences(faults) == []


def test_the_hot_path_ends_nowhere_else():
    """What a hot module imports at its start is hot too."""
    faults = [
        (module, found)
        for module, found in hot_imports()
        if found.own_file is not None and found.own_file not in HOT_PATH
    ]

    assert sentences(faults) == []


def test_hot_modules_stand_in_the_order_of_their_imports():
    """They run one after the other without a search, so what a module imports at its start has to have run."""
    place = {module: HOT.index(f"app.{module}".rstrip(".")) for module in HOT_PATH - {"lane", "sqlite_locks"}}
    faults = [
        (module, found)
        for module, found in hot_imports()
        if module in place and found.own_file is not None and place[found.own_file] >= place[module]
    ]

    assert sentences(faults) == []
    assert len(set(HOT)) == len(HOT)


def test_tools_reach_the_service_through_bootstrap():
    below = ADAPTERS | {"api", "cgi", "lane", "maintenance", "pages", "startup", "throttle", "web"}
    faults = [
        f"tools/{path.name}, line {found.line}: imports {found.name}"
        for path in sorted((PROJECT / "tools").glob("*.py"))
        for found in imports(path)
        if found.own_module in below
    ]

    assert faults == []
