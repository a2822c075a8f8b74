"""Parts of CPython that a request needs, taken from where they cost least.

Every request of a CGI script imports everything anew, and `json` and `hashlib` bring along many modules that a lock
never uses. The compiled parts behind them are private to CPython, so each has the public module as its fallback, and
tests hold the two alike.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_make_scanner: Any
try:
    from _json import encode_basestring as quote_json
    from _json import make_scanner as _make_scanner
except ImportError:
    from json.encoder import encode_basestring as quote_json

    _make_scanner = None

try:
    from _sha2 import sha256 as _sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256 as _sha256  # type: ignore[import-not-found,no-redef,unused-ignore]
    except ImportError:
        from hashlib import sha256 as _sha256

__all__ = ["json_scanner", "quote_json", "sha256_hex"]


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


def json_scanner(
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any],
    parse_int: Callable[[str], Any],
    parse_constant: Callable[[str], Any],
) -> Callable[[str, int], tuple[Any, int]]:
    """Return a function that reads one JSON value from a text at an index, as (value, index behind it).

    It raises StopIteration where no value begins, ValueError for other faults and RecursionError for deep nesting.
    """
    if _make_scanner is not None:
        scan = _make_scanner(_ScannerContext(object_pairs_hook, parse_int, parse_constant))

        def scan_once(text: str, index: int) -> tuple[Any, int]:
            try:
                found: tuple[Any, int] = scan(text, index)
            except SystemError:
                # Up to 3.12 it takes its error class from json.decoder without importing it, and fails without one.
                import json.decoder  # noqa: F401

                found = scan(text, index)
            return found

        return scan_once
    from json import JSONDecoder

    decoder: Any = JSONDecoder(
        object_pairs_hook=object_pairs_hook, parse_int=parse_int, parse_constant=parse_constant, strict=True
    )
    public_scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once
    return public_scan


def sha256_hex(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes as 64 hexadecimal digits."""
    digest: str = _sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digest
