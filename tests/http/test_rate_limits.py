"""CONTRACT 6: fixed windows per policy and client, and the headers that tell of them."""

from __future__ import annotations

import json

import pytest

from tests.http.shape import BROWSER, assert_page, assert_problem

BODY = {"owner": "alice", "ttl_seconds": 60}

#: every counted request, with the policy that counts it
COUNTED = [
    ("acquire", "POST", "/locks/x", BODY),
    ("hold", "POST", "/locks/x/renew", BODY),
    ("hold", "POST", "/locks/x/release", {"owner": "alice"}),
    ("hold", "DELETE", "/locks/x", {"owner": "alice"}),
    ("read", "GET", "/locks/x", b""),
    ("read", "HEAD", "/locks/x", b""),
    ("read", "GET", "/locks", b""),
]
DEFAULTS = {"acquire": 300, "hold": 1200, "read": 600}
each_counted = pytest.mark.parametrize(("policy", "method", "target", "body"), COUNTED)


def headers_of(answer):
    return answer.header("RateLimit-Policy"), answer.header("RateLimit")


@each_counted
def test_a_counted_answer_states_policy_and_what_is_left(door, policy, method, target, body):
    limit = DEFAULTS[policy]
    for used in (1, 2, 3):
        answer = door.request(method, target, body)
        assert headers_of(answer) == (f'"{policy}";q={limit};w=60', f'"{policy}";r={limit - used};t=60')


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/health"),
        ("HEAD", "/health"),
        ("GET", "/"),
        ("GET", "/nope"),
        ("OPTIONS", "/locks/x"),
        ("PUT", "/locks/x"),
    ],
)
def test_anything_else_is_not_counted_and_says_nothing_of_quotas(open_site, method, target):
    door = open_site(RATE_LIMITS={"acquire": (1, 60), "hold": (1, 60), "read": (1, 60)})
    for _ in range(5):
        answer = door.request(method, target)
        assert answer.status != 429
        assert headers_of(answer) == (None, None)
    assert door.read("x").header("RateLimit") == '"read";r=0;t=60'


@each_counted
def test_with_limit_30_the_31st_hit_is_the_first_refused(open_site, policy, method, target, body):
    door = open_site(RATE_LIMITS={policy: (30, 60)})
    for hit in range(1, 31):
        answer = door.request(method, target, body)
        assert answer.status != 429
        assert answer.header("RateLimit") == f'"{policy}";r={30 - hit};t=60'
    for _ in range(3):
        answer = door.request(method, target, body)
        assert answer.status == 429
        assert headers_of(answer) == (f'"{policy}";q=30;w=60', f'"{policy}";r=0;t=60')
        assert answer.header("Retry-After") == "60"


def test_a_refused_request_is_a_problem_document_or_a_page_and_changes_nothing(open_site):
    door = open_site(RATE_LIMITS={"acquire": (1, 60), "hold": (1, 60)})
    door.granted("x", "alice")
    assert door.renew("x").status == 200
    before = door.site.stored()
    for answer in (door.acquire("y"), door.renew("x", "alice", 5), door.delete("x"), door.release("x")):
        assert_problem(answer, "too-many-requests", "Too many requests.")
    page = door.acquire("z", headers=BROWSER)
    assert page.status == 429
    assert page.header("Retry-After") == "60"
    assert "Too many requests." in assert_page(page)
    assert door.site.stored() == before


@pytest.mark.parametrize(
    ("passed", "t"),
    [(0, 60), (0.001, 60), (0.5, 60), (1, 59), (1.001, 59), (29.999, 31), (30, 30), (59, 1), (59.999, 1)],
)
def test_t_is_the_whole_seconds_to_the_windows_end_rounded_up_and_retry_after_is_the_same(open_site, passed, t):
    door = open_site(RATE_LIMITS={"acquire": (2, 60)})
    door.acquire("x")
    door.clock.advance(passed)
    assert door.acquire("x").header("RateLimit") == f'"acquire";r=0;t={t}'
    refused = door.acquire("x")
    assert refused.status == 429
    assert refused.header("RateLimit") == f'"acquire";r=0;t={t}'
    assert refused.header("Retry-After") == str(t)


@pytest.mark.parametrize("milliseconds", [*range(0, 1000, 37), 1, 7, 999])
def test_t_never_exceeds_the_window_at_whatever_fraction_of_a_second_it_starts(open_site, milliseconds):
    door = open_site()
    door.clock.set_ms(1_796_097_906_000 + milliseconds)
    for t in range(60, 0, -7):
        assert door.read("x").header("RateLimit").endswith(f";t={t}")
        door.clock.advance(7)


def test_the_window_starts_at_the_clients_first_hit_not_at_a_full_minute(open_site):
    door = open_site(RATE_LIMITS={"acquire": (1, 60)})
    door.clock.set_ms(1_796_097_959_900)
    assert door.acquire("x").status == 200
    door.clock.advance(0.2)
    assert door.acquire("x").status == 429
    door.clock.advance(59.799)
    assert door.acquire("x").status == 429
    door.clock.advance(0.001)
    assert door.acquire("x").status == 200


def test_the_windows_end_never_moves_while_it_lives(open_site):
    door = open_site(RATE_LIMITS={"acquire": (2, 60)})
    for second in range(60):
        answer = door.acquire("x")
        assert answer.status == (200 if second < 2 else 429)
        assert answer.header("RateLimit").endswith(f";t={60 - second}")
        door.clock.advance(1)
    assert door.acquire("x").header("RateLimit") == '"acquire";r=1;t=60'


