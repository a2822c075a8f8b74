"""The parts taken from CPython's privates and their public fallbacks, alike under every supported Python."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from app import interpreter, jsontext
from tests.hosting.machine import python

ROOT = Path(interpreter.__file__).parents[1]
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")

#: names that sys.modules holds back -> whether the scanner, whether the hash are the private ones then
HELD_BACK = {
    "nothing": ([], True, True),
    "_json": (["_json"], False, True),
    "_sha2 and _sha256": (["_sha2", "_sha256"], True, False),
    "all": (["_json", "_sha2", "_sha256"], False, False),
}

JSON_TEXTS = [
    "",
    " ",
    "{}",
    "[]",
    "null",
    "nul",
    " \r\n\t[1, 2.5, -0, -0.0, 1e3, 1E-2, true, false, null]\r\n",
    '{"owner": "a", "ttl_seconds": 60}',
    '{"owner": "a", "owner": "b"}',
    '[{"a": {"b": 1, "\\u0062": 2}}]',
    '{"a": 1,}',
    '{"a": 1, }',
    '{"a" : 1 , "b" :2}',
    '{"a"}',
    '{"a": }',
    "{1: 2}",
    "{a: 2}",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "{",
    '{"a": 1',
    '"',
    '"a',
    '"\\',
    '"\\u',
    '"\\u00',
    '"a\tb"',
    '"\x01"',
    '"\x7f"',
    '"\\b\\f\\n\\r\\t\\"\\\\\\/"',
    '"\\a"',
    '"\\u00e9\u00e9"',
    '"\\ud83d\\udd12"',
    '"\\ud83d"',
    '"\\udd12\\ud83d"',
    '"\\ud83d\\u0041"',
    '"\\uD83D\\uDD12"',
    '"\\u00g0"',
    "-",
    "+1",
    "01",
    "-01",
    "1.",
    ".5",
    "1e",
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "-Infinity",
    "-Inf",
    "nan",
    "[NaN]",
    "1" * 19,
    "1" * 20,
    "-" + "1" * 18,
    "-" + "1" * 19,
    "9" * 5000,
    '{"ttl_seconds": ' + "9" * 60_000 + "}",
    "1.0" + "0" * 5000,
    "{} {}",
    "{}x",
    "{}\0",
    "\ufeff{}",
    "\v{}",
    "\xa0{}",
    "'a'",
    "[" * 64 + "]" * 64,
    "[" * 65 + "]" * 65,
    "[" * 5000 + "]" * 5000,
    "[" * 65_536,
    '{"a":' * 13_000,
    '{"a":' * 5000 + "1" + "}" * 5000,
    '"' + "[" * 100 + '"',
]
TEXTS = [
    "",
    "a",
    '"\\/',
    "".join(map(chr, range(0x100))),
    "\u2028\u2029\ufeff\uffff",
    "\U0001f512\U0010ffff",
    "acquire\0300\060\0ip:192.0.2.1",
    "\ud800",
    "a" * 1000,
]

#: prints which parts are the private ones, and what they make of the texts
PROGRAM = """
import ast, sys
root, held_back, json_texts, texts = ast.literal_eval(sys.stdin.read())
sys.path.insert(0, root)
for name in held_back:
    sys.modules[name] = None
from app import interpreter, jsontext

def read(text):
    try:
        return jsontext.loads(text.encode("utf-8"))
    except jsontext.NotJSON as error:
        return str(error)

private = [interpreter._make_scanner is not None, interpreter._sha256.__module__ in ("_sha2", "_sha256")]
found = [[repr(read(text)) for text in json_texts]]
found.append([interpreter.quote_json(text) for text in texts])
found.append([interpreter.sha256_hex(text) for text in texts])
print(ascii((private, found)))
"""


def expected() -> list[list[str]]:
    """What app.jsontext (which its own tests hold against json), json and hashlib make of the texts in this process."""
    read = []
    for text in JSON_TEXTS:
        try:
            read.append(repr(jsontext.loads(text.encode("utf-8"))))
        except jsontext.NotJSON as error:
            read.append(repr(str(error)))
    quoted = [json.dumps(text, ensure_ascii=False) for text in TEXTS]
    hashed = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in TEXTS]
    return [read, quoted, hashed]


@pytest.mark.parametrize("held_back", HELD_BACK)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_private_parts_and_their_public_fallbacks_give_the_same(version, held_back):
    names, private_scanner, private_hash = HELD_BACK[held_back]
    run = subprocess.run(
        [python(version), "-ISB", "-W", "error", "-c", PROGRAM],
        input=ascii((str(ROOT), names, JSON_TEXTS, TEXTS)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    private, found = ast.literal_eval(run.stdout)
    assert private == [private_scanner, private_hash]
    for texts, those, these in zip((JSON_TEXTS, TEXTS, TEXTS), found, expected()):
        assert len(those) == len(these) == len(texts)
        for text, that, this in zip(texts, those, these):
            assert (text[:80], that) == (text[:80], this)
