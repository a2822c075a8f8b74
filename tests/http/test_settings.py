"""CONTRACT 10: settings, what is refused, and how a refusal is told."""

from __future__ import annotations

import pytest

from tests.doors import UNLIMITED
from tests.http.shape import BROWSER, assert_page, assert_problem

BODY = {"owner": "alice", "ttl_seconds": 60}
ALL_ROUTES = [
    ("POST", "/locks/x", BODY),
    ("GET", "/locks/x", b""),
    ("DELETE", "/locks/x", {"owner": "alice"}),
    ("POST", "/locks/x/renew", BODY),
    ("POST", "/locks/x/release", {"owner": "alice"}),
    ("GET", "/locks", b""),
]


def assert_refuses(door, *names, hidden=()):
    """Every address says which settings are at fault; none says their values."""
    for method, target, body in ALL_ROUTES:
        answer = door.request(method, target, body)
        assert_problem(answer, "unavailable")
        for name in names:
            assert name in answer.json()["detail"], answer
        for text in (*hidden, str(door.site.root)):
            assert text not in answer.text(), answer
    health = door.request("GET", "/health")
    assert health.status == 503
    assert health.json()["status"] in ("fail", 503)
    page = door.request("GET", "/", b"", BROWSER)
    assert page.status == 503
    text = assert_page(page)
    for name in names:
        assert name in text
    assert not (door.site.var / "locks.sqlite3").exists()


REFUSED = [
    ("MAX_TTL_SECONDS", ["0", "-1", '"60"', "60.0", "True", "None", "(60,)", "10**30", "float('inf')"]),
    ("MAX_LOCKS", ["0", "-1", '"10"', "1.5", "True", "None", "[]"]),
    ("KEEP_EXPIRED_SECONDS", ["-1", '"1"', "1.5", "True", "None"]),
    ("BUSY_TIMEOUT_SECONDS", ["-1", '"5"', "True", "None", "10**9", "float('nan')", "float('inf')"]),
    (
        "RATE_LIMITS",
        [
            "None",
            "[]",
            '"acquire"',
            '{"acquire": 300}',
            '{"acquire": (300,)}',
            '{"acquire": (300, 60, 1)}',
            '{"acquire": (0, 60)}',
            '{"acquire": (-1, 60)}',
            '{"acquire": (300, 0)}',
            '{"acquire": (300.0, 60)}',
            '{"acquire": (True, 60)}',
            '{"acquire": ("300", "60")}',
            '{"acquire": False}',
            '{"acquired": (300, 60)}',
            "{1: (300, 60)}",
        ],
    ),
    ("RATE_LIMIT_STORAGE", ['"redis"', '""', "None", "True", '["file"]', '"FILE"']),
    ("TRUSTED_PROXY_HOPS", ["-1", '"1"', "True", "1.0", "None"]),
    ("CORS_ORIGINS", ['"https://app.example"', "None", "(1,)", "{}", "True", '("https://app.example\\r\\nX: y",)']),
    ("API_KEYS", ['{"ci": "secret-key"}', '"secret-key"', '["secret-key"]', "None"]),
    ("MAX_TTL", ["5"]),
    ("max_locks", ["5"]),
    ("DEBUG", ["False"]),
    ("SECRET_KEY", ['"secret-key"']),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED for value in values])
def test_an_unknown_name_a_wrong_type_or_a_value_out_of_range_is_503_with_the_name_and_not_the_value(
    open_root, name, value
):
    assert_refuses(open_root(f"{name} = {value}\n"), name, hidden=["secret-key", "redis", "X: y"])


def test_all_faults_are_told_at_once(open_root):
    config = "MAX_LOCKS = 0\nNONSENSE = 1\nMAX_TTL_SECONDS = 'x'\nTRUSTED_PROXY_HOPS = -3\nAPI_KEYS = {'a': 'b'}\n"
    assert_refuses(open_root(config), "MAX_LOCKS", "NONSENSE", "MAX_TTL_SECONDS", "TRUSTED_PROXY_HOPS", "API_KEYS")


@pytest.mark.parametrize(
    "config",
    [
        "MAX_LOCKS = \n",
        "this is not Python",
        "MAX_LOCKS = 5\n  KEEP_EXPIRED_SECONDS = 1",
        b"MAX_LOCKS = '\xff\xfe'",
        b"MAX_LOCKS = 5\0",
        "MAX_LOCKS = undefined_secret",
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "MAX_LOCKS = 1 / 0",
        "import no_such_module_secret",
        "(" * 500,
        b"\xfe\xff\x00M",
    ],
    ids=ascii,
)
def test_a_settings_file_that_cannot_be_run_is_503_and_never_a_crash(open_root, config):
    assert_refuses(open_root(config), "config.py", hidden=["secret", "Traceback"])


