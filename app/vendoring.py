"""Where Flask is found when Python was started without its site-packages, as under CGI.

Only what needs Flask imports this module: each folder on the import path costs every later import a look.
"""

from __future__ import annotations

import os
import sys


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