def test_at_its_end_a_new_window_starts_with_the_whole_quota(open_site):
    door = open_site(RATE_LIMITS={"acquire": (3, 60)})
    for _ in range(5):
        door.acquire("x")
    door.clock.advance(60)
    assert door.acquire("x").header("RateLimit") == '"acquire";r=2;t=60'
    door.clock.advance(1)
    assert door.acquire("x").header("RateLimit") == '"acquire";r=1;t=59'


def test_a_window_may_be_any_number_of_seconds(open_site):
    door = open_site(RATE_LIMITS={"acquire": (1, 1), "read": (5, 3600)})
    assert headers_of(door.acquire("x")) == ('"acquire";q=1;w=1', '"acquire";r=0;t=1')
    assert headers_of(door.read("x")) == ('"read";q=5;w=3600', '"read";r=4;t=3600')
    door.clock.advance(1)
    assert door.acquire("x").status == 200


@pytest.mark.parametrize("exhausted", ["acquire", "hold", "read"])
def test_each_policy_has_a_budget_of_its_own(open_site, exhausted):
    door = open_site(RATE_LIMITS={exhausted: (1, 60)})
    for _ in range(3):
        for policy, method, target, body in COUNTED:
            if policy == exhausted:
                last = door.request(method, target, body)
    assert last.status == 429
    for policy, method, target, body in COUNTED:
        assert (door.request(method, target, body).status == 429) == (policy == exhausted)


@pytest.mark.parametrize("policy", ["hold", "read"])
def test_all_requests_of_one_policy_share_its_budget(open_site, policy):
    door = open_site(RATE_LIMITS={policy: (10, 60)})
    left = 10
    for name, method, target, body in COUNTED:
        if name == policy:
            left -= 1
            assert door.request(method, target, body).header("RateLimit") == f'"{policy}";r={left};t=60'


def test_a_budget_is_for_all_names_and_owners_of_a_client_together(open_site):
    door = open_site(RATE_LIMITS={"acquire": (2, 60)})
    assert door.acquire("x", "alice").status == 200
    assert door.acquire("y", "bob").status == 200
    assert door.acquire("z", "carol").status == 429


def test_invalid_requests_to_a_counted_address_are_counted_too(door):
    form = {"Content-Type": "multipart/form-data"}
    requests = [(b"{", {}), ({}, {}), (b" " * 65537, {}), (b"a=b", form)]
    for used, (body, headers) in enumerate(requests, 1):
        answer = door.request("POST", "/locks/x", body, headers)
        assert 400 <= answer.status < 423
        assert answer.header("RateLimit") == f'"acquire";r={300 - used};t=60'


def test_a_policy_left_out_keeps_its_default(open_site):
    door = open_site(RATE_LIMITS={"acquire": (7, 60)})
    assert headers_of(door.acquire("x")) == ('"acquire";q=7;w=60', '"acquire";r=6;t=60')
    assert headers_of(door.read("x")) == ('"read";q=600;w=60', '"read";r=599;t=60')
    assert headers_of(door.renew("x")) == ('"hold";q=1200;w=60', '"hold";r=1199;t=60')


def test_none_switches_one_policy_off(open_site):
    door = open_site(RATE_LIMITS={"read": None, "acquire": (1, 60)})
    for _ in range(700):
        answer = door.read("x")
        assert answer.status == 404
    assert headers_of(answer) == (None, None)
    door.acquire("x")
    assert door.acquire("x").status == 429


def test_a_changed_limit_starts_afresh_and_an_unchanged_one_survives_a_restart(open_site):
    door = open_site(RATE_LIMITS={"acquire": (2, 60), "read": (5, 60)})
    for _ in range(3):
        door.acquire("x")
        door.read("x")
    door = open_site(clock=door.clock, RATE_LIMITS={"acquire": (3, 60), "read": (5, 60)})
    assert door.acquire("x").header("RateLimit") == '"acquire";r=2;t=60'
    assert door.read("x").header("RateLimit") == '"read";r=1;t=60'


def test_the_memory_storage_counts_the_same(open_site):
    door = open_site(RATE_LIMIT_STORAGE="memory", RATE_LIMITS={"acquire": (1, 60)})
    assert headers_of(door.acquire("x")) == ('"acquire";q=1;w=60', '"acquire";r=0;t=60')
    refused = door.acquire("x")
    assert (refused.status, refused.header("Retry-After")) == (429, "60")
    door.clock.advance(60)
    assert door.acquire("x").status == 200
    assert door.site.windows() == []


def test_nothing_of_the_client_is_in_the_name_or_content_of_a_window_file(door):
    door.acquire("x", remote_addr="203.0.113.77")
    door.read("x", remote_addr="2001:db8:1:2::3")
    assert len(door.site.windows()) == 2
    for path in door.site.windows():
        stem, _, ending = path.name.partition(".")
        assert (len(stem), set(stem) <= set("0123456789abcdef"), ending) == (64, True, "json")
        assert set(json.loads(path.read_text())) == {"count", "reset_at"}
        assert "203" not in path.read_text().replace(str(door.clock.now_ms() // 1000 + 60), "")
