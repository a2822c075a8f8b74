"""`tools/serve.py` as a user starts it: a process of its own, on a copy of the project."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.parts import requires
from tools import environment
from tools.environment import ROOT

DEADLINE_SECONDS = 30


@pytest.fixture
def project(tmp_path):
    """A copy of the project with an empty var/, on the `.venv` of this one."""
    required = environment.digests(ROOT / "tools" / "requirements.txt", ROOT)
    # Without this check a start would make the .venv behind the link anew.
    requires(environment.is_installed(ROOT / ".venv", required), "a .venv that tools/test.py has made with this Python")
    for name in ("app", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "var").mkdir(mode=0o700)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


class Server:
    """A started server; its address as it printed it, and the command it offers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        first = process.stdout.readline()
        process.stdout.readline()
        self.command = process.stdout.readline().strip()
        found = re.match(r"Kannuki serves (http://(\S+):(\d+)) until Ctrl-C", first)
        assert found, (first, process.communicate(timeout=DEADLINE_SECONDS))
        self.url, self.host, self.port = found[1], found[2].strip("[]"), int(found[3])

    def request(
        self, method: str, target: str, body: bytes = b"", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_SECONDS)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, target, body, named)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()


@contextmanager
def serving(project: Path, *arguments: str):
    process = subprocess.Popen(
        [sys.executable, "tools/serve.py", "--port", "0", *arguments],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Server(process)
        finally:
            process.kill()


def refusal(project: Path, *arguments: str) -> str:
    """What a start that must fail says: one sentence, exit code 1."""
    ended = subprocess.run(
        [sys.executable, "tools/serve.py", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert ended.returncode == 1, ended
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr.strip()


def test_the_printed_command_acquires_a_lock_as_it_stands(project):
    requires(shutil.which("curl"), "curl")
    with serving(project) as server:
        ran = subprocess.run(server.command, shell=True, capture_output=True, text=True, check=True)
    answer = json.loads(ran.stdout)
    assert answer["acquired"] is True
    assert answer["lock"]["resource"] == "demo"


def test_a_start_on_a_ready_environment_sets_nothing_up(project):
    with serving(project) as server:
        server.process.send_signal(signal.SIGTERM)
        _, said = server.process.communicate(timeout=DEADLINE_SECONDS)
    assert said == ""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "TERM"])
def test_a_signal_ends_it_without_a_word_on_standard_error(project, ending):
    with serving(project) as server:
        server.request("GET", "/health")
        server.process.send_signal(ending)
        _, said = server.process.communicate(timeout=DEADLINE_SECONDS)
        assert server.process.returncode == 0
    assert said == ""


def test_a_port_in_use_is_one_sentence(project):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal(project, "--port", str(port)) == (
            f"Port {port} of 127.0.0.1 is in use; end the program that has it, or choose another port with --port."
        )


def test_a_host_that_is_no_name_is_one_sentence(project):
    # A label of more than 63 characters needs no name server to be refused.
    assert "No address is known for the host" in refusal(project, "--host", "a" * 64)


def test_a_host_of_another_machine_is_one_sentence(project):
    # 203.0.113.0/24 is set aside for documentation.
    said = refusal(project, "--host", "203.0.113.1", "--port", "0")
    assert said == "The host 203.0.113.1 is not an address of this machine; 127.0.0.1 always is."


def test_settings_that_are_not_acceptable_are_named(project):
    (project / "var" / "config.py").write_text("NO_SUCH_SETTING = 1\nMAX_LOCKS = 'many'\n")
    said = refusal(project, "--port", "0")
    assert "NO_SUCH_SETTING" in said
    assert "MAX_LOCKS" in said
    assert "many" not in said


def test_an_ipv6_address_is_printed_in_brackets(project):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        has_ipv6 = True
    except OSError:
        has_ipv6 = False
    requires(has_ipv6, "the address ::1")
    with serving(project, "--host", "::1") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.request("GET", "/health")[0].status == 200


def test_all_addresses_are_printed_as_one_that_a_client_can_use(project):
    with serving(project, "--host", "0.0.0.0") as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert server.request("GET", "/health")[0].status == 200


def test_the_service_itself_refuses_a_large_body(project):
    with serving(project) as server:
        answer, body = server.request("POST", "/locks/x", b"x" * 10_000_000)
    assert answer.status == 413
    assert answer.getheader("Content-Type") == "application/problem+json"
    assert json.loads(body)["status"] == 413


def test_the_answer_does_not_name_the_server_program(project):
    with serving(project) as server:
        answer, _ = server.request("GET", "/health")
    assert answer.getheader("Server") is None
    assert answer.getheader("Via") is None


def test_the_service_sees_the_headers_of_a_trusted_proxy(project):
    (project / "var" / "config.py").write_text("TRUSTED_PROXY_HOPS = 1\nRATE_LIMITS = {'read': (1, 3600)}\n")
    with serving(project) as server:
        clients = ["198.51.100.1", "198.51.100.2", "198.51.100.1"]
        statuses = [server.request("GET", "/locks", X_Forwarded_For=client)[0].status for client in clients]
    assert statuses == [200, 200, 429]


def test_help_needs_no_environment(project):
    (project / ".venv").unlink()
    command = [sys.executable, "tools/serve.py", "--help"]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    assert "--host" in ended.stdout
    assert "--port" in ended.stdout
    assert not (project / ".venv").exists()


@pytest.mark.parametrize("port", ["-1", "65536", "eighty", "", "1e3"])
def test_a_port_that_is_none_is_a_usage_error(project, port):
    ended = subprocess.run(
        [sys.executable, "tools/serve.py", f"--port={port}"], cwd=project, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "is not a number from 0 to 65535" in ended.stderr
