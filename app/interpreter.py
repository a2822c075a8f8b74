"""Parts of CPython that a request needs, taken from where they cost least.

Every request of a CGI script imports everything anew, and `json`, `hashlib`, `os` and `sqlite3` bring along many
modules that a lock never uses. The compiled parts behind them are private to CPython, so each has the public module as
its fallback, and tests hold the two alike. (`posix`, which holds the system calls of `os`, needs none: it is built into
every Python that runs on such a server.)
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    # By version, not by trial: looking for a module that is not there reads every folder of the import path.
    if sys.version_info >= (3, 12):
        import _sha2 as _hashes
    else:
        import _sha256 as _hashes  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    import hashlib as _hashes  # type: ignore[no-redef, unused-ignore]

__all__ = ["load_sqlite", "quote_json", "scan_json", "sha256_hex"]


class _ScannerContext:
    """What CPython's JSON scanner reads its options from."""

    strict = True
    object_hook = None
    parse_float = float
    memo: dict[str, str] = {}

    def __init__(self, object_pairs_hook: Any, parse_int: Any, parse_constant: Any) -> None:
        self.object_pairs_hook = object_pairs_hook
        self.parse_int = parse_int
        self.parse_constant = parse_constant


def scan_json(text: str, start: int, object_pairs_hook: Any, parse_int: Any, parse_constant: Any) -> tuple[Any, int]:
    """Read one JSON value from a text; return it and the index behind it.

    The hooks are those of json.JSONDecoder.

    Raises:
        StopIteration: no value begins there.
        ValueError: it is no JSON.
        RecursionError: it is nested too deep for this interpreter.
    """
    context = _ScannerContext(object_pairs_hook, parse_int, parse_constant)
    try:
        from _json import make_scanner
    except ImportError:
        return _scan_json_publicly(text, start, context)
    scan: Any = make_scanner
    try:
        found: tuple[Any, int] = scan(context)(text, start)
    except SystemError:
        # Up to 3.12 it takes its error class from json.decoder without importing it, and fails without one.
        import json.decoder  # noqa: F401

        found = scan(context)(text, start)
    return found


def _scan_json_publicly(text: str, start: int, context: _ScannerContext) -> tuple[Any, int]:
    import json
    import re

    # Python's own scanner takes more than JSON where int() does: "\\u+0e9" and digits of other scripts.
    odd_escape = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9A-Fa-f]{4})")
    if odd_escape.search(text) or re.search(r"[^\x00-\x7f]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)):
        raise ValueError
    decoder: Any = json.JSONDecoder(
        object_pairs_hook=context.object_pairs_hook, parse_int=context.parse_int, parse_constant=context.parse_constant
    )
    found: tuple[Any, int] = decoder.scan_once(text, start)
    return found


def quote_json(text: str) -> str:
    """Return a text as a JSON string, other characters than ASCII as they are."""
    try:
        from _json import encode_basestring
    except ImportError:
        from json.encoder import encode_basestring
    quoted: str = encode_basestring(text)
    return quoted


def sha256_hex(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes as 64 hexadecimal digits."""
    digest: str = _hashes.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digest


def load_sqlite() -> Any:
    """Return the module that has SQLite's `connect` and `Error`."""
    if "functools" not in sys.modules:
        alone = _sqlite_alone()
        if alone:
            return alone
    import sqlite3

    return sqlite3


def _sqlite_alone() -> Any:
    """Return the compiled part of `sqlite3` by itself, or None where there is none.

    It wants only lru_cache of functools, for statements that are prepared twice. A request prepares each one once, so
    a stand-in without a cache does, and spares the import of functools and all that functools imports.
    """
    stand_in: Any = type(sys)("functools")
    stand_in.lru_cache = lambda maxsize: lambda prepare: prepare
    sys.modules["functools"] = stand_in
    try:
        return _extension("_sqlite3") or __import__("_sqlite3")
    except Exception:
        return None  # not there, or one that wants more of functools
    finally:
        del sys.modules["functools"]


def _extension(name: str) -> Any:
    """Return a compiled module from the folder where most builds have theirs, or None.

    Python's own search would list the whole library's folder before that one.
    """
    import _imp

    for folder in sys.path:
        if folder.endswith("/lib-dynload"):
            make_spec: Any = type(sys.__spec__)
            spec = make_spec(name, None, origin=f"{folder}/{name}{_imp.extension_suffixes()[0]}")
            try:
                module = _imp.create_dynamic(spec)
            except ImportError:
                return None  # built in, or under another name
            _imp.exec_dynamic(module)
            sys.modules[name] = module
            return module
    return None
