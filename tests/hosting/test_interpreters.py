"""The script and the whole service under each Python that rented servers have."""

from __future__ import annotations

import pytest

from tests.hosting import machine, trees
from tests.hosting.direct import run_script

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")


@pytest.fixture(scope="module")
def vendor(tmp_path_factory):
    """The packages of the service, resolved once, as an upload brings them to every Python."""
    return trees.copy_libraries(tmp_path_factory.mktemp("libraries") / "vendor")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lock_goes_round(version, vendor, tmp_path):
    interpreter = [machine.python(version), "-IS"]
    root = trees.copy_project(tmp_path / "project", vendor)
    (root / "var").chmod(0o700)

    def ask(method, target, body=None):
        run = run_script(root, interpreter, method, target, body)
        assert run.log == ""
        assert run.unread == 0
        return run.answer

    holder = {"owner": "alice", "ttl_seconds": 60}
    granted = ask("POST", "/locks/a%25b", holder)
    assert granted.status == 200, granted
    lock = granted.json()["lock"]
    assert lock["resource"] == "a%b"
    assert ask("GET", "/locks/a%25b").json() == lock
    assert ask("POST", "/locks/a%25b", {"owner": "bob", "ttl_seconds": 60}).json()["acquired"] is False
    assert ask("GET", "/locks").json()["locks"] == [lock]
    assert ask("POST", "/locks/a%25b/renew", holder).json()["fencing_token"] == lock["fencing_token"]
    assert ask("DELETE", "/locks/a%25b", {"owner": "bob"}).status == 403
    released = ask("DELETE", "/locks/a%25b", {"owner": "alice"})
    assert released.status == 204
    assert released.body == b""
    assert ask("GET", "/locks/a%25b").status == 404
    assert ask("GET", "/health").status == 200
    assert ask("GET", "/").status == 200


@pytest.mark.parametrize("version", VERSIONS)
def test_the_packages_are_found_in_a_virtual_environment_of_another_python(version, vendor, tmp_path):
    interpreter = [machine.python(version), "-IS"]
    root = trees.copy_project(tmp_path / "project")
    (root / "var").chmod(0o700)
    packages = root / ".venv" / "lib" / "python3.99" / "site-packages"
    packages.parent.mkdir(parents=True)
    packages.symlink_to(vendor)
    run = run_script(root, interpreter, target="/")
    assert run.answer.status == 200, run.log
