"""Checks everything: the formatting, the linter, the type checker and all tests. The first start sets up .venv."""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import environment
from tools.environment import ROOT

#: what is run before the tests: name -> arguments of the Python of .venv
CHECKS = {
    "ruff format --check": ["-m", "ruff", "format", "--check", "--quiet", "--output-format", "concise"],
    "ruff check": ["-m", "ruff", "check", "--quiet", "--output-format", "concise"],
    "mypy": ["-m", "mypy", "--no-error-summary"],
}
#: apache2-bin is the server without the service that would start at boot
DEBIAN_PACKAGES = ["apache2-bin", "apache2-suexec-pristine", "curl"]
#: tests start servers of their own, so more workers than this would be in each other's way
MAX_WORKERS = 4

EXAMPLES = """\
examples:
  python3 tools/test.py                           everything
  python3 tools/test.py tests/unit -k lease       the checks, and the tests that are chosen
  python3 tools/test.py -n 0 --pdb tests/unit     in one process, with a debugger at the first failure

As root on Debian and Ubuntu it installs the Debian packages that the tests need. Elsewhere the tests that lack a part
are skipped, and named at the end; with CI=true in the environment they fail instead.
"""


def show_help() -> None:
    """Print how the command is used."""
    parser = argparse.ArgumentParser(
        prog="python3 tools/test.py",
        usage="%(prog)s [-h] [pytest arguments]",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.print_help()


def missing_debian_packages() -> "list[str]":
    """Return which Debian packages the tests need and this machine lacks."""
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"]
    listed = subprocess.run([*query, *DEBIAN_PACKAGES], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    installed = [line.split()[0] for line in listed.stdout.decode().splitlines() if line.endswith(" installed")]
    missing = [package for package in DEBIAN_PACKAGES if package not in installed]
    # Only a Python that came from Debian gets its missing part from there.
    if importlib.util.find_spec("ensurepip") is None and os.path.realpath(sys.executable).startswith("/usr/bin/"):
        missing.append(environment.venv_package())
    return missing


def install_debian_packages() -> None:
    """Install the missing Debian packages where that is possible; say so in a sentence where it fails."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None or shutil.which("dpkg-query") is None:
        return
    packages = missing_debian_packages()
    if not packages:
        return
    environment.tell(f"Installing Debian packages that the tests need: {', '.join(packages)}.")
    command = ["install", "--yes", "--no-install-recommends", *packages]
    if apt_get(command):
        # The package lists may be missing or old.
        complaint = apt_get(["update"]) or apt_get(command)
        if complaint:
            environment.tell(f"apt-get could not install them, and the tests that need them cannot run: {complaint}")
    importlib.invalidate_caches()


def apt_get(arguments: "list[str]") -> str:
    """Run apt-get without a sound or a question; return the last line of what it said if it failed, or nothing."""
    ended = subprocess.run(
        ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        check=False,
    )
    lines = ended.stdout.decode("utf-8", "replace").strip().splitlines() or [f"exit code {ended.returncode}"]
    return lines[-1] if ended.returncode else ""


def failed_checks(python: Path) -> "list[str]":
    """Run the checks; print what the failing ones say and return their names."""
    failed = []
    for name, arguments in CHECKS.items():
        ended = subprocess.run(
            [str(python), *arguments], cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if ended.returncode:
            failed.append(name)
            print(f"{name} failed:\n{ended.stdout.decode('utf-8', 'replace').strip()}\n", flush=True)
    return failed


def run_tests(python: Path, arguments: "list[str]", failed: "list[str]") -> int:
    """Run pytest in the project's folder and return its exit code; its closing lines name the failed checks, too."""
    spread = ["-n", "auto", "--maxprocesses", str(MAX_WORKERS), "--dist", "loadgroup"]
    surroundings = {**os.environ, "KANNUKI_FAILED_CHECKS": ", ".join(failed)}
    command = [str(python), "-m", "pytest", *spread, *arguments]
    return subprocess.run(command, cwd=str(ROOT), env=surroundings, check=False).returncode


def main(arguments: "list[str]") -> int:
    """Run everything; return 0 when all of it passed."""
    if "-h" in arguments or "--help" in arguments:
        show_help()
        return 0
    environment.require_supported_python()
    install_debian_packages()
    python = environment.ensure(ROOT / "tests" / "requirements.txt")
    failed = failed_checks(python)
    return run_tests(python, arguments, failed) or int(bool(failed))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
