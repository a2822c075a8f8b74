"""Says whether this installation can grant locks. Run it on the server, in a shell or from cron, as the site's user."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tools import hosted


def main() -> int:
    """Examine, and print what was found; return the exit status."""
    hosted.begin()
    parser = argparse.ArgumentParser(
        prog="python3 tools/doctor.py",
        description="Say whether this installation can grant locks, line by line: PASS, WARN or FAIL and what to do. "
        "The exit status is 1 when a line says FAIL.",
    )
    parser.add_argument(
        "--accept-new-database",
        action="store_true",
        help="where the lock database is lost or damaged, start with an empty one: every lock is free then. "
        "A damaged file is kept under another name",
    )
    return examine(hosted.VAR_DIR, parser.parse_args().accept_new_database)


def examine(var_dir: str, accept_new_database: bool) -> int:
    """Examine a state folder; return the exit status."""
    from app.bootstrap import build_lock_store
    from app.clock import SystemClock
    from app.errors import SettingsError, StoreUnavailable
    from app.settings import load

    try:
        settings = load(var_dir)
        print("PASS settings")
        locks = build_lock_store(var_dir, settings, SystemClock())
        if accept_new_database:
            print(f"     {locks.accept_new_database()}")
        locks.verify()
    except SettingsError as error:
        print(f"FAIL settings: {error.detail}")
        return 1
    except StoreUnavailable as error:
        print(f"FAIL lock database: {error.detail} ({error.cause})")
        return 1
    print("PASS lock database")
    if not settings.API_KEYS:
        print("WARN access: there are no API keys, so anyone who knows the address may call")
    return 0


if __name__ == "__main__":
    sys.exit(main())
