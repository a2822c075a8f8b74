"""A real Apache as rented servers run it: suEXEC, no override class but FileInfo, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.hosting import machine
from tests.hosting.wire import Client

CGI_MODULES = {"event": "cgid", "prefork": "cgi"}
MODULES = ("authz_core", "dir", "mime", "setenvif", "alias", "rewrite")
START_SECONDS = 20

_CONFIG = """
ServerRoot {folder}
ServerName localhost
DefaultRuntimeDir {folder}
PidFile {folder}/apache.pid
ErrorLog {folder}/error.log
LogLevel warn
Listen 127.0.0.1:{port}
{modules}
TypesConfig {folder}/mime.types
User {apache_user}
Group {apache_user}
Timeout 30
KeepAliveTimeout 30
MaxRequestWorkers 50
<IfModule mpm_prefork_module>
StartServers 4
MinSpareServers 4
</IfModule>
<IfModule mpm_event_module>
StartServers 2
MinSpareThreads 5
MaxSpareThreads 50
</IfModule>
<IfModule cgid_module>
ScriptSock {folder}/cgid.sock
</IfModule>
<Directory />
AllowOverride None
Options None
Require all denied
</Directory>
<Directory {top}>
AllowOverride FileInfo
Options ExecCGI SymLinksIfOwnerMatch
Require all granted
</Directory>
{sites}
"""

_SITE = """
<VirtualHost 127.0.0.1:{port}>
ServerName {name}
DocumentRoot {document_root}
SuexecUserGroup {user} {group}
{more}
</VirtualHost>
"""


class Apache:
    """One running server with one or more sites.

    Args:
        mpm: `event` (with mod_cgid) or `prefork` (with mod_cgi).
        top: the folder that all sites lie in.
        sites: name of a site -> (its document root, further directives).
        without: modules that are left out.
    """

    def __init__(self, mpm: str, top: Path, sites: dict[str, tuple[Path, str]], without: tuple[str, ...] = ()) -> None:
        self.top = top
        self._folder = Path(tempfile.mkdtemp(prefix="kannuki-apache-"))
        self._folder.chmod(0o711)
        (self._folder / "mime.types").write_text("text/plain txt\ntext/html html\n")
        self._modules = [f"mpm_{mpm}", CGI_MODULES[mpm], "suexec", *(name for name in MODULES if name not in without)]
        self._sites = sites
        try:
            self._start()
        except BaseException:
            shutil.rmtree(self._folder)
            raise

    def _start(self) -> None:
        for _ in range(5):  # somebody else may take the port between finding it and listening
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            with (self._folder / "start.log").open("wb") as start_log:
                self._process = subprocess.Popen(
                    [str(machine.APACHE), "-f", self._write_config(), "-DFOREGROUND"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=start_log,
                    env={"PATH": "/usr/bin:/bin", "LANG": "C"},
                    cwd="/",
                    start_new_session=True,
                )
            if self._answers():
                return
            self._end_process()
        raise AssertionError(f"Apache did not start: {(self._folder / 'start.log').read_text()}{self.log()}")

    def _write_config(self) -> str:
        sites = [
            _SITE.format(
                port=self.port,
                name=name,
                document_root=document_root,
                user=machine.SITE_USER,
                group=machine.SITE_GROUP,
                more=more,
            )
            for name, (document_root, more) in self._sites.items()
        ]
        modules = [f"LoadModule {name}_module {machine.APACHE_MODULES}/mod_{name}.so" for name in self._modules]
        config = self._folder / "apache.conf"
        config.write_text(
            _CONFIG.format(
                folder=self._folder,
                apache_user=machine.APACHE_USER,
                port=self.port,
                top=self.top,
                modules="\n".join(modules),
                sites="\n".join(sites),
            )
        )
        return str(config)

    def _answers(self) -> bool:
        give_up_at = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up_at and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)
                continue
            return self._process.poll() is None
        return False

    def _end_process(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)  # its own session: nothing else is in it
                self._process.wait()

    def stop(self) -> None:
        """End the server and remove what it wrote."""
        self._end_process()
        shutil.rmtree(self._folder)

    def client(self, site: str, base: str = "") -> Client:
        """Return a client for one site.

        Args:
            site: the site's name.
            base: the folder of the service on it.
        """
        return Client(self.port, site, base)

    def has_module(self, name: str) -> bool:
        return name in self._modules

    def log(self) -> str:
        """Return the error log so far."""
        try:
            return (self._folder / "error.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""
