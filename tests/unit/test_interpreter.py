"""The parts taken from CPython's privates and their public fallbacks, alike under every supported Python."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from app import interpreter, jsontext
from tests.hosting.machine import python

ROOT = Path(interpreter.__file__).parents[1]
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")

#: what is held back -> (modules, whether SQLite wants more of functools, the private parts that are used all the same)
HELD_BACK = {
    "nothing": ([], "", {"scanner", "hash", "sqlite"}),
    "_json": (["_json"], "", {"hash", "sqlite"}),
    "_sha2 and _sha256": (["_sha2", "_sha256"], "", {"scanner", "sqlite"}),
    "_sqlite3 alone": ([], "ImportError", {"scanner", "hash"}),
    "_sqlite3 that wants more of functools": ([], "AttributeError", {"scanner", "hash"}),
    "all": (["_json", "_sha2", "_sha256"], "ImportError", set()),
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
    '"\\u+0e9"',
    '"\\u0_41"',
    '"\\u 041"',
    '"\\\\u+0e9"',
    "\uff11\uff12",
    '{"a": \u0661}',
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

#: what a program gets on its standard input: the project, what is held back, and what it works on
PREPARATION = """
import sys
root, modules, refusal, given = eval(sys.stdin.read())  # ast imports functools, and what is tested depends on that
sys.path.insert(0, root)
for name in modules:
    sys.modules[name] = None

if refusal:
    import _imp
    create_dynamic = _imp.create_dynamic

    def create_or_refuse(spec, *more):
        if spec.name == "_sqlite3" and "functools" in sys.modules and not hasattr(sys.modules["functools"], "partial"):
            raise {"ImportError": ImportError, "AttributeError": AttributeError}[refusal](spec.name)
        return create_dynamic(spec, *more)

    _imp.create_dynamic = create_or_refuse
from app import interpreter
"""
#: prints what the parts make of the texts, and which are the private ones
PARTS = """
from app import jsontext

def read(text):
    try:
        return jsontext.loads(text.encode("utf-8"))
    except jsontext.NotJSON as error:
        return str(error)

json_texts, texts = given
private = {"sqlite"} if interpreter.load_sqlite().__name__ == "_sqlite3" else set()
if interpreter._hashes.__name__ in ("_sha2", "_sha256"):
    private.add("hash")
publicly, scans = interpreter._scan_json_publicly, []
interpreter._scan_json_publicly = lambda *given: scans.append(given) or publicly(*given)
found = [[repr(read(text)) for text in json_texts]]
found.append([interpreter.quote_json(text) for text in texts])
found.append([interpreter.sha256_hex(text) for text in texts])
if not scans:
    private.add("scanner")
print(ascii((private, found)))
"""
#: sends requests to the service with a clock that stands still, prints the answers and what is then in its files
SERVICE = """
import io, os
from app.bootstrap import build_service
from app.cgi import render
from app.request import Request

class Clock:
    def now_ms(self):
        return now_ms

var, requests = given
service = build_service(var, Clock())
answers = []
for now_ms, method, target, body in requests:
    path, _, query = target.partition("?")
    environ = {"REQUEST_METHOD": method, "REQUEST_URI": target, "QUERY_STRING": query, "SCRIPT_NAME": "/index.cgi"}
    environ.update(REMOTE_ADDR="192.0.2.1", CONTENT_LENGTH=str(len(body)))
    answers.append(render(service, Request(environ, io.BytesIO(body).read, True)))
windows = {}
for name in os.listdir(var + "/rate-limits"):
    with open(var + "/rate-limits/" + name, "rb") as file:
        windows[name] = file.read()
