"""The rules of leases: instants, what a lease is at an instant, and which names and lengths are acceptable."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import Fault
from app.lease import (
    WHITE_SPACE,
    Held,
    Lease,
    decoded_text,
    has_control_character,
    instant_from_ms,
    ms_from_instant,
    read_owner,
    read_resource,
    read_ttl_seconds,
)

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
LAST_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
NOW_MS = 1_796_097_906_123

#: Unicode's White_Space property (PropList.txt, Unicode 4.1 to 16), by code point
WHITE_SPACE_CODE_POINTS = [
    *range(0x0009, 0x000D + 1),
    0x0020,
    0x0085,
    0x00A0,
    0x1680,
    *range(0x2000, 0x200A + 1),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
]

instants_ms = st.integers(0, LAST_MS)


def written_by_datetime(ms: int) -> str:
    moment = EPOCH + datetime.timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lease(acquired_ms: int, expires_ms: int, set_ms: int) -> Lease:
    return Lease("r", "o", instant_from_ms(acquired_ms), instant_from_ms(expires_ms), 7, instant_from_ms(set_ms))


def facts(lease: Lease) -> tuple[object, ...]:
    return tuple(getattr(lease, name) for name in Lease.__slots__)


# Instants


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (999, "1970-01-01T00:00:00.999Z"),
        (1000, "1970-01-01T00:00:01.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (1_709_164_800_010, "2024-02-29T00:00:00.010Z"),
        (1_796_097_906_123, "2026-12-01T04:05:06.123Z"),
        (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (LAST_MS, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_an_instant_is_written_and_read_as_in_the_table(ms, text):
    assert instant_from_ms(ms) == text
    assert ms_from_instant(text) == ms


@given(instants_ms)
def test_an_instant_is_written_as_datetime_writes_it(ms):
    assert instant_from_ms(ms) == written_by_datetime(ms)


@given(instants_ms)
def test_an_instant_reads_back_as_the_milliseconds_it_was_written_from(ms):
    assert ms_from_instant(written_by_datetime(ms)) == ms


def test_each_month_of_four_centuries_begins_and_ends_right():
    for month in range(430 * 12):
        first = datetime.datetime(1970 + month // 12, month % 12 + 1, 1, tzinfo=datetime.timezone.utc)
        ms = (first - EPOCH).days * 86_400_000
        for number in (ms - 1, ms):
            assert instant_from_ms(number) == written_by_datetime(number)
            assert ms_from_instant(written_by_datetime(number)) == number


@given(instants_ms, st.one_of(instants_ms, st.integers(-2000, 2000)))
def test_the_order_of_texts_is_the_order_of_times(one, other):
    if abs(other) <= 2000:
        other = min(max(one + other, 0), LAST_MS)
    assert (instant_from_ms(one) < instant_from_ms(other)) == (one < other)
    assert (instant_from_ms(one) == instant_from_ms(other)) == (one == other)


# A lease at an instant


@pytest.mark.parametrize(
    ("left_ms", "live"), [(-1000, False), (-1, False), (0, False), (1, True), (999, True), (60_000, True)]
)
def test_a_lease_is_live_before_its_end_and_not_at_it(left_ms, live):
    assert lease(NOW_MS - 5000, NOW_MS + left_ms, NOW_MS - 5000).is_live(NOW_MS) is live


@pytest.mark.parametrize(
    ("left_ms", "seconds"),
    [
        (60_000, 60),
        (59_999, 60),
        (59_001, 60),
        (59_000, 59),
        (1001, 2),
        (1000, 1),
        (999, 1),
        (1, 1),
        (0, 1),
        (-1, 1),
        (-5000, 1),
        (604_800_000, 604_800),
    ],
)
def test_retry_after_is_rounded_up_and_at_least_one(left_ms, seconds):
    assert lease(NOW_MS, NOW_MS + left_ms, NOW_MS).retry_after_seconds(NOW_MS) == seconds


@given(now_ms=st.integers(0, 10**13), left_ms=st.integers(1, 10**10))
def test_after_the_retry_after_the_lease_is_over_and_a_second_before_it_is_not(now_ms, left_ms):
    held = lease(now_ms, now_ms + left_ms, now_ms)
    seconds = held.retry_after_seconds(now_ms)
    assert not held.is_live(now_ms + seconds * 1000)
    assert held.is_live(now_ms + (seconds - 1) * 1000)


def test_held_carries_the_wait():
    assert Held(17).retry_after_seconds == 17


@pytest.mark.parametrize("ttl_seconds", [1, 60, 604_800])
def test_a_repeated_grant_moves_both_instants_and_keeps_names_and_token(ttl_seconds):
    before = lease(NOW_MS - 40_000, NOW_MS + 20_000, NOW_MS - 30_000)
    untouched = facts(before)
    after = before.granted(NOW_MS, ttl_seconds)
    assert (after.resource, after.owner, after.fencing_token) == ("r", "o", 7)
    assert after.acquired_at == after.set_at == instant_from_ms(NOW_MS)
    assert after.expires_at == instant_from_ms(NOW_MS + ttl_seconds * 1000)
    assert facts(before) == untouched


@pytest.mark.parametrize("ttl_seconds", [1, 60, 604_800])
def test_a_renewal_moves_the_end_and_never_the_beginning(ttl_seconds):
    before = lease(NOW_MS - 40_000, NOW_MS + 20_000, NOW_MS - 30_000)
    untouched = facts(before)
    after = before.renewed(NOW_MS, ttl_seconds)
    assert (after.resource, after.owner, after.fencing_token) == ("r", "o", 7)
    assert after.acquired_at == before.acquired_at
    assert after.set_at == instant_from_ms(NOW_MS)
    assert after.expires_at == instant_from_ms(NOW_MS + ttl_seconds * 1000)
    assert facts(before) == untouched


@pytest.mark.parametrize("passed_ms", [0, 1, 59_999, 60_000, 10**9])
def test_on_a_clock_that_goes_forward_a_lease_stays_the_one_that_was_stored(passed_ms):
    stored = lease(NOW_MS - 1000, NOW_MS + 60_000, NOW_MS)
    assert stored.as_of(NOW_MS + passed_ms) is stored


@pytest.mark.parametrize(
    ("acquired_ms", "set_ms", "length_ms", "now_ms", "acquired_as_of_ms"),
    [
        (NOW_MS, NOW_MS, 60_000, NOW_MS - 1, NOW_MS - 1),
        (NOW_MS, NOW_MS, 60_000, NOW_MS - 3_600_000, NOW_MS - 3_600_000),
        # Renewed since: the length is counted from the renewal, and a grant in the past keeps its instant.
        (NOW_MS - 50_000, NOW_MS, 90_000, NOW_MS - 20_000, NOW_MS - 50_000),
        (NOW_MS - 50_000, NOW_MS, 90_000, NOW_MS - 60_000, NOW_MS - 60_000),
        (NOW_MS, NOW_MS, 604_800_000, 0, 0),
    ],
)
def test_after_a_step_back_a_lease_has_its_whole_length_from_now(
    acquired_ms, set_ms, length_ms, now_ms, acquired_as_of_ms
):
    stored = lease(acquired_ms, set_ms + length_ms, set_ms)
    untouched = facts(stored)
    seen = stored.as_of(now_ms)
    assert (seen.resource, seen.owner, seen.fencing_token) == ("r", "o", 7)
    assert seen.set_at == instant_from_ms(now_ms)
    assert seen.expires_at == instant_from_ms(now_ms + length_ms)
    assert seen.acquired_at == instant_from_ms(acquired_as_of_ms)
    assert facts(stored) == untouched


@given(
    set_ms=st.integers(10**12, 2 * 10**12),
    held_for_ms=st.integers(0, 10**9),
    length_ms=st.integers(1, 10**9),
    step_ms=st.integers(-(10**11), 10**11),
)
def test_no_step_of_the_clock_makes_a_lease_longer_than_was_promised(set_ms, held_for_ms, length_ms, step_ms):
    stored = lease(set_ms - held_for_ms, set_ms + length_ms, set_ms)
    now_ms = set_ms + step_ms
    seen = stored.as_of(now_ms)
    assert ms_from_instant(seen.expires_at) - now_ms <= length_ms
    assert seen.acquired_at <= seen.set_at <= instant_from_ms(now_ms)
    assert seen.acquired_at <= stored.acquired_at
    assert seen.as_of(now_ms) is seen
    if step_ms < 0:
        assert seen.is_live(now_ms)
        assert ms_from_instant(seen.expires_at) - now_ms == length_ms


# Names


def test_white_space_is_unicodes_white_space_property():
    assert sorted(map(ord, WHITE_SPACE)) == WHITE_SPACE_CODE_POINTS


def codes(faults: list[Fault]) -> list[tuple[str, str]]:
    return [(fault.field, fault.code) for fault in faults]


OWNERS = {
    "one letter": "a",
    "longest": "x" * 255,
    "longest of astral characters": "\U0001f512" * 255,
    "white space inside": "a \t\u3000b".replace("\t", "\u2003"),
    "no-break space inside": "a\xa0b",
    "zero width space, which is no white space": "\u200b",
    "zero width no-break space": "\ufeff",
    "Mongolian vowel separator": "\u180e",
    "C1 control characters are no control characters here": "a\x80\x9fb",
    "next line inside": "a\x85b",
    "composed": "\u00e9",
    "decomposed": "e\u0301",
    "SQL": "x'; DROP TABLE distributed_locks; --",
    "right-to-left override": "\u202eabc",
    "noncharacter": "\uffff",
    "last code point": "\U0010ffff",
    "surrogates' neighbours": "\ud7ff\ue000",
    "replacement character": "\ufffd",
    "backslash and quote": "\\\"'",
    "looks like a number": "1",
}


@pytest.mark.parametrize("owner", OWNERS.values(), ids=OWNERS.keys())
def test_an_owner_is_taken_as_it_is(owner):
    faults: list[Fault] = []
    assert read_owner(owner, faults) == owner
    assert faults == []


@pytest.mark.parametrize("code_point", WHITE_SPACE_CODE_POINTS, ids=hex)
def test_an_owner_is_trimmed_of_each_white_space_at_both_ends_and_not_inside(code_point):
    space = chr(code_point)
    faults: list[Fault] = []
    inside = "a b" if code_point < 0x20 else f"a{space}b"
    assert read_owner(space + inside, faults) == inside
    assert read_owner(inside + space * 3, faults) == inside
    assert read_owner(f"{space} {space}{inside} {space}", faults) == inside
    assert faults == []


def test_only_the_trimmed_owner_has_to_be_within_the_length():
    faults: list[Fault] = []
    assert read_owner(" " * 300 + "x" * 255 + "\u3000" * 300, faults) == "x" * 255
    assert faults == []


REFUSED_OWNERS = [
    ("", "empty"),
    (" ", "empty"),
    (WHITE_SPACE, "empty"),
    (" " * 1000, "empty"),
    ("x" * 256, "too_long"),
    ("\U0001f512" * 256, "too_long"),
    (" " + "x" * 256 + " ", "too_long"),
    *((f"a{chr(code)}b", "control_character") for code in [*range(0x20), 0x7F]),
    *((f"a{chr(code)}", "control_character") for code in [0, 1, 8, 0x0E, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x7F]),
    ("\x1c", "control_character"),
    ("\x1fx", "control_character"),
    ("\ud800", "invalid_unicode"),
    ("a\udfffb", "invalid_unicode"),
    ("\ude00\ud83d", "invalid_unicode"),
    *((value, "wrong_type") for value in (None, True, False, 0, 1, 1.5, float("nan"), b"a", ["a"], {"a": 1}, {}, [])),
]


@pytest.mark.parametrize(("owner", "code"), REFUSED_OWNERS, ids=lambda value: ascii(value)[:30])
def test_an_owner_is_refused_with_one_fault(owner, code):
    faults = [Fault("before", "kept", "")]
    read_owner(owner, faults)
    assert codes(faults) == [("before", "kept"), ("owner", code)]


RESOURCES = {
    "plain": (b"payment:42", "payment:42"),
    "one byte": (b"0", "0"),
    "longest": (b"x" * 255, "x" * 255),
    "longest of four bytes each": ("\U0001f512".encode() * 255, "\U0001f512" * 255),
    "white space is part of it": (b" a ", " a "),
    "only white space": ("\u3000".encode(), "\u3000"),
    "dots": (b"..", ".."),
    "plus and percent": (b"a+b%20", "a+b%20"),
    "a slash is for the route table to judge": (b"a/b", "a/b"),
    "no byte-order mark is taken off": (b"\xef\xbb\xbfa", "\ufeffa"),
    "C1 control characters": ("\x80\x9f".encode(), "\x80\x9f"),
}


@pytest.mark.parametrize(("raw", "resource"), RESOURCES.values(), ids=RESOURCES.keys())
def test_a_resource_is_taken_as_it_is(raw, resource):
    faults: list[Fault] = []
    assert read_resource(raw, faults) == resource
    assert faults == []


REFUSED_RESOURCES = [
    (b"", "empty"),
    (b"x" * 256, "too_long"),
    ("\u3042".encode() * 256, "too_long"),
    *((b"a" + bytes([code]), "control_character") for code in [*range(0x20), 0x7F]),
    (b"\xff", "invalid_unicode"),
    (b"\xfe", "invalid_unicode"),
    (b"a\xe9b", "invalid_unicode"),  # Latin-1
    (b"\xc0\xaf", "invalid_unicode"),  # a slash, overlong
    (b"\xc1\x81", "invalid_unicode"),
    (b"\xe0\x80\xaf", "invalid_unicode"),
    (b"\xed\xa0\x80", "invalid_unicode"),  # U+D800
    (b"\xed\xa0\xbd\xed\xb4\x92", "invalid_unicode"),  # a surrogate pair (CESU-8)
    (b"\xf4\x90\x80\x80", "invalid_unicode"),  # above U+10FFFF
    (b"\xf0\x9f\x94", "invalid_unicode"),  # cut off
    (b"\x80", "invalid_unicode"),
]


@pytest.mark.parametrize(("raw", "code"), REFUSED_RESOURCES, ids=lambda value: ascii(value)[:30])
def test_a_resource_is_refused_with_one_fault(raw, code):
    faults: list[Fault] = []
    read_resource(raw, faults)
    assert codes(faults) == [("resource", code)]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_in_utf_8_is_decoded_to_itself(text):
    faults: list[Fault] = []
    assert decoded_text("prefix", text.encode(), faults) == text
    assert faults == []


def test_bytes_that_are_no_text_are_a_fault_of_the_named_field():
    faults: list[Fault] = []
    assert decoded_text("prefix", b"\xff", faults) is None
    assert codes(faults) == [("prefix", "invalid_unicode")]


@given(st.text())
def test_control_characters_are_those_below_u0020_and_u007f(text):
    assert has_control_character(text) == any(ord(character) < 0x20 or ord(character) == 0x7F for character in text)


# Lengths


@pytest.mark.parametrize("value", [1, 2, 60, 604_799, 604_800])
def test_a_ttl_is_a_whole_number_within_the_limits(value):
    faults: list[Fault] = []
    assert read_ttl_seconds(value, 604_800, faults) == value
    assert faults == []


REFUSED_TTLS = [
    *((value, "out_of_range") for value in (0, -1, -604_800, 604_801, 2**63, -(2**63), 10**20, 10**5000)),
    *((value, "wrong_type") for value in (True, False, None, "60", "", 5.0, 1e3, 60.5, -0.0, [], [60], {}, b"60")),
    *((float(value), "wrong_type") for value in ("nan", "inf", "-inf")),
]


@pytest.mark.parametrize(("value", "code"), REFUSED_TTLS, ids=lambda value: type(value).__name__)
def test_a_ttl_is_refused_with_one_fault(value, code):
    faults: list[Fault] = []
    assert read_ttl_seconds(value, 604_800, faults) == 0
    assert codes(faults) == [("ttl_seconds", code)]
    assert "604800" in faults[0].message


def test_the_longest_ttl_is_the_setting():
    faults: list[Fault] = []
    assert read_ttl_seconds(30, 30, faults) == 30
    read_ttl_seconds(31, 30, faults)
    assert codes(faults) == [("ttl_seconds", "out_of_range")]


@pytest.mark.parametrize(
    ("owner", "raw", "ttl_seconds"),
    [("secret\x00secret", b"secret\x01", 31337), ("secret" * 99, b"\xffsecret", "31337")],
)
def test_no_message_holds_the_value(owner, raw, ttl_seconds):
    faults: list[Fault] = []
    read_owner(owner, faults)
    read_resource(raw, faults)
    read_ttl_seconds(ttl_seconds, 30, faults)
    assert len(faults) == 3
    for fault in faults:
        assert "secret" not in fault.message
        assert "31337" not in fault.message
        assert fault.message.endswith(".")
