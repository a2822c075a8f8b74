"""Deletes what has ended: stale rate-limit files and the rows of ended leases. Run it from cron, as the site's user."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tools import hosted


def main() -> int:
    """Sweep once; return the exit status."""
    hosted.begin()
    parser = argparse.ArgumentParser(
        prog="python3 tools/sweep.py",
        description="Delete stale rate-limit files and the rows of ended leases, and print one line of counts. "
        "The exit status is 1 when a folder or the database cannot be used.",
    )
    parser.add_argument("--quiet", action="store_true", help="print faults only; cron mails everything that is printed")
    return sweep(hosted.VAR_DIR, parser.parse_args().quiet)


def sweep(var_dir: str, quiet: bool) -> int:
    """Sweep a state folder; return the exit status."""
    from app.bootstrap import build_sweeper
    from app.errors import Unavailable

    try:
        swept = build_sweeper(var_dir).sweep()
    except Unavailable as error:
        print(f"sweep: {error.detail}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"sweep: {error.filename or 'the file system'} cannot be used: {error.strerror}. "
            "Run this as the user that the website runs as, and check that the folder is there.",
            file=sys.stderr,
        )
        return 1
    if swept and not quiet:
        print(f"sweep: {swept.windows} rate-limit files and {swept.leases} ended leases deleted")
    elif not quiet:
        print("sweep: another sweep is at work, nothing to do")
    return 0


if __name__ == "__main__":
    sys.exit(main())
