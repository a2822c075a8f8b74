"""Makes `.venv`, the folder with the packages that the other tools need, out of the standard library alone.

This file and the tools that import it before they are inside `.venv` must parse on Python 3.6, so that a Python too
old is told so in a sentence. Therefore no `from __future__ import annotations`, and newer type hints stand in quotes.
"""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
MINIMUM_PYTHON = (3, 9)
#: new tries of one download; pip's own default of five takes long to say that there is no network
DOWNLOAD_RETRIES = 2


def fail(sentence: str) -> NoReturn:
    """End the program with one sentence on standard error and exit code 1."""
    sys.exit(sentence)


def tell(sentence: str) -> None:
    """Say on standard error what goes on; standard output belongs to the tool's result."""
    print(sentence, file=sys.stderr, flush=True)


def enter(requirements_file: Path) -> None:
    """Go on inside `.venv`: the same command once more, in the same process, under the Python of `.venv`."""
    python = ensure(requirements_file)
    if sys.executable != str(python):
        sys.stdout.flush()
        os.execv(str(python), [str(python), *sys.argv])


def ensure(requirements_file: Path, root: Path = ROOT) -> Path:
    """Return the Python of `.venv`, where the packages of a requirement file are installed by then.

    A half-made or broken `.venv`, or one of another Python version, is made anew. Of two starts at the same time the
    second waits for the first. What can't be done ends the program with a sentence and exit code 1.
    """
    require_supported_python()
    venv = root / ".venv"
    try:
        wanted = digests(requirements_file, root)
        if not is_installed(venv, wanted):
            with only_one_at_a_time(root / ".venv.lock") as lock:
                if not is_installed(venv, wanted):
                    set_up(venv, requirements_file, wanted, lock)
    except OSError as fault:
        fail(f"Cannot set up {venv}: {fault.strerror} ({fault.filename}).")
    except KeyboardInterrupt:
        fail(f"Stopped while {venv} was being set up; the next start does it again.")
    return python_of(venv)


def require_supported_python() -> None:
    """End the program where this Python or this system cannot run the service."""
    if os.name != "posix":
        fail("Kannuki needs Linux, macOS or another Unix, since it locks files with flock; on Windows use WSL.")
    if sys.version_info[:2] < MINIMUM_PYTHON:
        needed = version(MINIMUM_PYTHON)
        fail(f"Kannuki needs Python {needed} or newer, and {sys.executable} is {version()}; start it with another one.")


def version(numbers: "tuple[int, ...]" = sys.version_info[:2]) -> str:
    """Return a Python version as people write it, `3.9`."""
    return ".".join(str(number) for number in numbers)


def python_of(venv: Path) -> Path:
    """Return where the Python of a virtual environment is."""
    return venv / "bin" / "python"


def record_of(venv: Path) -> Path:
    """Return where a virtual environment keeps what has been installed in it.

    It lies among the packages, so that it is gone when they are, and not found by another version of Python.
    """
    return venv / "lib" / ("python" + version()) / "site-packages" / "installed-requirements.json"


def digests(requirements_file: Path, root: Path) -> "dict[str, str]":
    """Return the SHA-256 of a requirement file and of each file it includes, by its path from the root."""
    content = requirements_file.read_text(encoding="utf-8")
    found = {os.path.relpath(str(requirements_file), str(root)): hashlib.sha256(content.encode()).hexdigest()}
    for line in content.splitlines():
        if line.startswith("-r "):
            found.update(digests(requirements_file.parent / line[3:].strip(), root))
    return found


def recorded(venv: Path) -> "dict[str, str]":
    """Return the digests of the requirement files that are installed, none for a `.venv` that cannot be used."""
    if not os.access(str(python_of(venv)), os.X_OK) or not (venv / "pyvenv.cfg").is_file():
        return {}
    try:
        record = json.loads(record_of(venv).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def is_installed(venv: Path, wanted: "dict[str, str]") -> bool:
    """Tell whether nothing is to do: every wanted requirement file is installed as it is now."""
    return wanted.items() <= recorded(venv).items()


@contextmanager
def only_one_at_a_time(lock_file: Path) -> "Iterator[int]":
    """Hold an exclusive lock, and give its descriptor for child processes to inherit."""
    import fcntl  # not at the top: a system without it is told so by require_supported_python

    descriptor = os.open(str(lock_file), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Another start is setting up .venv; waiting for it to end.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def set_up(venv: Path, requirements_file: Path, wanted: "dict[str, str]", lock: int) -> None:
    """Make `.venv` where there is none to use, install the packages, and record it as the last step."""
    before = recorded(venv)
    if not before:
        tell(f"Setting up .venv with Python {version()}; this takes a minute and is done once.")
        make_venv(venv, lock)
    else:
        tell("The required packages have changed; bringing .venv up to date.")
    record = record_of(venv)
    # A start that is killed from here on leaves no record, and the next one makes .venv anew.
    if before:
        record.unlink()
    complaint = install(venv, requirements_file, lock)
    if complaint and before:
        write_record(record, before)
    if complaint:
        fail(
            f"The packages of {requirements_file} could not be installed, which needs the network and free disk space "
            f"once: {complaint}."
        )
    write_record(record, {**before, **wanted})


def make_venv(venv: Path, lock: int) -> None:
    """Make an empty virtual environment with pip in it, in place of whatever is there."""
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        fail(
            f"{sys.executable} cannot make virtual environments; on Debian and Ubuntu `apt install {venv_package()}` "
            "adds what it lacks."
        )
    # The Python that .venv itself was made from: .venv is about to be emptied.
    python = getattr(sys, "_base_executable", sys.executable)
    complaint = last_words([python, "-m", "venv", "--clear", str(venv)], lock)
    if complaint:
        fail(f"Cannot make {venv}; is the disk full? {complaint}.")


def venv_package() -> str:
    """Return the Debian package that lets this Python make virtual environments."""
    is_default = os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3")
    return "python3-venv" if is_default else f"python{version()}-venv"


def install(venv: Path, requirements_file: Path, lock: int) -> str:
    """Install the packages of a requirement file; return why that failed, or nothing."""
    command = [str(python_of(venv)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return last_words([*command, "--retries", str(DOWNLOAD_RETRIES), "-r", str(requirements_file)], lock)


def last_words(command: "list[str]", lock: int) -> str:
    """Run a command without a sound; return the last line of what it said if it failed, or nothing.

    The command inherits the lock: should this process be killed, the next start waits until the command has ended.
    """
    # In a virtual environment pip refuses to work for a user whose settings say `--user`.
    surroundings = {**os.environ, "PIP_USER": "0"}
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=surroundings,
        pass_fds=[lock],
        check=False,
    )
    if ended.returncode == 0:
        return ""
    lines = [line.strip() for line in ended.stdout.decode("utf-8", "replace").splitlines()]
    said = [line for line in lines if line and not line.startswith("[notice]")]
    last = said[-1] if said else f"exit code {ended.returncode}"
    return (last[len("ERROR:") :] if last.startswith("ERROR:") else last).strip().rstrip(".")


def write_record(record: Path, installed: "dict[str, str]") -> None:
    """Write what is installed, whole or not at all."""
    unfinished = record.with_suffix(".new")
    unfinished.write_text(json.dumps(installed, indent=1), encoding="utf-8")
    os.replace(str(unfinished), str(record))
