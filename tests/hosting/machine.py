"""Where the parts of this machine are that the hosting tests need."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.parts import requires

APACHE = Path("/usr/sbin/apache2")
APACHE_MODULES = Path("/usr/lib/apache2/modules")
APACHE_USER = "www-data"
SUEXEC = Path("/usr/lib/apache2/suexec")
#: suEXEC is built to run scripts below this folder only, and to log there; the package apache2-bin makes neither
SUEXEC_ROOT = Path("/var/www")
SUEXEC_LOGS = Path("/var/log/apache2")
SYSTEM_PYTHON = Path("/usr/bin/python3")
#: whom the sites belong to and whom their scripts run as
SITE_USER = "nobody"
SITE_GROUP = "nogroup"


def needs_apache() -> None:
    """Leave the test where this user cannot run Apache with suEXEC."""
    requires(os.geteuid() == 0, "root, to start Apache with suEXEC")
    requires(APACHE.exists() and APACHE_MODULES.is_dir(), "Apache (the Debian package apache2-bin)")
    requires(SUEXEC.exists(), "suEXEC (the Debian package apache2-suexec-pristine)")
    requires(SYSTEM_PYTHON.exists(), f"{SYSTEM_PYTHON}, to run the script")
    users = {entry.pw_name for entry in pwd.getpwall()} & {APACHE_USER, SITE_USER}
    requires(len(users) == 2, f"the users {APACHE_USER} and {SITE_USER}")


def site_ids() -> tuple[int, int]:
    """Return the user and group id that sites belong to."""
    return pwd.getpwnam(SITE_USER).pw_uid, grp.getgrnam(SITE_GROUP).gr_gid


@cache
def _find_python(version: str) -> str:
    name = f"python{version}"
    places = [str(place) for place in Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}")]
    in_path = shutil.which(name)
    for place in [*places, *([in_path] if in_path else [])]:
        # A pyenv shim of a version that is not switched on exists and does not run.
        asked = [place, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == version:
            return place
    return ""


def python(version: str) -> str:
    """Return the path of a Python of a version like `3.9`, or skip the test, in CI too: few machines have them all."""
    path = _find_python(version)
    if not path:
        pytest.skip(f"Python {version}")
    return path
