"""An Apache of its own on a free port of this machine, as rented servers run it: event, mod_cgid and suEXEC."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

APACHE = Path("/usr/sbin/apache2")
MODULES_FOLDER = Path("/usr/lib/apache2/modules")
SUEXEC = Path("/usr/lib/apache2/suexec")
#: suEXEC is built to run scripts below this folder only, and to log there; the package apache2-bin makes neither
SUEXEC_ROOT = Path("/var/www")
SUEXEC_LOGS = Path("/var/log/apache2")
SERVER_USER = "www-data"
#: whom the sites belong to and whom their scripts run as
SITE_USER, SITE_GROUP = "nobody", "nogroup"
MODULES = ("mpm_event", "cgid", "suexec", "authz_core", "dir", "mime", "setenvif", "alias", "rewrite")
START_SECONDS = 20
SETTLE_SECONDS = 60

_CONFIG = """
ServerRoot {folder}
ServerName localhost
DefaultRuntimeDir {folder}
PidFile {folder}/apache.pid
ScriptSock {folder}/cgid.sock
ErrorLog {folder}/error.log
LogLevel warn
Listen 127.0.0.1:{port}
{modules}
TypesConfig {folder}/mime.types
User {server_user}
Group {server_user}
Timeout 120
KeepAliveTimeout 120
MaxKeepAliveRequests 0
<Directory />
AllowOverride None
Options None
Require all denied
</Directory>
<Directory {top}>
AllowOverride FileInfo
Options ExecCGI SymLinksIfOwnerMatch
AddHandler cgi-script .cgi
Require all granted
</Directory>
{sites}
"""
_SITE = """
<VirtualHost 127.0.0.1:{port}>
ServerName {name}
DocumentRoot {document_root}
SuexecUserGroup {user} {group}
</VirtualHost>
"""


def missing_parts() -> list[str]:
    """Return what this machine lacks for an Apache with suEXEC."""
    users = {entry.pw_name for entry in pwd.getpwall()}
    needed = {
        "root": os.geteuid() == 0,
        "Apache": APACHE.exists() and MODULES_FOLDER.is_dir(),
        "suEXEC": SUEXEC.exists(),
        f"the users {SERVER_USER} and {SITE_USER}": {SERVER_USER, SITE_USER} <= users,
    }
    return [part for part, present in needed.items() if not present]


def make_top() -> Path:
    """Make a folder that suEXEC runs scripts in."""
    SUEXEC_ROOT.mkdir(exist_ok=True)
    SUEXEC_LOGS.mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="kannuki-bench-", dir=SUEXEC_ROOT))


def hand_over(top: Path) -> None:
    """Give all that is in a folder to the user that the scripts run as, with the modes that suEXEC accepts."""
    uid, gid = pwd.getpwnam(SITE_USER).pw_uid, grp.getgrnam(SITE_GROUP).gr_gid
    for folder, _, names in os.walk(top):
        for name in names:
            os.chown(os.path.join(folder, name), uid, gid)
            os.chmod(os.path.join(folder, name), 0o755 if name == "index.cgi" else 0o644)
        os.chown(folder, uid, gid)
        os.chmod(folder, 0o700 if os.path.basename(folder) == "var" else 0o755)


class Apache:
    """A running server; a context manager that ends it and removes what it wrote.

    Args:
        top: the folder that all sites lie in.
        sites: name of a site -> its document root.
    """

    def __init__(self, top: Path, sites: dict[str, Path]) -> None:
        self._top = top
        self._folder = Path(tempfile.mkdtemp(prefix="kannuki-bench-apache-"))
        self._folder.chmod(0o711)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._start(sites)
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Apache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stop()

    def settle(self) -> None:
        """Wait until no script runs any more; a client that hangs up does not end the script it started."""
        give_up_at = time.monotonic() + SETTLE_SECONDS
        while _processes_in(self._top) and time.monotonic() < give_up_at:
            time.sleep(0.05)

    def _start(self, sites: dict[str, Path]) -> None:
        (self._folder / "mime.types").write_text("text/plain txt\n", encoding="ascii")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        config = self._folder / "apache.conf"
        config.write_text(self._config(sites), encoding="utf-8")
        self._process = subprocess.Popen(
            [str(APACHE), "-f", str(config), "-DFOREGROUND"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LANG": "C"},
            cwd="/",
            start_new_session=True,  # Ctrl-C reaches this program only, which ends the server in good order
        )
        give_up_at = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < give_up_at:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise OSError("Apache did not start")

    def _config(self, sites: dict[str, Path]) -> str:
        hosts = [
            _SITE.format(port=self.port, name=name, document_root=root, user=SITE_USER, group=SITE_GROUP)
            for name, root in sites.items()
        ]
        modules = [f"LoadModule {name}_module {MODULES_FOLDER}/mod_{name}.so" for name in MODULES]
        return _CONFIG.format(
            folder=self._folder,
            server_user=SERVER_USER,
            port=self.port,
            top=self._top,
            modules="\n".join(modules),
            sites="\n".join(hosts),
        )

    def _stop(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)  # its own session: nothing else is in it
                self._process.wait()
        self.settle()
        shutil.rmtree(self._folder)


def _processes_in(top: Path) -> bool:
    """Say whether any process has its working folder below a folder."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if (os.readlink(f"/proc/{name}/cwd") + "/").startswith(f"{top}/"):
                    return True
            except OSError:
                continue
    return False
