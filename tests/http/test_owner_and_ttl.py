"""CONTRACT 3: what an owner and a ttl_seconds may be; everything else is 422 and changes nothing."""

from __future__ import annotations

import json

import pytest

from tests.http.shape import assert_problem, instant

# Unicode's White_Space property, written out; six of them are control characters too.
WHITE_SPACE = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F]
WHITE_SPACE += [0x205F, 0x3000]
CONTROL = [*range(0x20), 0x7F]

# What str.strip() or a regular expression may take for white space, and Unicode does not.
NOT_WHITE_SPACE = [0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF]


def code_points(values):
    return pytest.mark.parametrize("code_point", values, ids=lambda value: f"U+{value:04X}")


def send(door, owner_json='"alice"', ttl_json="60"):
    """Acquire with the two members exactly as written."""
    body = '{"owner": ' + owner_json + ', "ttl_seconds": ' + ttl_json + "}"
    return door.request("POST", "/locks/x", body.encode("utf-8"), {"Content-Type": "application/json"})


def assert_refused(door, answer, *faults):
    assert_problem(answer, "validation-failed")
    assert answer.faults() == set(faults), answer
    assert door.site.stored() == []


@pytest.mark.parametrize(
    "owner",
    [
        "a",
        "a" * 255,
        "é" * 255,
        "\U0001f512" * 255,
        "worker 1",
        "<script>alert(1)</script>",
        "'; DROP TABLE distributed_locks; --",
        '"\\/',
        "null",
        "0",
        "\ufffd",
        "\uffff",
        "\U0010ffff",
        "\u0081",
        "閂",
        "\u202ereversed",
    ],
    ids=ascii,
)
@pytest.mark.parametrize("escaped", [True, False])
def test_an_owner_of_1_to_255_characters_is_accepted_as_it_is(door, owner, escaped):
    answer = send(door, json.dumps(owner, ensure_ascii=escaped))
    assert answer.status == 200
    assert answer.json()["lock"]["owner"] == owner
    assert door.read("x").json()["owner"] == owner
    assert door.delete("x", owner).status == 204


@code_points(WHITE_SPACE)
def test_every_unicode_white_space_is_trimmed_from_both_ends_of_an_owner(door, code_point):
    white = chr(code_point)
    answer = send(door, json.dumps(f"{white}{white} bob{white}"))
    assert answer.status == 200
    assert answer.json()["lock"]["owner"] == "bob"
    assert door.granted("x", "bob")["fencing_token"] == answer.json()["lock"]["fencing_token"]


@code_points(WHITE_SPACE)
def test_an_owner_of_nothing_but_white_space_is_empty(door, code_point):
    assert_refused(door, send(door, json.dumps(chr(code_point) * 3)), ("owner", "empty"))


@code_points([0x20, 0x85, 0xA0, 0x2003, 0x3000])
def test_white_space_inside_an_owner_stays(door, code_point):
    owner = f"a{chr(code_point)}b"
    assert send(door, json.dumps(owner)).json()["lock"]["owner"] == owner


@code_points(NOT_WHITE_SPACE)
def test_invisible_characters_that_are_no_white_space_are_part_of_the_owner(door, code_point):
    owner = chr(code_point) + "bob" + chr(code_point)
    assert send(door, json.dumps(owner)).json()["lock"]["owner"] == owner


@code_points(CONTROL)
def test_a_control_character_inside_an_owner_is_refused(door, code_point):
    assert_refused(door, send(door, json.dumps(f"a{chr(code_point)}b")), ("owner", "control_character"))


@code_points([0x00, 0x08, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x7F])
def test_a_control_character_that_is_no_white_space_is_refused_at_the_ends_too(door, code_point):
    for owner in (chr(code_point) + "bob", "bob" + chr(code_point), chr(code_point)):
        assert_refused(door, send(door, json.dumps(owner)), ("owner", "control_character"))


def test_an_owner_is_measured_in_characters_after_trimming(door):
    assert send(door, json.dumps(" \u3000" * 200 + "a" * 255 + " " * 50)).json()["lock"]["owner"] == "a" * 255