@pytest.mark.parametrize(
    "config",
    [
        "",
        "\n# nothing but a comment\n",
        '"""The settings of our installation."""\n\nMAX_LOCKS = 5\n',
        "# -*- coding: utf-8 -*-\nMAX_LOCKS = 5  # für alle\n",
        b"\xef\xbb\xbfMAX_LOCKS = 5\r\n",
        "MAX_LOCKS = 5\r\nMAX_TTL_SECONDS = 24 * 3600\r\n",
        "KEEP_EXPIRED_SECONDS = 0\nBUSY_TIMEOUT_SECONDS = 1\nTRUSTED_PROXY_HOPS = 1\nAPI_KEYS = {}\nCORS_ORIGINS = ()",
        'RATE_LIMITS = {"acquire": (1, 1), "hold": None, "read": [5, 60], "auth": (1, 3600)}\n',
        'CORS_ORIGINS = ["https://app.example", "http://localhost:5173"]\n',
        "RATE_LIMITS = {}\n",
    ],
    ids=ascii,
)
def test_a_settings_file_of_plain_assignments_is_accepted(open_root, config):
    door = open_root(config)
    assert door.acquire("x").json()["acquired"] is True


def test_counting_in_memory_is_accepted_only_where_one_process_serves_all(open_root):
    door = open_root('RATE_LIMIT_STORAGE = "memory"\n')
    if door.counts_in_memory:
        assert door.acquire("x").json()["acquired"] is True
    else:
        assert_refuses(door, "RATE_LIMIT_STORAGE")


def test_a_browser_is_told_escaped_names(open_root):
    door = open_root("globals()['<script>'] = 1\n")
    page = door.request("GET", "/locks/x", b"", BROWSER)
    assert page.status == 503
    assert "<script" not in assert_page(page)


def test_health_says_that_anyone_may_call_while_there_are_no_api_keys(door):
    assert "open" in door.request("GET", "/health").text()


def test_more_live_leases_than_max_locks_are_503_capacity(open_site):
    door = open_site(MAX_LOCKS=2)
    door.granted("a", "alice", 60)
    door.granted("b", "alice", 600)
    before = door.site.stored()
    assert_problem(door.acquire("c", "alice"), "capacity")
    assert_problem(door.acquire("c", "bob"), "capacity")
    assert door.site.stored() == before


def test_at_capacity_a_live_lease_is_granted_again_to_its_owner_and_renewed(open_site):
    door = open_site(MAX_LOCKS=1)
    lock = door.granted("a", "alice", 60)
    assert door.granted("a", "alice", 90)["fencing_token"] == lock["fencing_token"]
    assert door.renew("a", "alice", 120).status == 200


def test_at_capacity_a_held_name_is_not_acquired_rather_than_refused(open_site):
    door = open_site(MAX_LOCKS=1)
    door.granted("a", "alice", 60)
    answer = door.acquire("a", "bob")
    assert (answer.status, answer.json()) == (200, {"acquired": False, "resource": "a"})


def test_a_release_or_an_expiry_makes_room(open_site):
    door = open_site(MAX_LOCKS=2)
    door.granted("a", "alice", 60)
    door.granted("b", "alice", 600)
    assert door.acquire("c").status == 503
    door.delete("b")
    door.granted("c", "alice", 600)
    assert door.acquire("d").status == 503
    door.clock.advance(60)
    door.granted("d", "alice", 600)
    assert door.acquire("a").status == 503
    assert len(door.list().json()["locks"]) == 2


def test_an_expired_lease_of_the_same_name_does_not_stand_in_its_own_way(open_site):
    door = open_site(MAX_LOCKS=1)
    for owner in ("alice", "bob", "alice"):
        door.granted("a", owner, 60)
        door.clock.advance(60)


def test_any_number_of_expired_leases_takes_no_room(open_site):
    door = open_site(MAX_LOCKS=150, RATE_LIMITS=UNLIMITED)
    for number in range(150):
        door.granted(f"n{number}", "alice", 1)
    assert door.acquire("x").status == 503
    door.clock.advance(1)
    for number in range(150):
        door.granted(f"m{number}", "alice", 60)
    assert_problem(door.acquire("x"), "capacity")
