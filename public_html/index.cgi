#!/usr/bin/python3 -IS
# The web server starts this file for every request, and Python compiles it anew each time, so it is short and does one
# thing: it runs the compiled code of app/ that is kept in var/. app/lane.py is the first of that code. Where there is
# none that can be run, app/startup.py makes it, or says what is missing.
# It has to parse on every Python from 2.7 on, or a Python that is too old could not say so.
import sys

# The project's folder, as in "/home/you/kannuki", where it is neither the one above this file's folder nor that folder.
ROOT = ""

run = None
try:
    import marshal
    import posix

    folder = (__file__ if __file__[0] == "/" else posix.getcwd() + "/" + __file__).rpartition("/")[0]
    for root in (ROOT,) if ROOT else (folder.rpartition("/")[0], folder):
        try:
            python = sys.implementation.cache_tag + "-%x" % sys.hexversion
            lane = posix.open(root + "/var/pycache/lane-1-" + python, posix.O_CLOEXEC)
        except OSError:
            continue
        names = {"__name__": "app.lane"}
        exec(marshal.loads(posix.read(lane, int(posix.read(lane, 8)))), names)
        run = names["run"]
        break
except Exception:
    pass  # cut off, or of another release

if not (run and run(root, lane)):
    import os

    why = "The folder app was not found. Upload it next to public_html, or set ROOT in index.cgi."
    try:
        sys.dont_write_bytecode = True
        folder = os.path.dirname(os.path.abspath(__file__))
        for root in (ROOT,) if ROOT else (os.path.dirname(folder), folder):
            if os.path.exists(root + "/app/startup.py"):
                sys.path.append(root)
                from app.startup import begin

                why = begin(root, __file__)
                break
    except Exception:
        sys.excepthook(*sys.exc_info())
        why = "The files of the service are incomplete or damaged. Upload the folder app again."
    if why:
        sys.stderr.write("kannuki: " + why + "\n")
        while "GATEWAY_INTERFACE" in os.environ and os.read(0, 65536):
            pass  # the web server loses an answer that comes before its request was read
        sys.stdout.write(
            "Status: 500 Internal Server Error\r\nContent-Type: application/problem+json\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n"
            '{"type": "/problems/internal-error", "title": "Internal error.", "status": 500, "detail": "' + why + '"}\n'
        )
