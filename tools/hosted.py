"""What the tools have in common that run on the server itself, from cron or a shell.

Parses on Python 3.6, so that a Python too old is told so in a sentence.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VAR_DIR = ROOT + "/var"


def begin() -> None:
    """Refuse to run as a web script or under a Python too old; from here on, new files are the owner's only."""
    if os.environ.get("GATEWAY_INTERFACE"):
        sys.stdout.write("Status: 403 Forbidden\r\nContent-Type: text/plain\r\n\r\nThis is a tool, not a page.\n")
        sys.exit(1)
    if sys.version_info < (3, 9):  # noqa: UP036 - it is for those who start it with an older one
        sys.exit("This needs Python 3.9 or newer. Start it with a newer one, by its whole path.")
    os.umask(0o077)
    if os.path.isdir(VAR_DIR) and os.stat(VAR_DIR).st_uid != os.geteuid():
        # What another user makes in there, root included, the website could not use.
        sys.exit("Run this as the user that the website runs as: the folder var/ belongs to another user.")
