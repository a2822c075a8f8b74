"""Some hosts run scripts with umask 000; state that others can read or write is no lock."""

from __future__ import annotations

import os
import stat

from app.sqlite_locks import SqliteLockStore


def test_all_state_is_for_its_user_only_whatever_the_umask(tmp_path, clock):
    before = os.umask(0)
    try:
        SqliteLockStore(str(tmp_path / "var"), clock).acquire("r", "o", 60)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "var").stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "var").iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"locks.sqlite3", "locks.created"} <= set(modes)


def test_a_folder_that_an_upload_left_open_is_closed_at_the_first_start(tmp_path, clock):
    (tmp_path / "var").mkdir()
    (tmp_path / "var").chmod(0o777)

    SqliteLockStore(str(tmp_path / "var"), clock).acquire("r", "o", 60)

    assert stat.S_IMODE((tmp_path / "var").stat().st_mode) == 0o700
