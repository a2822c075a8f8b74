"""CONTRACT 6: who counts as one client, and what happens when nothing can be counted."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.http.shape import assert_problem

#: groups of (REMOTE_ADDR, ...) that are one client each
CLIENTS = [
    ("192.0.2.1", "::ffff:192.0.2.1", "::FFFF:192.0.2.1", "::ffff:c000:201", "0:0:0:0:0:ffff:192.0.2.1"),
    ("192.0.2.2",),
    ("192.0.3.1",),
    ("::ffff:192.0.2.9", "192.0.2.9"),
    ("2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:0DB8:0000:0001::5"),
    ("2001:db8:0:2::1",),
    ("2001:db8:1:1::1",),
    ("::1", "::2"),
    ("fe80::1", "fe80::2"),
    ("", "unknown", "localhost", "999.1.1.1", "1.2.3", "not an address", "\u00ff\u00fe", "1.2.3.4.5", ":::", "g::1"),
]


@pytest.mark.parametrize("group", CLIENTS, ids=[group[0] or "unknown" for group in CLIENTS])
def test_addresses_of_one_client_share_a_budget_and_other_clients_have_their_own(open_site, group):
    door = open_site(RATE_LIMITS={"read": (50, 60)})
    for used, address in enumerate(group, 1):
        assert door.read("x", remote_addr=address).header("RateLimit") == f'"read";r={50 - used};t=60', address
    for other in CLIENTS:
        if other is not group:
            assert door.read("x", remote_addr=other[0]).header("RateLimit") == '"read";r=49;t=60', other


def test_a_server_that_tells_no_address_makes_the_unknown_client_which_is_still_limited(open_site):
    door = open_site(RATE_LIMITS={"acquire": (2, 60)})
    assert door.acquire("x", remote_addr=None).status == 200
    assert door.acquire("x", remote_addr="").status == 200
    assert_problem(door.acquire("x", remote_addr="?"), "too-many-requests")
    assert door.acquire("x", remote_addr="192.0.2.1").status == 200


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "Client-IP", "True-Client-IP", "CF-Connecting-IP", "Via"]
)
def test_headers_about_the_client_are_not_believed(open_site, header):
    door = open_site(RATE_LIMITS={"acquire": (2, 60)})
    for hit in range(4):
        answer = door.acquire("x", headers={header: f"198.51.100.{hit}"})
        assert answer.status == (200 if hit < 2 else 429)


def left(door, forwarded_for, remote_addr="192.0.2.250"):
    """What is left of the client's budget of 50."""
    answer = door.read("x", headers={"X-Forwarded-For": forwarded_for}, remote_addr=remote_addr)
    return int(answer.header("RateLimit").split(";")[1][2:])


@pytest.mark.parametrize(
    ("hops", "one_client"),
    [
        (1, ["198.51.100.1", "9.9.9.9, 198.51.100.1", "a, b, c,198.51.100.1", "9.9.9.9 ,  198.51.100.1 "]),
        (1, ["::ffff:198.51.100.1", "198.51.100.1"]),
        (1, ["2001:db8::1", "1.1.1.1, 2001:db8::2"]),
        (2, ["198.51.100.1, 10.0.0.1", "9.9.9.9, 198.51.100.1, 10.0.0.2", "x, 198.51.100.1, y"]),
        (3, ["198.51.100.1, 10.0.0.1, 10.0.0.2", "1.1.1.1, 198.51.100.1, 10.0.0.3, 10.0.0.4"]),
        (1, ["nonsense", "1.1.1.1, unknown", "1.1.1.1, ", "1.2.3.4, 999.1.1.1"]),
    ],
)
def test_with_trusted_hops_the_client_is_the_entry_the_outermost_own_proxy_wrote(open_site, hops, one_client):
    door = open_site(TRUSTED_PROXY_HOPS=hops, RATE_LIMITS={"read": (50, 60)})
    for used, forwarded_for in enumerate(one_client, 1):
        assert left(door, forwarded_for) == 50 - used, forwarded_for
    assert left(door, ", ".join(["203.0.113.9"] * hops)) == 49


