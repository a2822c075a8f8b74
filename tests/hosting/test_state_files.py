"""What the service leaves on the disk."""

from __future__ import annotations

from tests.hosting import machine

#: brought by the upload, not made by the service
UPLOADED = {".htaccess", "config.py"}


def test_state_files_are_the_site_users_alone(hosting, site):
    assert site.acquire("stored").status == 200
    assert hosting.client("limited.test").acquire("stored").status in (200, 429)
    uid, gid = machine.site_ids()
    made = set()
    for var in (hosting.top / "site" / "var", hosting.top / "limited" / "var"):
        for path in (var, *var.rglob("*")):
            found = path.lstat()
            assert (found.st_uid, found.st_gid) == (uid, gid), path
            if path.name not in UPLOADED:
                assert found.st_mode & 0o7777 == (0o700 if path.is_dir() else 0o600), path
                made.add(path.name)
    assert {"locks.sqlite3", "pycache", "rate-limits"} <= made


def test_nothing_is_written_outside_of_var(hosting, site):
    def files():
        return {path for path in hosting.top.rglob("*") if "var" not in path.relative_to(hosting.top).parts}

    before = files()
    site.acquire("stored")
    site.ask("GET", "/", headers={"Accept": "text/html"})
    assert files() == before
    assert not [path for path in before if path.name == "__pycache__"]
