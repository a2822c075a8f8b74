"""Where Flask is found when Python was started without its site-packages, as under CGI.

Only what needs Flask imports this module: each folder on the import path costs every later import a look.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any


def add_library_path(root: str) -> None:
    """Put the first folder that holds Flask at the end of the import path.

    Looked at in this order: `vendor/`, the virtual environment `.venv/` (packages of the running Python's own version
    first, then the newest), and last what this Python would have seen itself, the user's own packages included.
    Where there is none, nothing is raised here: importing Flask then says what is missing.

    Args:
        root: the project's folder.
    """
    for folder in [os.path.join(root, "vendor"), *_environment_folders(root)]:
        if os.path.isdir(os.path.join(folder, "flask")):
            if folder not in sys.path:
                sys.path.append(folder)
            return
    if sys.flags.no_site:
        import site

        site.main()
        # Started with -I, Python leaves these out; on a rented server they are often the only ones that can be had.
        user_packages = site.getusersitepackages()
        if os.path.isabs(user_packages) and os.path.isdir(user_packages):
            site.addsitedir(user_packages)


def _environment_folders(root: str) -> list[str]:
    """Return the package folders of `.venv/`, the best suited first."""
    libraries = os.path.join(root, ".venv", "lib")
    try:
        versions = [name for name in os.listdir(libraries) if name.startswith("python3.") and name[8:].isdecimal()]
    except OSError:
        return []
    own = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    versions.sort(key=lambda name: (name == own, int(name[8:])), reverse=True)
    return [os.path.join(libraries, name, "site-packages") for name in versions]


def keep_bytecode(root: str) -> None:
    """Import what lies below the root with bytecode that is kept in var/ and is never older than its source.

    The folders of a release may not be writable, or may hold the bytecode of another Python. And Python takes bytecode
    for fresh if the source's size and second of change are what they were, so a file uploaded twice in one second could
    go on running as it was before. (sys.pycache_prefix alone would do without the bytecode of Python's own library too,
    which costs more than it saves.)
    """

    class Loader(SourceFileLoader):
        def path_stats(self, path: Any) -> dict[str, Any]:
            found = os.stat(path)
            changed = hash((found.st_mtime_ns, found.st_ctime_ns, found.st_ino)) & 0xFFFFFFFF
            return {"mtime": changed, "size": found.st_size}

        def get_code(self, fullname: str) -> CodeType | None:
            sys.pycache_prefix = root + "/var/pycache"
            try:
                return super().get_code(fullname)
            except (EOFError, TypeError, ValueError):  # bytecode that a full disk cut off
                try:
                    os.unlink(importlib.util.cache_from_source(self.path))
                except OSError:
                    pass
                return super().get_code(fullname)
            finally:
                sys.pycache_prefix = None

    def find(folder: str) -> FileFinder:
        if not (folder + "/").startswith(root + "/"):
            raise ImportError
        return FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, find)
    sys.path_importer_cache.clear()
    sys.dont_write_bytecode = False