def test_what_a_client_writes_left_of_the_own_proxies_does_not_give_it_a_second_budget(open_site):
    door = open_site(TRUSTED_PROXY_HOPS=1, RATE_LIMITS={"acquire": (3, 60)})
    for hit in range(5):
        answer = door.acquire("x", headers={"X-Forwarded-For": f"10.0.0.{hit}, 10.1.0.{hit}, 198.51.100.1"})
        assert answer.status == (200 if hit < 3 else 429)


@pytest.mark.parametrize("forwarded_for", [None, "", "198.51.100.1"])
def test_with_fewer_entries_than_hops_the_client_is_the_peer(open_site, forwarded_for):
    door = open_site(TRUSTED_PROXY_HOPS=2, RATE_LIMITS={"read": (50, 60)})
    assert left(door, forwarded_for, "192.0.2.7") == 49
    assert left(door, forwarded_for, "192.0.2.7") == 48
    assert left(door, forwarded_for, "192.0.2.8") == 49


CONTENTS = [b"", b"{", b"[]", b"null", b"\0" * 64, b"\xff\xfe", b'{"count": "5"}', b'{"count": NaN, "reset_at": 1e400}']
CONTENTS += [b'{"count": -5, "reset_at": -1}', b'{"count": ' + b"9" * 5000 + b', "reset_at": 1}', b"x" * 100_000]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: repr(content[:30]))
def test_a_lost_or_broken_window_file_is_a_new_window_and_never_an_error(open_site, content):
    door = open_site(RATE_LIMITS={"acquire": (2, 60)})
    for _ in range(3):
        door.acquire("x")
    [path] = door.site.windows()
    path.write_bytes(content)
    assert door.acquire("x").header("RateLimit") == '"acquire";r=1;t=60'
    path.unlink()
    assert door.acquire("x").header("RateLimit") == '"acquire";r=1;t=60'


def test_a_window_file_far_in_the_future_is_cut_to_one_window(open_site):
    door = open_site(RATE_LIMITS={"acquire": (2, 60)})
    door.acquire("x")
    [path] = door.site.windows()
    path.write_text(json.dumps({"count": 10**9, "reset_at": 4102444800.0}))
    refused = door.acquire("x")
    assert refused.header("RateLimit") == '"acquire";r=0;t=60'
    assert refused.header("Retry-After") == "60"
    door.clock.advance(60)
    assert door.acquire("x").status == 200


def a_file_in_the_way(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("")


def a_dangling_link(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.symlink_to(folder.parent / "nowhere")


def folders_in_the_way(folder):
    for path in list(folder.iterdir()):
        path.unlink()
        path.mkdir()


def links_in_the_way(folder):
    for path in list(folder.iterdir()):
        path.unlink()
        path.symlink_to("/dev/null")


def pipes_in_the_way(folder):
    for path in list(folder.iterdir()):
        path.unlink()
        os.mkfifo(path)


@pytest.mark.parametrize(
    "break_it", [a_file_in_the_way, a_dangling_link, folders_in_the_way, links_in_the_way, pipes_in_the_way]
)
def test_what_cannot_be_counted_passes_with_one_log_line_without_the_clients_address(
    open_site, capfd, caplog, break_it
):
    door = open_site(RATE_LIMITS={"acquire": (3, 60)})
    address = "203.0.113.77"
    assert door.acquire("x", remote_addr=address).status == 200
    break_it(door.site.var / "rate-limits")
    capfd.readouterr()
    caplog.clear()
    for _ in range(10):
        answer = door.acquire("x", remote_addr=address)
        assert answer.status == 200
        assert answer.json()["acquired"] is True
        assert answer.header("RateLimit") is None
    log = door.log.getvalue() + capfd.readouterr().err + caplog.text
    assert len(log.strip().splitlines()) == 1, log
    assert address not in log
    assert str(door.site.root) not in log
    assert "alice" not in log
