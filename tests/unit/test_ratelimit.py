"""The rules of the rate limits: who is counted together, how a window goes on, what an answer says of it."""

from __future__ import annotations

import ipaddress
import json
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.ratelimit import (
    DEFAULT_RATE_LIMITS,
    FAIL_CLOSED,
    RECORD_BYTES,
    UNKNOWN_CLIENT,
    advance,
    client_key,
    quota_headers,
    read_window,
    reset_after_seconds,
    window_key,
    write_window,
)

NOW_MS = 1_796_097_906_123
MINUTE_MS = 60_000


# Which client


def groups_of(address: ipaddress.IPv6Address) -> list[int]:
    return [int(address) >> shift & 0xFFFF for shift in range(112, -1, -16)]


def key_by_ipaddress(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return UNKNOWN_CLIENT
    if found.version == 6:
        if found.ipv4_mapped is None:
            return "ip:" + ":".join(f"{group:x}" for group in groups_of(found)[:4]) + "::/64"
        found = found.ipv4_mapped
    return f"ip:{found}"


def spellings(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[str]:
    if address.version == 4:
        return [str(address), f"::ffff:{address}", f"0:0:0:0:0:FFFF:{address}", f"::{address}", f"64:ff9b::{address}"]
    groups = [f"{group:x}" for group in groups_of(address)]
    tail = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return [
        address.compressed,
        address.exploded,
        address.compressed.upper(),
        ":".join(groups),
        ":".join(group.zfill(4) for group in groups),
        ":".join([*groups[:6], str(tail)]),
    ]


addresses = st.one_of(
    st.ip_addresses(),
    # Zeros in many places, for the gap.
    st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF]), min_size=8, max_size=8).map(
        lambda groups: ipaddress.IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups))
    ),
).flatmap(lambda address: st.sampled_from(spellings(address)))

damages = st.tuples(st.integers(0, 45), st.integers(0, 2), st.sampled_from([*"0123456789abcfFgG:.- ", "::", "", "00"]))


@given(addresses)
def test_an_address_in_any_spelling_is_the_client_that_ipaddress_reads(address):
    assert client_key(address, "", 0) == key_by_ipaddress(address)


@given(addresses, damages)
def test_an_address_with_a_fault_is_read_or_refused_as_by_ipaddress(address, damage):
    place, removed, added = damage
    damaged = (address[:place] + added + address[place + removed :]).strip()
    assert client_key(damaged, "", 0) == key_by_ipaddress(damaged)


@given(st.text("0123456789abfF:.", max_size=40))
@example("1:2:3:4:5:6:7::")
@example("::2:3:4:5:6:7:8")
@example("1::2:3:4:5:6:7:8")
@example("1:2:3:4:5:6:7:8::")
@example("1.2.3.4::")
@example("::1.2.3.4:5")
def test_text_like_an_address_is_read_or_refused_as_by_ipaddress(text):
    assert client_key(text, "", 0) == key_by_ipaddress(text)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "ip:192.0.2.1"),
        ("0.0.0.0", "ip:0.0.0.0"),
        ("255.255.255.255", "ip:255.255.255.255"),
        (" 192.0.2.1 ", "ip:192.0.2.1"),
        ("::ffff:192.0.2.1", "ip:192.0.2.1"),
        ("::FFFF:c000:201", "ip:192.0.2.1"),
        ("::ffff:0:0", "ip:0.0.0.0"),
        ("::192.0.2.1", "ip:0:0:0:0::/64"),
        ("::", "ip:0:0:0:0::/64"),
        ("2001:db8::1", "ip:2001:db8:0:0::/64"),
        ("2001:DB8:0:0:ffff::", "ip:2001:db8:0:0::/64"),
        ("2001:db8:0:1::1", "ip:2001:db8:0:1::/64"),
        ("fe80::1%eth0", "ip:fe80:0:0:0::/64"),
        ("::ffff:192.0.2.1%1", "ip:192.0.2.1"),
    ],
)
def test_a_client_is_an_ipv4_address_or_an_ipv6_network_of_64_bits(address, key):
    assert client_key(address, "", 0) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "unknown",
        "_hidden",
        "localhost",
        "192.0.2.1:4711",
        "[2001:db8::1]",
        "[2001:db8::1]:4711",
        "192.0.2",
        "192.0.2.256",
        "192.0.2.01",
        "192.0.2.1.1",
        "192.0.2.-1",
        "0x7f.0.0.1",
        "127.1",
        "2130706433",
        "192.0.2.\u0661",
        "192.0.2.\xb2",
        "\u0661\u0669\u0662.0.2.1",
        "2001:db8:::1",
        "2001::db8::1",
        "20010:db8::1",
        "2001:db8::g",
        "\uff11::",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        ":1:2:3:4:5:6:7",
        "%eth0",
        "192.0.2.1\0",
        "unix:",
        "/run/kannuki.sock",
        ":" * 5000,
        "9" * 5000,
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_what_is_no_address_is_the_one_bucket_for_all_such(text):
    assert client_key(text, "", 0) == "ip:unknown"