@pytest.mark.parametrize("character", ["a", "é", "閂", "\U0001f512"], ids=ascii)
@pytest.mark.parametrize("escaped", [True, False])
def test_an_owner_of_256_characters_is_refused(door, character, escaped):
    assert_refused(door, send(door, json.dumps(character * 256, ensure_ascii=escaped)), ("owner", "too_long"))


@pytest.mark.parametrize(
    "owner", [r'"\ud800"', r'"a\udfffb"', r'"\udc00\ud800"', r'"\ud800\ud800"', r'"\ud83d"', r'"\ud83d\u0041"']
)
def test_a_lone_surrogate_in_an_owner_is_refused(door, owner):
    assert_refused(door, send(door, owner), ("owner", "invalid_unicode"))


def test_a_surrogate_pair_is_one_character(door):
    assert send(door, r'"\ud83d\udd12"').json()["lock"]["owner"] == "\U0001f512"


@pytest.mark.parametrize(
    "owner",
    ["null", "true", "false", "0", "1", "1.5", "[]", "{}", '["a"]', '{"a": "b"}', "9" * 5000, "NaN", "Infinity"],
)
def test_an_owner_that_is_no_string_is_refused(door, owner):
    assert_refused(door, send(door, owner), ("owner", "wrong_type"))


def test_an_empty_owner_is_refused(door):
    assert_refused(door, send(door, '""'), ("owner", "empty"))


def test_owners_are_compared_exactly_without_case_folding_or_normalisation(door):
    door.granted("x", "Zoé")
    for other in ("zoé", "ZOÉ", "Zoe\u0301", "Zo\u00e9\u200b", "Zoé."):
        assert door.acquire("x", other).json()["acquired"] is False
        assert door.delete("x", other).status == 403
    assert door.acquire("x", " Zo\u00e9 ").json()["acquired"] is True


@pytest.mark.parametrize("ttl_seconds", [1, 2, 60, 604799, 604800])
def test_a_whole_number_of_seconds_from_1_to_the_maximum_is_accepted(door, ttl_seconds):
    lock = send(door, ttl_json=str(ttl_seconds)).json()["lock"]
    assert lock["expires_at"] == instant(door.clock.now_ms() + ttl_seconds * 1000)


REFUSED_TTLS = [
    ('"60"', "wrong_type"),
    ('""', "wrong_type"),
    ("60.5", "wrong_type"),
    ("5.0", "wrong_type"),
    ("1e3", "wrong_type"),
    ("1E3", "wrong_type"),
    ("1.0e0", "wrong_type"),
    ("1e400", "wrong_type"),
    ("1e-400", "wrong_type"),
    ("0.0", "wrong_type"),
    ("true", "wrong_type"),
    ("false", "wrong_type"),
    ("null", "wrong_type"),
    ("[]", "wrong_type"),
    ("[60]", "wrong_type"),
    ("{}", "wrong_type"),
    ("NaN", "wrong_type"),
    ("Infinity", "wrong_type"),
    ("-Infinity", "wrong_type"),
    ("0", "out_of_range"),
    ("-0", "out_of_range"),
    ("-1", "out_of_range"),
    ("604801", "out_of_range"),
    (str(2**31), "out_of_range"),
    (str(2**32 + 60), "out_of_range"),
    (str(2**53), "out_of_range"),
    (str(2**63 - 1), "out_of_range"),
    (str(2**63), "out_of_range"),
    (str(2**64 + 60), "out_of_range"),
    (str(-(2**63) - 1), "out_of_range"),
    ("9" * 5000, "out_of_range"),
    ("-" + "9" * 5000, "out_of_range"),
    ("1" + "0" * 60000, "out_of_range"),
    ("9" * 5000 + ".5", "wrong_type"),
]
refused_ttls = pytest.mark.parametrize(("ttl", "code"), REFUSED_TTLS, ids=[ttl[:24] for ttl, _ in REFUSED_TTLS])


@refused_ttls
def test_any_other_ttl_is_refused_and_nothing_is_granted(door, ttl, code):
    assert_refused(door, send(door, ttl_json=ttl), ("ttl_seconds", code))


