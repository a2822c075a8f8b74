"""The settings: what each accepts, how faults are told, and the file of plain assignments."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import settings_file
from app.errors import SettingsError
from app.ratelimit import DEFAULT_RATE_LIMITS
from app.settings import DEFAULTS as SHIPPED
from app.settings import Settings, load
from app.settings_file import checked

DEFAULTS = {
    "MAX_TTL_SECONDS": 604800,
    "MAX_LOCKS": 10000,
    "KEEP_EXPIRED_SECONDS": 3600,
    "BUSY_TIMEOUT_SECONDS": 5,
    "RATE_LIMITS": {"acquire": (300, 60), "hold": (1200, 60), "read": (600, 60), "auth": (30, 3600)},
    "RATE_LIMIT_STORAGE": "file",
    "TRUSTED_PROXY_HOPS": 0,
    "CORS_ORIGINS": (),
    "API_KEYS": {},
}
TEN_YEARS = 10 * 365 * 86_400

ACCEPTED = {
    "MAX_TTL_SECONDS": [1, 60, TEN_YEARS],
    "MAX_LOCKS": [1, 10_000, 100_000_000],
    "KEEP_EXPIRED_SECONDS": [0, 1, TEN_YEARS],
    "BUSY_TIMEOUT_SECONDS": [0.001, 0.5, 1, 5, 60, 60.0],
    "RATE_LIMITS": [
        {},
        {"acquire": (1, 1)},
        {"acquire": [300, 60]},
        {"acquire": (1_000_000, 604_800), "hold": None},
        dict.fromkeys(DEFAULT_RATE_LIMITS),
    ],
    "RATE_LIMIT_STORAGE": ["file", "memory"],
    "TRUSTED_PROXY_HOPS": [0, 1, 10],
    "CORS_ORIGINS": [
        (),
        [],
        ("https://app.example",),
        ["http://localhost:5173", "https://app.example:8443"],
        ("http://[2001:db8::1]:8000",),
        ("https://xn--r8jz45g.example",),
    ],
    "API_KEYS": [{}],
}
NO_WHOLE_NUMBERS = [None, True, False, "60", "", 1.0, 60.5, float("nan"), float("inf"), [], (60,), {}, b"60"]
REFUSED = {
    "MAX_TTL_SECONDS": [*NO_WHOLE_NUMBERS, 0, -1, TEN_YEARS + 1, 10**30],
    "MAX_LOCKS": [*NO_WHOLE_NUMBERS, 0, -1, 100_000_001],
    "KEEP_EXPIRED_SECONDS": [*NO_WHOLE_NUMBERS, -1, TEN_YEARS + 1],
    "BUSY_TIMEOUT_SECONDS": [0, 0.0, -0.1, 60.001, 61, True, None, "5", float("nan"), float("inf"), [5], 5j],
    "RATE_LIMITS": [
        None,
        True,
        "acquire",
        [],
        ("acquire",),
        [("acquire", (300, 60))],
        {"acquired": (300, 60)},
        {"": (300, 60)},
        {1: (300, 60)},
        {None: None},
        {"acquired": None},
        {"acquire": 300},
        {"acquire": False},
        {"acquire": ()},
        {"acquire": (300,)},
        {"acquire": (300, 60, 1)},
        {"acquire": "ab"},
        {"acquire": {300, 60}},
        {"acquire": {300: 60, 1: 2}},
        {"acquire": (0, 60)},
        {"acquire": (-300, 60)},
        {"acquire": (300, 0)},
        {"acquire": (300, -60)},
        {"acquire": (1_000_001, 60)},
        {"acquire": (300, 604_801)},
        {"acquire": (300.0, 60)},
        {"acquire": (300, 60.0)},
        {"acquire": (True, 60)},
        {"acquire": (300, True)},
        {"acquire": ("300", "60")},
        {"acquire": (None, None)},
        {"acquire": (300, 60), "hold": (0, 60)},
    ],
    "RATE_LIMIT_STORAGE": [
        None,
        True,
        0,
        "",
        "redis",
        "FILE",
        " file",
        b"file",
        ["file"],
        ("file", "memory"),
        {"file": 1},
    ],
    "TRUSTED_PROXY_HOPS": [*NO_WHOLE_NUMBERS, -1, 11],
    "CORS_ORIGINS": [
        None,
        True,
        {},
        {"https://app.example"},
        "https://app.example",
        "*",
        ("*",),
        ("null",),
        ("",),
        (1,),
        (None,),
        (b"https://app.example",),
        ("https://app.example", 1),
        ("app.example",),
        ("//app.example",),
        ("https://",),
        ("https:app.example",),
        ("ftp://app.example",),
        ("HTTPS://app.example",),
        ("https://App.example",),
        ("https://app.example/",),
        ("https://app.example/path",),
        ("https://app.example?a",),
        ("https://user@app.example",),
        ("https://*.app.example",),
        (" https://app.example",),
        ("https://app.example ",),
        ("https://app.example, https://b.example",),
        ("https://app.example\r\nX: y",),
        ("https://\u00e4pp.example",),
    ],
    "API_KEYS": [None, [], (), "", "secret", {"ci": "secret"}, {"": ""}, ["secret"], True],
}


def cases(table: dict[str, list[object]]) -> list[tuple[str, object]]:
    return [(name, value) for name, values in table.items() for value in values]


def ids(value: object) -> str:
    return ascii(value)[:40]


def faults_of(overrides: dict[str, object]) -> list[str]:
    with pytest.raises(SettingsError) as refusal:
        Settings(checked(overrides))
    return list(refusal.value.faults)


def test_the_tables_are_about_every_setting():
    assert (
        set(SHIPPED)
        == set(settings_file.ACCEPTED)
        == set(DEFAULTS)
        == set(ACCEPTED)
        == set(REFUSED)
        == set(Settings.__annotations__)
    )


def test_the_defaults_are_those_of_the_contract_and_acceptable_themselves():
    settings = Settings({})
    for name, default in DEFAULTS.items():
        assert (name, getattr(settings, name)) == (name, default)
        assert type(getattr(settings, name)) is type(default)
    assert vars(Settings(checked(DEFAULTS))) == vars(settings)


@pytest.mark.parametrize(("name", "value"), cases(ACCEPTED), ids=ids)
def test_an_acceptable_value_is_in_force_and_the_others_keep_their_defaults(name, value):
    settings = Settings(checked({name: value}))
    if name == "RATE_LIMITS":
        value = {**DEFAULTS["RATE_LIMITS"], **value}
    assert {other: getattr(settings, other) for other in DEFAULTS} == {**DEFAULTS, name: value}


@pytest.mark.parametrize(("name", "value"), cases(REFUSED), ids=ids)
def test_an_unacceptable_value_is_refused_in_one_sentence_that_begins_with_the_name(name, value):
    (fault,) = faults_of({name: value})
    assert fault.startswith(name + " must ")
    assert fault.endswith(".")
    assert fault.count(".") - fault.count("://example.org") == 1


@pytest.mark.parametrize(
    "limits", [{"acquire": (1, 2)}, {"acquire": None}, {"hold": (1, 2), "auth": None}, {"read": [7, 8]}], ids=ids
)
def test_a_policy_that_is_left_out_keeps_its_default(limits):
    in_force = Settings(checked({"RATE_LIMITS": limits})).RATE_LIMITS
    assert in_force == {**DEFAULTS["RATE_LIMITS"], **limits}


def test_settings_do_not_share_their_rate_limits_with_each_other():
    first, second = Settings({}), Settings({})
    first.RATE_LIMITS["acquire"] = (1, 1)
    assert second.RATE_LIMITS["acquire"] == Settings({}).RATE_LIMITS["acquire"] == (300, 60)


@pytest.mark.parametrize("name", ["MAX_TTL", "max_locks", "DEBUG", "MAX_LOCKS_", "_MAX_LOCKS", "MAX\u006c_LOCKS", "x"])
def test_a_name_that_is_no_setting_is_refused(name):
    assert faults_of({name: 5}) == [f"{name} is no setting."]


def test_all_faults_are_told_at_once_in_the_order_of_the_file():
    overrides = {"TYPO": 1, "MAX_LOCKS": 0, "MAX_TTL_SECONDS": 60, "API_KEYS": {"ci": "secret"}, "CORS_ORIGINS": "*"}
    with pytest.raises(SettingsError) as refusal:
        Settings(checked(overrides))
    assert [fault.partition(" ")[0] for fault in refusal.value.faults] == [
        "TYPO",
        "MAX_LOCKS",
        "API_KEYS",
        "CORS_ORIGINS",
    ]
    for fault in refusal.value.faults:
        assert fault in refusal.value.detail
    assert refusal.value.detail.startswith("The settings in var/config.py are not acceptable: ")


SECRET = "hunter2-5317-secret"


@pytest.mark.parametrize("name", [*SHIPPED, "TYPO"])
@pytest.mark.parametrize(
    "value", [SECRET, [SECRET], {SECRET: SECRET}, {"acquire": SECRET}, (f"https://{SECRET.upper()}",)], ids=ids
)
def test_no_sentence_holds_a_value(name, value):
    with pytest.raises(SettingsError) as refusal:
        Settings(checked({name: value}))
    assert "hunter2" not in refusal.value.detail.lower()
    assert name in refusal.value.detail


# The file


@pytest.fixture
def configure(tmp_path):
    def write(source: str | bytes) -> str:
        raw = source if isinstance(source, bytes) else source.encode()
        (tmp_path / "config.py").write_bytes(raw)
        return str(tmp_path)

    return write


def told_of(var_dir: str) -> str:
    with pytest.raises(SettingsError) as refusal:
        load(var_dir)
    told = refusal.value.detail
    assert var_dir not in told
    assert "hunter2" not in told
    return told.partition(": ")[2]


@pytest.mark.parametrize("exists", [True, False])
def test_without_a_file_the_defaults_are_in_force(tmp_path, exists):
    folder = tmp_path / "var"
    if exists:
        folder.mkdir()
    assert vars(load(str(folder))) == vars(Settings({}))
    assert folder.exists() is exists


FILES = {
    "plain": b"MAX_LOCKS = 7\n",
    "no line end": b"MAX_LOCKS = 7",
    "CRLF": b"# of Notepad\r\nMAX_LOCKS = 7\r\n\r\nMAX_TTL_SECONDS = 604800\r\n",
    "CR": b"MAX_LOCKS = 7\rMAX_TTL_SECONDS = 604800\r",
    "byte-order mark": b"\xef\xbb\xbfMAX_LOCKS = 7\n",
    "byte-order mark and CRLF": b"\xef\xbb\xbf# \xc3\xa4\r\nMAX_LOCKS = 7\r\n",
    "declared Latin-1": b"# -*- coding: latin-1 -*-\n# \xe4\nMAX_LOCKS = 7\n",
    "Japanese comment": "# \u9375\nMAX_LOCKS = 7  # \u4e03\n".encode(),
    "expression": b"MAX_LOCKS = 3 + 4\n",
    "several lines": b"RATE_LIMITS = {\n    'acquire': (300, 60),\n}\nMAX_LOCKS = 7\n",
    "assigned twice": b"MAX_LOCKS = 6\nMAX_LOCKS = 7\n",
    "docstring": b'"""The settings of our installation."""\n\nMAX_LOCKS = 7\n',
    "annotated": b"MAX_LOCKS: int = 7\n",
}


@pytest.mark.parametrize("source", FILES.values(), ids=FILES.keys())
def test_a_file_of_plain_assignments_is_read(configure, source):
    assert vars(load(configure(source))) == vars(Settings(checked({"MAX_LOCKS": 7})))


@pytest.mark.parametrize("source", [b"", b"\n", b"# nothing\n", b"\xef\xbb\xbf", b"\r\n", b"pass\n"])
def test_a_file_without_assignments_leaves_the_defaults(configure, source):
    assert vars(load(configure(source))) == vars(Settings({}))


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("MAX_LOCKS = \n", 1),
        ("# one\n\nMAX_LOCKS 7 hunter2\n", 3),
        ("MAX_LOCKS = 7\r\nAPI_KEYS = {'ci': 'hunter2\r\n", 2),
        ("MAX_LOCKS = 7\n  MAX_TTL_SECONDS = 60\n", 2),
        ("API_KEYS = 'hunter2\n", 1),
        ("MAX_LOCKS = 7\nreturn\n", 2),
        ("MAX_LOCKS = 08\n", 1),
        ("<?php\n$max_locks = 7;\n", 1),
        ("{\\rtf1 hunter2", 1),
    ],
)
def test_a_file_that_is_not_python_is_refused_with_the_line(configure, source, line):
    assert told_of(configure(source)) == f"line {line} is not Python."


@pytest.mark.parametrize(
    "source",
    [
        "MAX_LOCKS = 7 # hunter2\n".encode("utf-16"),
        "MAX_LOCKS = 7\n".encode("utf-16-le"),
        b"MAX_LOCKS = 7\0\n",
        b"\0" * 100,
        b"API_KEYS = {'hunter2': '\xe9'}\n",
        b"MAX_LOCKS = 7\nCORS_ORIGINS = '\x93\xfa\x96\x7b'\n",
        b"# coding: no-such-coding\nMAX_LOCKS = 7\n",
    ],
    ids=ids,
)
def test_a_file_that_is_no_text_is_refused_with_what_can_be_done_about_it(configure, source):
    told = told_of(configure(source))
    assert told == "the file is not text in UTF-8." or (told.startswith("line ") and "None" not in told)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("MAX_LOCKS = hunter2\n", "NameError"),
        ("MAX_LOCKS = 1 / 0\n", "ZeroDivisionError"),
        ("MAX_LOCKS = int('hunter2')\n", "ValueError"),
        ("MAX_LOCKS = 'hunter2' + 1\n", "TypeError"),
        ("import hunter2\n", "ModuleNotFoundError"),
        ("raise SystemExit('hunter2')\n", "SystemExit"),
        ("import sys\nsys.exit(0)\n", "SystemExit"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("raise SyntaxError('hunter2')\n", "SyntaxError"),
        ("eval('hunter2 hunter2')\n", "SyntaxError"),
        ("open('/hunter2/config')\n", "FileNotFoundError"),
        ("def f():\n    f()\nf()\n", "RecursionError"),
        ("assert False, 'hunter2'\n", "AssertionError"),
    ],
)
def test_a_file_that_stops_is_refused_with_the_kind_of_exception_only(configure, source, name):
    assert told_of(configure(source)) == f"the file stops with {name}; it may hold plain assignments only."


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import os\n", "os"),
        ("from os.path import join\n", "join"),
        ("def f():\n    return 7\nMAX_LOCKS = f()\n", "f"),
        ("for number in (1, 7):\n    MAX_LOCKS = number\n", "number"),
        ("LIMIT = 7\nMAX_LOCKS = LIMIT\n", "LIMIT"),
        ("MAX_LOCK = 'hunter2'\n", "MAX_LOCK"),
    ],
)
def test_a_name_in_the_file_that_is_no_setting_is_refused(configure, source, name):
    assert told_of(configure(source)) == f"{name} is no setting."


def test_all_faults_of_a_file_are_told_at_once(configure):
    told = told_of(configure("MAX_LOCKS = 'hunter2'\nTYPO = 1\nMAX_TTL_SECONDS = 60\nTRUSTED_PROXY_HOPS = -1\n"))
    assert "MAX_LOCKS must " in told
    assert "TYPO is no setting." in told
    assert "TRUSTED_PROXY_HOPS must " in told
    assert "MAX_TTL_SECONDS" not in told


def test_names_of_this_module_are_not_there_for_the_file(configure):
    for name in ("ACCEPTED", "DEFAULT_RATE_LIMITS", "Settings", "annotations", "source", "var_dir"):
        assert "NameError" in told_of(configure(f"MAX_LOCKS = {name}\n"))


def folder(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("make", [folder, loop])
def test_a_file_that_cannot_be_read_is_refused_and_not_taken_for_none(tmp_path, make):
    make(tmp_path / "config.py")
    assert told_of(str(tmp_path)) == "the file, or the folder var/, cannot be read by the user this runs as."


def test_what_the_file_prints_never_comes_before_the_headers_of_an_answer(configure, capsys):
    assert load(configure("print('hello')\nMAX_LOCKS = 5\n")).MAX_LOCKS == 5
    assert capsys.readouterr().out == ""