connection = interpreter.load_sqlite().connect(var + "/locks.sqlite3")
rows = connection.execute("SELECT * FROM distributed_locks").fetchall()
connection.close()
print(ascii((answers, windows, rows)))
"""
NOW_MS = 1796097906123
CONFIG = 'RATE_LIMITS = {"read": (5, 60)}\nMAX_LOCKS = 3\n'
#: (instant, method, target, body)
REQUESTS = [
    (NOW_MS, "POST", "/locks/a", b'{"owner": "alice", "ttl_seconds": 60}'),
    (NOW_MS, "POST", "/locks/a", b'{"owner": "alice", "ttl_seconds": 90}'),
    (NOW_MS, "POST", "/locks/a", b'{"owner": "bob", "ttl_seconds": 60}'),
    (NOW_MS, "POST", "/locks/%C3%A9%22%5C", '{"owner": "\\u00e9\U0001f512\\"\\\\", "ttl_seconds": 60}'.encode()),
    (NOW_MS, "GET", "/locks/%C3%A9%22%5C", b""),
    (NOW_MS, "GET", "/locks/%E2%80%A8", b""),
    (NOW_MS, "POST", "/locks/%E2%80%A8", '{"owner": "\u2028\u2029\x7f'.encode() + b'", "ttl_seconds": 1}'),
    (NOW_MS, "POST", "/locks/%E2%80%A8", b'{"owner": "a", "ttl_seconds": 1}'),
    (NOW_MS, "POST", "/locks/one-too-many", b'{"owner": "a", "ttl_seconds": 1}'),
    (NOW_MS, "GET", "/locks?limit=2", b""),
    (NOW_MS, "POST", "/locks/a/renew", b'{"owner": "alice", "ttl_seconds": 604800}'),
    (NOW_MS, "POST", "/locks/a/renew", b'{"owner": "bob", "ttl_seconds": 1}'),
    (NOW_MS, "POST", "/locks/a/release", b'{"owner": "bob"}'),
    (NOW_MS + 1000, "POST", "/locks/%E2%80%A8", b'{"owner": "next", "ttl_seconds": 1}'),
    (NOW_MS + 1000, "DELETE", "/locks/a", b'{"owner": "alice"}'),
    (NOW_MS + 1000, "DELETE", "/locks/a?owner=alice", b""),
    (NOW_MS + 1000, "POST", "/locks/a", b'{"owner": "", "ttl_seconds": 0}'),
    (NOW_MS + 1000, "POST", "/locks/a", b'{"owner": "\\ud800", "ttl_seconds": 1e3}'),
    (NOW_MS + 1000, "POST", "/locks/a", b'{"owner": "a", "owner": "b"}'),
    (NOW_MS + 1000, "POST", "/locks/a", b'{"owner": "a", "ttl_seconds": NaN}'),
    (NOW_MS + 1000, "POST", "/locks/a", b'{"owner": "a",}'),
    (NOW_MS + 1000, "POST", "/locks/a", b"[" * 60_000),
    (NOW_MS + 1000, "GET", "/locks/a", b""),
    (NOW_MS + 1000, "GET", "/locks/a", b""),
    (NOW_MS + 1000, "GET", "/locks/a", b""),
    (NOW_MS + 61_000, "GET", "/locks/%E2%80%A8", b""),
    (NOW_MS + 61_000, "GET", "/health", b""),
]


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


def run(version: str, program: str, modules: list[str], refusal: str, given: object) -> object:
    """Run a program under a Python, started as the script's first line does, and return what it prints."""
    interpreter = version if "/" in version else python(version)
    ended = subprocess.run(
        [interpreter, "-ISB", "-W", "error", "-c", PREPARATION + program],
        input=ascii((str(ROOT), modules, refusal, given)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return ast.literal_eval(ended.stdout)


@pytest.mark.parametrize("held_back", HELD_BACK)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_private_parts_and_their_public_fallbacks_give_the_same(version, held_back):
    modules, refusal, used = HELD_BACK[held_back]
    private, found = run(version, PARTS, modules, refusal, (JSON_TEXTS, TEXTS))
    assert private == used
    for texts, those, these in zip((JSON_TEXTS, TEXTS, TEXTS), found, expected()):
        assert len(those) == len(these) == len(texts)
        for text, that, this in zip(texts, those, these):
            assert (text[:80], that) == (text[:80], this)


@pytest.fixture(scope="module")
def expected_service(tmp_path_factory):
    """Answers and files with nothing held back, under the Python that runs the tests."""
    return serve(sys.executable, [], "", tmp_path_factory.mktemp("service"))


def serve(version: str, modules: list[str], refusal: str, folder: Path) -> object:
    (folder / "config.py").write_text(CONFIG)
    return run(version, SERVICE, modules, refusal, (str(folder), REQUESTS))


@pytest.mark.parametrize("held_back", HELD_BACK)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_whole_service_answers_and_stores_the_same_with_the_fallbacks(
    version, held_back, tmp_path, expected_service
):
    modules, refusal, _ = HELD_BACK[held_back]
    answers, windows, rows = serve(version, modules, refusal, tmp_path)
    for request, answer, expected_answer in zip(REQUESTS, answers, expected_service[0]):
        assert (request[:3], answer) == (request[:3], expected_answer)
    assert (windows, rows) == expected_service[1:]


def test_the_requests_above_meet_all_that_the_parts_are_used_for(expected_service):
    answers, windows, rows = expected_service
    statuses = {answer[len(b"Status: ") :][:3] for answer in answers}
    assert statuses == {b"200", b"204", b"400", b"403", b"404", b"422", b"429", b"503"}
    assert (len(windows), len(rows)) == (3, 2)


def test_sqlite_leaves_no_stand_in_behind():
    program = "sqlite = interpreter.load_sqlite()\nimport functools\nprint(ascii(functools.partial.__name__))"
    assert run(sys.executable, program, [], "", None) == "partial"