@refused_ttls
def test_any_other_ttl_is_refused_by_renew_too_and_the_lease_stays(door, ttl, code):
    door.granted("x", "alice")
    before = door.site.stored()
    body = ('{"owner": "alice", "ttl_seconds": ' + ttl + "}").encode()
    answer = door.request("POST", "/locks/x/renew", body)
    assert_problem(answer, "validation-failed")
    assert answer.faults() == {("ttl_seconds", code)}
    assert door.site.stored() == before


@pytest.mark.parametrize("ttl", ["01", "+1", "0x10", "1_000", "1.", ".5", "1e", "--1", "- 1", "١", "inf", "nan", "Inf"])
def test_a_ttl_that_is_no_json_number_makes_the_body_malformed(door, ttl):
    assert_problem(send(door, ttl_json=ttl), "malformed-request")
    assert door.site.stored() == []


def test_the_maximum_is_a_setting_for_acquire_and_renew(open_site):
    door = open_site(MAX_TTL_SECONDS=10)
    assert door.acquire("x", "alice", 11).faults() == {("ttl_seconds", "out_of_range")}
    assert door.acquire("x", "alice", 10).status == 200
    assert door.renew("x", "alice", 11).faults() == {("ttl_seconds", "out_of_range")}
    assert door.renew("x", "alice", 10).status == 200


@pytest.mark.parametrize("target", ["/locks/x", "/locks/x/renew"])
@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({}, {("owner", "missing"), ("ttl_seconds", "missing")}),
        ({"owner": "a"}, {("ttl_seconds", "missing")}),
        ({"ttl_seconds": 60}, {("owner", "missing")}),
        ({"owner": None, "ttl_seconds": None}, {("owner", "wrong_type"), ("ttl_seconds", "wrong_type")}),
        ({"owner": "", "ttl_seconds": 0}, {("owner", "empty"), ("ttl_seconds", "out_of_range")}),
        ({"owner": " ", "ttl_seconds": "60"}, {("owner", "empty"), ("ttl_seconds", "wrong_type")}),
        ({"OWNER": "a", "Ttl_seconds": 60}, {("owner", "missing"), ("ttl_seconds", "missing")}),
        ({"owner": "a" * 256, "ttl_seconds": True}, {("owner", "too_long"), ("ttl_seconds", "wrong_type")}),
    ],
)
def test_all_faults_of_one_body_are_reported_together(door, target, body, faults):
    answer = door.request("POST", target, body)
    assert_problem(answer, "validation-failed")
    assert answer.faults() == faults
    assert len(answer.json()["errors"]) == len(faults)
    assert door.site.stored() == []


def test_a_faulty_resource_is_reported_together_with_the_faults_of_the_body(door):
    answer = door.request("POST", "/locks/%FF", {"owner": "", "ttl_seconds": 0})
    assert answer.fields() == {"resource", "owner", "ttl_seconds"}


@pytest.mark.parametrize(
    "extra",
    [
        {"extra": 1},
        {"resource": "other"},
        {"ttl": 5, "acquired_at": "now", "fencing_token": 999},
        {"x": {"owner": "bob", "deep": [1, [2, [3, {"y": None}]]]}},
        {"x": "\ud800"},
        {"": ""},
        {"x": 1.5e300},
    ],
    ids=str,
)
def test_unknown_members_are_ignored(door, extra):
    answer = door.request("POST", "/locks/x", {"owner": "alice", "ttl_seconds": 60, **extra})
    assert answer.status == 200
    assert answer.json()["lock"]["resource"] == "x"
    assert answer.json()["lock"]["owner"] == "alice"


@pytest.mark.parametrize(
    "value", ["9" * 5000, "-" + "9" * 5000, "1e999", "1e-999", "9" * 5000 + "e5"], ids=lambda v: v[:5]
)
def test_an_unknown_member_is_ignored_however_large_its_number(door, value):
    body = b'{"owner": "alice", "ttl_seconds": 60, "x": ' + value.encode() + b"}"
    assert door.request("POST", "/locks/x", body).status == 200
