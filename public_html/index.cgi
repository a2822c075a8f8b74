#!/usr/bin/python3 -IS
# The web server starts this file for every request. All it does is find the project and a Python that can run it, and
# say readably what is missing; the service itself is in app/. It is compiled anew each time, so it is kept short. It
# has to parse on every Python from 2.7 on, or a Python that is too old could not say so.
import sys

# The project's folder, "/home/you/kannuki", where it is neither the one above the folder of this file nor that folder.
ROOT = ""

# Where a newer Python may be if the first line names one that is too old; %d stands for the 11 of 3.11.
PYTHONS = (
    "/usr/local/bin/python3.%d",
    "/usr/bin/python3.%d",
    "/opt/alt/python3%d/bin/python3",
    "/usr/local/bin/python3",
    "/usr/bin/python3",
)


def fault(cause, cure):
    """Answer 500 with what is wrong and what to do about it."""
    import json
    import os

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


def try_newer_pythons():
    """Become a newer Python that runs this file; come back where there is none."""
    import os

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
                os.execv(places[number], [places[number], "-IS", __file__])
            except OSError:
                pass


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
            posix.stat(root + "/app/bootstrap.py")
        except OSError:
            continue
        return root


def keep_bytecode(root):
    """Import what lies below the root with bytecode that is kept in var/ and is never older than its source.

    Python takes bytecode for fresh if the source's size and second of change are what they were, so a file uploaded
    twice in one second could go on running as it was before. And sys.pycache_prefix alone would do without
    the bytecode of Python's own library too, which costs more than it saves until all of that is compiled again.
    """
    import posix

    try:
        import _frozen_importlib_external as machinery
    except ImportError:
        import importlib._bootstrap_external as machinery

    class Loader(machinery.SourceFileLoader):
        def path_stats(self, path):
            found = posix.stat(path)
            changed = hash((found.st_mtime_ns, found.st_ctime_ns, found.st_ino)) & 0xFFFFFFFF
            return {"mtime": changed, "size": found.st_size}

        def get_code(self, fullname):
            sys.pycache_prefix = root + "/var/pycache"
            try:
                return machinery.SourceFileLoader.get_code(self, fullname)
            except (EOFError, TypeError, ValueError):  # bytecode that a full disk cut off
                try:
                    posix.unlink(machinery.cache_from_source(self.path))
                except OSError:
                    pass
                return machinery.SourceFileLoader.get_code(self, fullname)
            finally:
                sys.pycache_prefix = None

    def find(folder):
        if not (folder + "/").startswith(root + "/"):
            raise ImportError
        return machinery.FileFinder(
            folder,
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (Loader, machinery.SOURCE_SUFFIXES),
        )

    posix.umask(0o077)  # nobody else on the server may read what is kept in var/
    sys.path_hooks.insert(0, find)
    sys.path.insert(0, root)


def start():
    root = find_root()
    if not root:
        return fault("The folder app was not found.", "Upload it next to public_html, or set ROOT in index.cgi.")
    keep_bytecode(root)
    from app.bootstrap import run_cgi

    run_cgi(root)


if sys.version_info < (3, 9):
    try_newer_pythons()
    fault(
        "The service needs Python 3.9 or newer and was started by Python %d.%d." % sys.version_info[:2],
        "Write the path of a newer one into the first line of index.cgi, as in #!/usr/bin/python3.11 -IS; "
        "ask your host which there are, or choose one in the host's control panel.",
    )
else:
    try:
        start()
    except Exception as error:
        sys.excepthook(*sys.exc_info())
        missing = (isinstance(error, ImportError) and error.name or "").partition(".")[0]
        if missing in ("flask", "werkzeug", "jinja2", "click", "blinker", "itsdangerous", "markupsafe"):
            fault(
                "The Python package %s is not installed." % missing,
                "Run in the project's folder: python3 -m pip install --target vendor -r app/requirements.txt "
                "and upload the folder vendor too.",
            )
        else:
            fault("The service could not start.", "The web server's error log says why.")