PEER = "203.0.113.9"


@pytest.mark.parametrize(
    ("forwarded_for", "hops", "key"),
    [
        ("192.0.2.1", 0, PEER),
        ("192.0.2.1, 192.0.2.2, 192.0.2.3", 0, PEER),
        ("192.0.2.1", 1, "192.0.2.1"),
        ("192.0.2.66, 192.0.2.1", 1, "192.0.2.1"),
        ("192.0.2.66,192.0.2.1", 1, "192.0.2.1"),
        ("192.0.2.66,\t192.0.2.1 ", 1, "192.0.2.1"),
        ("192.0.2.66, 192.0.2.1, 192.0.2.2", 2, "192.0.2.1"),
        ("192.0.2.1, 192.0.2.2, 192.0.2.3", 3, "192.0.2.1"),
        # What a client wrote itself stands on the left and changes nothing.
        ("unknown, , x, 192.0.2.1, 192.0.2.2", 2, "192.0.2.1"),
        (", 192.0.2.1", 1, "192.0.2.1"),
        # Fewer entries than proxies: the request did not come through them.
        ("", 1, PEER),
        (" ", 1, PEER),
        ("192.0.2.1", 2, PEER),
        ("192.0.2.1, 192.0.2.2", 3, PEER),
        # An entry of the operator's proxy that is no address is not replaced by what the client says.
        ("192.0.2.66, unknown", 1, "unknown"),
        ("192.0.2.66, ", 1, "unknown"),
        ("192.0.2.66, 192.0.2.1:4711", 1, "192.0.2.1"),
        ("192.0.2.66, [2001:db8::1]:4711", 1, "2001:db8:0:0::/64"),
    ],
)
def test_the_client_is_the_entry_that_the_outermost_trusted_proxy_wrote(forwarded_for, hops, key):
    assert client_key(PEER, forwarded_for, hops) == "ip:" + key


def test_a_forwarded_ipv6_client_is_counted_by_its_network():
    assert client_key(PEER, "2001:db8::1", 1) == client_key("2001:db8::2", "", 0) == "ip:2001:db8:0:0::/64"


# Which window


def test_a_window_has_another_key_when_anything_about_it_differs():
    keys = {
        window_key(policy, limit, window_seconds, client)
        for policy in ("acquire", "hold")
        for limit in (1, 11, 111)
        for window_seconds in (2, 12, 112)
        for client in ("ip:192.0.2.1", "ip:192.0.2.11", "ip:unknown")
    }
    assert len(keys) == 2 * 3 * 3 * 3


def test_the_default_policies_are_those_of_the_contract():
    assert DEFAULT_RATE_LIMITS == {"acquire": (300, 60), "hold": (1200, 60), "read": (600, 60), "auth": (30, 3600)}
    assert FAIL_CLOSED == ("auth",)


# How a window goes on


@pytest.mark.parametrize(
    ("window", "ceiling", "after"),
    [
        (None, None, (1, NOW_MS + MINUTE_MS)),
        (None, 1, (1, NOW_MS + MINUTE_MS)),
        # The end never moves while the window lives.
        ((1, NOW_MS + MINUTE_MS), None, (2, NOW_MS + MINUTE_MS)),
        ((1, NOW_MS + 30_000), None, (2, NOW_MS + 30_000)),
        ((41, NOW_MS + 1), None, (42, NOW_MS + 1)),
        # At its end it is over.
        ((41, NOW_MS), None, (1, NOW_MS + MINUTE_MS)),
        ((41, NOW_MS - 1), None, (1, NOW_MS + MINUTE_MS)),
        ((41, 0), 31, (1, NOW_MS + MINUTE_MS)),
        # The count stops at the ceiling.
        ((29, NOW_MS + 5), 31, (30, NOW_MS + 5)),
        ((30, NOW_MS + 5), 31, (31, NOW_MS + 5)),
        ((31, NOW_MS + 5), 31, (31, NOW_MS + 5)),
        ((10**11, NOW_MS + 5), 31, (31, NOW_MS + 5)),
        ((0, NOW_MS + 5), 31, (1, NOW_MS + 5)),
        # An end further away than a whole window is from another clock.
        ((5, NOW_MS + MINUTE_MS + 1), None, (6, NOW_MS + MINUTE_MS)),
        ((5, NOW_MS + 10**12), 31, (6, NOW_MS + MINUTE_MS)),
    ],
)
def test_a_hit_leads_to_the_window_in_the_table(window, ceiling, after):
    assert advance(window, NOW_MS, MINUTE_MS, ceiling) == after


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=60), st.integers(1, 100))
def test_hits_are_counted_from_the_first_of_a_window_to_its_end(pauses_ms, ceiling):
    now_ms, window, first_ms, count = NOW_MS, None, 0, 0
    for pause_ms in pauses_ms:
        now_ms += pause_ms
        if window is None or now_ms >= first_ms + MINUTE_MS:
            first_ms, count = now_ms, 0
        count += 1
        window = advance(window, now_ms, MINUTE_MS, ceiling)
        assert window == (min(count, ceiling), first_ms + MINUTE_MS)


