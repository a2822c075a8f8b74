"""Strict JSON in, compact-enough JSON out (RFC 8259), without importing `json`."""

from __future__ import annotations

from app.interpreter import quote_json, scan_json

#: stands for every integer of more digits than any value here can have; int() of 5,000 digits is slow or refused
HUGE = 10**20
#: how many objects and lists may lie in one another; how deep an interpreter itself can read differs by version
MAX_DEPTH = 64
_WHITE_SPACE = " \t\n\r"


class NotJSON(ValueError):
    """The bytes are not one JSON text; the message says why in one sentence."""


def loads(raw: bytes) -> object:
    """Return the value of a JSON text in UTF-8.

    Stricter than most readers: an object that has a member twice is refused. NaN and Infinity are read as floats, so
    that whoever expects an integer can name the member at fault.

    Raises:
        NotJSON: the bytes are not UTF-8, not JSON, nested too deep, or an object has a member twice.
    """
    try:
        text = raw.decode("utf-8")
        plain = _plain_object(text)
        if plain is not None:
            return plain
        start = len(text) - len(text.lstrip(_WHITE_SPACE))
        value, end = scan_json(text, start, _object, _integer, float)
    except NotJSON:
        raise
    except UnicodeDecodeError:
        raise NotJSON("The body is not UTF-8.") from None
    except RecursionError:
        raise NotJSON("The body is nested too deep.") from None
    except (StopIteration, ValueError):
        raise NotJSON("The body is not JSON.") from None
    if text[end:].strip(_WHITE_SPACE):
        raise NotJSON("The body is not JSON.")
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise NotJSON("The body is nested too deep.")
    return value


def dumps(value: object) -> str:
    """Return a value of dicts, lists, strings, integers, booleans and None as JSON text."""
    if isinstance(value, str):
        return f'"{value}"' if _is_plain(value) else quote_json(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(key)}: {dumps(member)}" for key, member in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(dumps, value)) + "]"
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def _plain_object(text: str) -> dict[str, object] | None:
    """Return an object of plain texts and plain numbers, as nearly every body is; None where a text is anything else.

    The interpreter's own scanner costs more to load than this costs to run.
    """
    braced = text.strip(_WHITE_SPACE)
    if not (braced.startswith("{") and braced.endswith("}")):
        return None
    # Without a backslash, quotation marks do nothing but begin and end texts.
    pieces = braced[1:-1].split('"')
    texts, between = pieces[1::2], [piece.strip(_WHITE_SPACE) for piece in pieces[0::2]]
    if len(texts) == len(between) or between[0] or not all(map(_is_plain, texts)):
        return None
    members: dict[str, object] = {}
    position, separator = 0, "," if texts else ""
    while separator == "," and position < len(texts):
        name, behind = texts[position], between[position + 1]
        position += 1
        value: object
        if behind == ":" and position < len(texts):
            value, separator = texts[position], between[position + 1]
            position += 1
        else:
            value, separator = _plain_number(behind)
        if value is None or name in members:
            return None
        members[name] = value
    return members if separator == "" and position == len(texts) else None


def _plain_number(behind: str) -> tuple[int | float | None, str]:
    """Return the number behind a colon, or None, and what follows it."""
    number, comma, rest = behind[1:].partition(",")
    number = number.strip(_WHITE_SPACE)
    whole, point, fraction = number.partition(".")
    if behind[:1] != ":" or rest or not (_is_plain_whole(whole) and (not point or _are_digits(fraction))):
        return None, ""
    return (float(number) if point else int(number)), comma


def _is_plain_whole(text: str) -> bool:
    return _are_digits(text) and len(text) < 20 and (text == "0" or text[0] != "0")


def _are_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_plain(text: str) -> bool:
    """Say whether a JSON string shows the text as it is."""
    return text.isprintable() and '"' not in text and "\\" not in text


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotJSON("An object in the body has the same member twice.")
    return members


def _integer(digits: str) -> int:
    if len(digits) > 19:
        return -HUGE if digits[0] == "-" else HUGE
    return int(digits)


def _is_deeper(value: object, levels: int) -> bool:
    inside = [value]
    for _ in range(levels + 1):
        containers = [item for item in inside if isinstance(item, (dict, list))]
        if not containers:
            return False
        inside = [member for item in containers for member in (item.values() if isinstance(item, dict) else item)]
    return True
