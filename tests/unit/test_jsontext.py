"""Strict JSON, held against the standard library's."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.jsontext import HUGE, MAX_DEPTH, NotJSON, dumps, loads

REFUSED = object()


class _SameMemberTwice(ValueError):
    pass


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) != len(pairs):
        raise _SameMemberTwice
    return dict(pairs)


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= 19 else -HUGE if digits[0] == "-" else HUGE


def by_json(raw: bytes) -> object:
    """What the standard library makes of it, were it to refuse a member twice and to cut large integers short."""
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_members, parse_int=_integer)
    except (ValueError, RecursionError):
        return REFUSED


def by_loads(raw: bytes) -> object:
    try:
        return loads(raw)
    except NotJSON:
        return REFUSED


def depth(value: object) -> int:
    """How many lists and objects lie in one another."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def assert_as_json(raw: bytes) -> None:
    expected = by_json(raw)
    # repr() tells 1 from 1.0 and from True, and takes a NaN for itself.
    assert repr(by_loads(raw)) == repr(expected)


# What both accept

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_a_value_that_json_wrote_is_read_as_json_reads_it(value, ensure_ascii, indent):
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
    assert_as_json(text.encode("utf-8", "surrogatepass"))


pieces = st.sampled_from(
    [
        *"{}[],:\"'",
        '"a"',
        '"b":',
        '"b" : 1',
        '""',
        '{"a": 1, "a": 1}',
        "1",
        "-",
        "+1",
        "01",
        "-0",
        ".5",
        "1.5",
        "e3",
        "1E400",
        "1_000",
        "0x10",
        "true",
        "false",
        "null",
        "True",
        "NaN",
        "Infinity",
        "-Infinity",
        "\ufeff",
        " ",
        "\n",
        "\t",
        "\r",
        "\v",
        "\f",
        "\xa0",
        "\u2028",
        "\0",
        '"\\u00e9"',
        '"\\ud800"',
        '"\\ud83d\\udd12"',
        '"\\u12"',
        '"\\x41"',
        '"\t"',
        '"\x7f"',
        "// note",
        "/**/",
        "\u0661",
        "1\u0661",
    ]
)


@given(st.lists(pieces, max_size=12).map("".join))
def test_a_text_of_json_pieces_is_read_or_refused_as_by_json(text):
    assert_as_json(text.encode())


@given(values, st.integers(0, 200), st.integers(0, 3), pieces | st.just(""))
def test_a_damaged_text_is_read_or_refused_as_by_json(value, place, removed, added):
    text = json.dumps(value, ensure_ascii=False)
    damaged = text[:place] + added + text[place + removed :]
    assert_as_json(damaged.encode("utf-8", "surrogatepass"))


@given(st.binary(max_size=40) | st.binary(max_size=10).map(lambda inner: b'"' + inner + b'"'))
def test_any_bytes_are_read_or_refused_as_by_json(raw):
    assert_as_json(raw)


# What is refused

NO_JSON = {
    "nothing": b"",
    "white space": b" \r\n\t",
    "byte-order mark": b"\xef\xbb\xbf{}",
    "byte-order mark of UTF-16": b"\xff\xfe{\0}\0",
    "UTF-16": "{}".encode("utf-16-le"),
    "Latin-1": b'{"owner": "\xe9"}',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "overlong": b'"\xc0\xaf"',
    "cut off": b'{"owner": "a"',
    "cut off in a string": b'{"owner": "a',
    "cut off in a character": b'"\xe3\x81',
    "two values": b"{} {}",
    "trailing comma": b'{"a": 1,}',
    "trailing NUL": b"{}\0",
    "comment": b"{} // c",
    "single quotes": b"{'a': 1}",
    "bare member": b"{a: 1}",
    "number as member": b"{1: 1}",
    "no colon": b'{"a" 1}',
    "Python": b"{'a': True}",
    "control character in a string": b'"\x01"',
    "line end in a string": b'"a\nb"',
    "leading zero": b"01",
    "plus": b"+1",
    "no digit before the point": b".5",
    "no digit behind the point": b"1.",
    "no digits of an exponent": b"1e",
    "vertical tab as white space": b"\v{}",
    "no-break space as white space": b"\xc2\xa0{}",
    "white space of Unicode behind": b"{}\xe3\x80\x80",
    "half an escape": b'"\\u00e"',
    "signed escape": b'"\\u+0e9"',
    "unknown escape": b'"\\a"',
    "form": b"owner=a&ttl_seconds=60",
    "XML": b"<owner>a</owner>",
}


@pytest.mark.parametrize("raw", NO_JSON.values(), ids=NO_JSON.keys())
def test_what_is_no_json_text_is_refused_in_one_sentence_without_its_content(raw):
    assert by_json(raw) is REFUSED
    with pytest.raises(NotJSON, match=r"^The body is not (UTF-8|JSON)\.$"):
        loads(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": 1, "a": 1}',
        b'{"a": 1, "b": 2, "a": 3}',
        b'{"": 1, "": 2}',
        b'{"a": 1, "\\u0061": 2}',
        '{"\u00e9": 1, "\\u00e9": 2}'.encode(),
        b'{"a": {}, "a": {}}',
        b'[{"a": 1, "a": 2}]',
        b'{"x": {"a": 1, "a": 2}}',
        b'{"x": [[{"y": {"a": null, "a": null}}]]}',
        b"[" * 60 + b'{"a": 1, "a": 2}' + b"]" * 60,
    ],
)
def test_a_member_that_is_there_twice_is_refused_at_any_depth(raw):
    with pytest.raises(NotJSON, match="same member twice"):
        loads(raw)


