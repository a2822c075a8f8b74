#!/usr/bin/python3 -IS
# The web server starts this file for every request, and Python compiles it anew each time, so it is short. It finds the
# project and runs the compiled code of app/ that is kept in var/; app/startup.py does all that is out of the ordinary.
# It has to parse on every Python from 2.7 on, or a Python that is too old could not say so.
import sys

# The project's folder, where it is neither the one above this file's folder nor that folder itself: "/home/you/kannuki".
ROOT = ""


def find_root():
    """Return the project's folder, or nothing."""
    import posix

    path = __file__
    if ROOT or path[:1] != "/" or "/." in path:
        import os

        path = os.path.abspath(path)
    folder = path.rpartition("/")[0]
    for root in (os.path.abspath(os.path.join(folder, ROOT)),) if ROOT else (folder.rpartition("/")[0], folder):
        try:
            posix.stat(root + "/app/startup.py")
        except OSError:
            continue
        return root


def start(root):
    """Answer the request."""
    if sys.version_info >= (3, 9):
        import marshal
        import posix

        try:
            lane = posix.open(root + "/var/pycache/lane-" + sys.implementation.cache_tag, posix.O_CLOEXEC)
            length = int(posix.read(lane, 8))
            hot, others = marshal.loads(posix.read(lane, length))
            names = {"__name__": "app.lane"}
            exec(hot[0][1], names)
            run = names["run"]
        except Exception:
            pass  # not compiled yet, or cut off
        else:
            if run(root, lane, 8 + length, hot, others):
                return
    sys.dont_write_bytecode = True  # what the lane holds needs no other copies
    from app.startup import begin

    begin(root, __file__)


root = find_root()
if root:
    sys.path.append(root)
    try:
        start(root)
    except Exception as error:
        from app.startup import report

        report(error)
else:
    import os

    while "GATEWAY_INTERFACE" in os.environ and os.read(0, 65536):
        pass  # the web server loses an answer that comes before its request was read
    sys.stderr.write("kannuki: the folder app was not found\n")
    sys.stdout.write(
        "Status: 500 Internal Server Error\r\nContent-Type: application/problem+json\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n"
        '{"type": "/problems/internal-error", "title": "Internal error.", "status": 500, "detail": '
        '"The folder app was not found. Upload it next to public_html, or set ROOT in index.cgi."}\n'
    )