# The record of a window


@given(st.integers(0, 10**12 - 1), st.integers(0, 10**15 - 1))
def test_a_window_that_was_written_is_read_again(count, reset_at_ms):
    record = write_window((count, reset_at_ms))
    assert len(record) == RECORD_BYTES
    found = json.loads(record)
    assert set(found) == {"count", "reset_at"}
    assert Fraction(str(found["reset_at"])) * 1000 == reset_at_ms
    assert read_window(found) == (count, reset_at_ms)


@pytest.mark.parametrize(
    ("window", "start"),
    [
        ((1, 1_796_097_966_123), b'{"count": 1, "reset_at": 1796097966.123} '),
        ((31, 1_796_097_966_003), b'{"count": 31, "reset_at": 1796097966.003} '),
        ((2, 5), b'{"count": 2, "reset_at": 0.005} '),
    ],
)
def test_a_record_is_padded_json_with_three_decimals(window, start):
    assert write_window(window) == start.rstrip() + b" " * (64 - len(start.rstrip()))


@pytest.mark.parametrize(
    ("record", "window"),
    [
        ({"count": 0, "reset_at": 0}, (0, 0)),
        ({"count": 7, "reset_at": 1796097966}, (7, 1_796_097_966_000)),
        ({"count": 7, "reset_at": 1796097966.1235}, (7, 1_796_097_966_124)),
        ({"count": 7, "reset_at": 1796097966.123, "more": None}, (7, 1_796_097_966_123)),
    ],
)
def test_a_record_is_read(record, window):
    assert read_window(record) == window


NO_COUNTS = [None, True, False, "1", 1.0, -1, 10**12, 10**5000, float("nan"), [], {}]
NO_ENDS = [None, True, False, "1", -1, -0.001, 10**12, 10**5000, 1e400, float("nan"), float("-inf"), [], {}]


@pytest.mark.parametrize("count", NO_COUNTS, ids=lambda count: repr(count)[:20] if count != 10**5000 else "10**5000")
def test_a_record_with_such_a_count_is_no_window(count):
    assert read_window({"count": count, "reset_at": 1796097966.123}) is None


@pytest.mark.parametrize("reset_at", NO_ENDS, ids=lambda end: repr(end)[:20] if end != 10**5000 else "10**5000")
def test_a_record_with_such_an_end_is_no_window(reset_at):
    assert read_window({"count": 1, "reset_at": reset_at}) is None


@pytest.mark.parametrize(
    "record", [None, True, 0, 1.5, "", "{}", [], [1, 2], {}, {"count": 1}, {"reset_at": 1}, {"COUNT": 1, "reset_at": 1}]
)
def test_what_is_no_record_is_no_window(record):
    assert read_window(record) is None


# What an answer says of it


@pytest.mark.parametrize(
    ("left_ms", "window_seconds", "seconds"),
    [
        (60_000, 60, 60),
        (59_999, 60, 60),
        (59_001, 60, 60),
        (59_000, 60, 59),
        (1001, 60, 2),
        (1000, 60, 1),
        (999, 60, 1),
        (1, 60, 1),
        (0, 60, 1),
        (-1, 60, 1),
        (-10_000, 60, 1),
        # The clock was read again and had stepped back since.
        (60_001, 60, 60),
        (10**9, 60, 60),
        (1, 1, 1),
        (1000, 1, 1),
        (3_600_000, 3600, 3600),
    ],
)
def test_the_seconds_to_the_end_are_rounded_up_within_one_and_the_length(left_ms, window_seconds, seconds):
    assert reset_after_seconds((NOW_MS + left_ms) / 1000, NOW_MS, window_seconds) == seconds


@given(st.integers(0, 10**13), st.integers(1, 604_800_000))
def test_after_the_seconds_to_the_end_the_next_hit_is_in_a_new_window(now_ms, left_ms):
    reset_at_ms = now_ms + left_ms
    seconds = reset_after_seconds(reset_at_ms / 1000, now_ms, 604_800)
    assert advance((9, reset_at_ms), now_ms + seconds * 1000, 604_800_000)[0] == 1
    assert seconds == 1 or advance((9, reset_at_ms), now_ms + (seconds - 1) * 1000, 604_800_000)[0] == 10


@pytest.mark.parametrize(("count", "remaining"), [(1, 299), (2, 298), (299, 1), (300, 0), (301, 0), (10**6, 0)])
def test_the_headers_tell_the_policy_and_what_remains(count, remaining):
    assert quota_headers("acquire", 300, 60, count, 17) == [
        ("RateLimit-Policy", '"acquire";q=300;w=60'),
        ("RateLimit", f'"acquire";r={remaining};t=17'),
    ]