@pytest.mark.parametrize(
    "raw",
    [b'{"a": 1, "A": 1}', '{"\u00e9": 1, "e\u0301": 1}'.encode(), b'{"a": {"a": {"a": 1}}}', b'[{"a": 1}, {"a": 1}]'],
)
def test_members_that_only_look_alike_or_are_in_other_objects_are_accepted(raw):
    assert loads(raw) == json.loads(raw)


# Depth

NESTINGS = {
    "lists": ("[", "]", ""),
    "lists with white space": ("[ ", " ]", ""),
    "lists with elder siblings": ("[[], ", "]", "0"),
    "objects": ('{"a": ', "}", "0"),
    "objects with siblings": ('{"b": [], "a": ', ', "c": {}}', "0"),
    "both": ('[{"a": ', "}]", "0"),
}


@pytest.mark.parametrize(("begin", "end", "core"), NESTINGS.values(), ids=NESTINGS.keys())
def test_nesting_is_accepted_up_to_the_limit_and_no_deeper(begin, end, core):
    def nested(times: int) -> bytes:
        return (begin * times + core + end * times).encode()

    step = depth(json.loads(nested(2))) - depth(json.loads(nested(1)))
    most = next(times for times in range(MAX_DEPTH + 1, 0, -1) if depth(json.loads(nested(times))) <= MAX_DEPTH)
    assert depth(json.loads(nested(most))) > MAX_DEPTH - step
    assert loads(nested(most)) == json.loads(nested(most))
    with pytest.raises(NotJSON, match="nested too deep"):
        loads(nested(most + 1))


def test_the_limit_of_nesting_is_64():
    assert MAX_DEPTH == 64
    assert depth(loads(b"[" * 64 + b"]" * 64)) == 64


@pytest.mark.parametrize("begin", [b"[", b'{"a":', b'[{"a":[', b" [\n"])
@pytest.mark.parametrize("ended", [True, False])
def test_nesting_as_deep_as_a_body_can_be_is_refused_and_harms_nothing(begin, ended):
    times = 65_536 // len(begin)
    end = begin.replace(b"{", b"}").replace(b"[", b"]").replace(b'"a":', b"")[::-1] if ended else b""
    with pytest.raises(NotJSON):
        loads((begin * times)[: 65_536 // (2 if ended else 1)] + end * (times // 2))


@pytest.mark.parametrize(
    "raw",
    [
        b"[" + b",".join([b"[]"] * 1000) + b"]",
        b"[" + b",".join([b'{"a": {}}'] * 1000) + b"]",
        b'"' + b"[{" * 1000 + b'"',
        b'{"' + b"[{" * 1000 + b'": "' + b"[" * 1000 + b'"}',
    ],
    ids=["many lists", "many objects", "brackets in a string", "brackets in a member"],
)
def test_many_brackets_are_no_depth(raw):
    assert loads(raw) == json.loads(raw)


# Numbers


@given(st.integers(-(10**19) + 1, 10**19 - 1))
@example(-(10**18) + 1)
@example(2**63)
def test_an_integer_of_up_to_19_digits_is_itself_unless_a_sign_makes_it_longer(number):
    found = loads(str(number).encode())
    assert type(found) is int
    assert found == (number if len(str(number)) <= 19 else -HUGE)


@pytest.mark.parametrize("digits", [20, 100, 4300, 4301, 5000, 65_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_of_more_digits_is_beyond_every_limit(sign, digits):
    found = loads(f'{{"ttl_seconds": {sign}{"9" * digits}}}'.encode())
    assert found == {"ttl_seconds": -HUGE if sign else HUGE}
    assert HUGE > 2**64


@pytest.mark.parametrize(
    ("raw", "value"),
    [(b"NaN", "nan"), (b"Infinity", "inf"), (b"-Infinity", "-inf"), (b"1e400", "inf"), (b"5.0", "5.0")],
)
def test_what_is_no_integer_is_a_float_so_that_its_reader_can_name_it(raw, value):
    found = loads(raw)
    assert type(found) is float
    assert repr(found) == value


@pytest.mark.parametrize(("raw", "value"), [(b"true", True), (b"false", False), (b"null", None), (b"0", 0), (b"-0", 0)])
def test_a_constant_keeps_its_type(raw, value):
    assert loads(b" " + raw + b"\r\n") == value
    assert type(loads(raw)) is type(value)


# Out

texts = st.text(st.characters(exclude_categories=["Cs"]))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(texts)
@example("\u2028\u2029\x7f\x85")
@example("".join(map(chr, range(0x100))))
def test_a_text_that_was_written_is_the_text_that_json_reads(text):
    written = dumps(text)
    assert json.loads(written) == text
    assert written == json.dumps(text, ensure_ascii=False)


@given(documents)
def test_a_document_is_written_as_json_writes_it_unescaped(document):
    assert dumps(document) == json.dumps(document, ensure_ascii=False)


def test_a_tuple_is_written_as_a_list():
    assert dumps({"locks": (1, "a", ())}) == '{"locks": [1, "a", []]}'


@pytest.mark.parametrize("value", [1.5, float("nan"), b"a", {"a"}, object(), [1, {"a": 2.5}], range(3)])
def test_what_has_no_form_here_is_not_written_wrongly(value):
    with pytest.raises(TypeError):
        dumps(value)
