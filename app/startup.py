"""What public_html/index.cgi turns to when it cannot go straight to the answer.

Another Python is tried where the one at hand is too old, the code is compiled where that has not been done, and what is
missing is said readably. This file parses on every Python from 2.7 on, or one that is too old could not say so.
"""

import os
import sys

OLDEST = (3, 9)
FLASK_PARTS = ("flask", "werkzeug", "jinja2", "click", "blinker", "itsdangerous", "markupsafe")

# Where a newer Python may be if the first line names one that is too old; %d stands for the 11 of 3.11.
PYTHONS = (
    "/usr/local/bin/python3.%d",
    "/usr/bin/python3.%d",
    "/opt/alt/python3%d/bin/python3",
    "/usr/local/bin/python3",
    "/usr/bin/python3",
)


def begin(root, script):
    """Answer the request, by the long way; what stands in the way is said in the answer.

    root is the project's folder, script the path of index.cgi. Returns nothing: what there is to say is said.
    """
    if sys.version_info < OLDEST:
        try_newer_pythons(script)
        fault(
            "The service needs Python 3.9 or newer and was started by Python %d.%d." % sys.version_info[:2],
            "Write the path of a newer one into the first line of index.cgi, as in #!/usr/bin/python3.11 -IS; "
            "ask your host which there are, or choose one in the host's control panel.",
        )
        return
    try:
        os.umask(0o077)  # nobody else on the server may read what is kept in var/
        keep_compiled(root)
        from app.bootstrap import run_cgi

        run_cgi(root)
    except Exception as error:
        report(error)


def report(error):
    """Say why the service could not start."""
    sys.excepthook(*sys.exc_info())
    missing = ((isinstance(error, ImportError) and error.name) or "").partition(".")[0]
    if missing in FLASK_PARTS:
        fault(
            "The Python package %s is not installed." % missing,
            "Run in the project's folder: python3 -m pip install --target vendor -r app/requirements.txt "
            "and upload the folder vendor too.",
        )
    else:
        fault(
            "The service could not start (%s)." % type(error).__name__,
            "Most often a file did not arrive whole: upload the folder app again. The error log says more.",
        )


def keep_compiled(root):
    """Compile app/ and keep the result for the next request, as app.lane describes it."""
    import marshal

    try:
        from _imp import source_hash
    except ImportError:
        return  # a Python of another make: there every request goes the long way

    lane = compiled(root + "/app/lane.py")
    names = {"__name__": "app.lane"}
    exec(lane, names)
    codes = {}
    for file in os.listdir(root + "/app"):
        if file.endswith(".py"):
            name = "app" if file == "__init__.py" else "app." + file[: -len(".py")]
            path = names["path_of"](root, name)
            try:
                facts = names["facts_about"](path)  # before it is read: what changes in between is noticed next time
                codes[name] = facts, compiled(path)
            except (SyntaxError, ValueError, OSError):
                continue  # left behind by an editor or an FTP client; if it is needed, its import says so
    wanted = ("app.lane",) + names["HOT"]
    if not all(name in codes for name in wanted):
        return
    hot = [codes.pop(name) for name in wanted]
    hot[0] = hot[0][0], None  # its code stands before
    others, behind = {}, b""
    for name, (facts, code) in codes.items():
        raw = marshal.dumps(code)
        others[name] = facts, len(behind), len(raw), source_hash(0, raw)
        behind += raw
    first, content = marshal.dumps(lane), marshal.dumps((hot, others))
    parts = b"%08d" % len(first), first, b"%08d" % len(content), source_hash(0, content), content, behind
    write_whole(names["lane_path"](root), b"".join(parts))


def compiled(path):
    """Return the code of a source file, without what only people read."""
    import __future__

    with open(path, "rb") as file:
        # The flag does what the line does, and spares each request the import of a module that holds nothing else.
        source = file.read().replace(b"from __future__ import annotations", b"", 1)
    return compile(source, path, "exec", __future__.annotations.compiler_flag, True, 2)


def write_whole(path, content):
    """Write a file whole or not at all; without the one of compiled code, requests are slow but answered."""
    unfinished = path + "." + str(os.getpid())
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        try:
            with open(unfinished, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # Python can crash on code that a power cut has turned into zeros
            os.rename(unfinished, path)
        except OSError:
            os.unlink(unfinished)
    except OSError:
        return


def try_newer_pythons(script):
    """Become a newer Python that runs the script; come back where there is none."""
    places = [place % minor for minor in range(20, 8, -1) for place in PYTHONS if "%d" in place]
    places += [place for place in PYTHONS if "%d" not in place]
    # One that turns out to be too old as well goes on behind its own place in the list, so this ends.
    try:
        tried = int(os.environ.get("KANNUKI_PYTHONS_TRIED", "0"))
    except ValueError:
        tried = len(places)
    for number in range(max(tried, 0), len(places)):
        if os.access(places[number], os.X_OK):
            os.environ["KANNUKI_PYTHONS_TRIED"] = str(number + 1)
            try:
                os.execv(places[number], [places[number], "-IS", script])
            except OSError:
                pass


def fault(cause, cure):
    """Answer 500 with what is wrong and what to do about it."""
    import json

    sys.stderr.write("kannuki: %s %s\n" % (cause, cure))
    environ = os.environ
    if "GATEWAY_INTERFACE" in environ:
        try:
            while os.read(0, 65536):  # the web server loses an answer that comes before its request was read
                pass
        except OSError:
            pass
    base = environ.get("SCRIPT_NAME", "").rpartition("/")[0]
    if base.endswith("/public_html") and base + "/" not in environ.get("REQUEST_URI", "").partition("?")[0]:
        base = base[: -len("/public_html")]  # the project's own .htaccess sent an address above public_html/ here
    if "text/html" in environ.get("HTTP_ACCEPT", ""):
        media_type = "text/html; charset=utf-8"
        page = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Internal error.</title>\n'
        page += "<h1>Internal error.</h1>\n<p>%s</p>\n<p>%s</p>\n</html>\n" % (cause, cure)
    else:
        media_type = "application/problem+json"
        problem = [("type", base + "/problems/internal-error"), ("title", "Internal error."), ("status", 500)]
        problem.append(("detail", cause + " " + cure))
        page = "{" + ", ".join(json.dumps(name) + ": " + json.dumps(value) for name, value in problem) + "}\n"
    if environ.get("REQUEST_METHOD") == "HEAD":
        page = ""
    head = "Status: 500 Internal Server Error\r\nContent-Type: %s\r\n" % media_type
    sys.stdout.write(head + "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n" + page)
    sys.stdout.flush()
