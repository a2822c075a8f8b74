"""CONTRACT 2 and 3, the list: live leases by resource, page by page."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.doors import UNLIMITED, list_path
from tests.http.shape import assert_lock, assert_problem


def names(answer):
    assert answer.status == 200, answer
    return [lock["resource"] for lock in answer.json()["locks"]]


def pages(door, between=lambda number: None, **parameters):
    """Follow the cursors to the end and return each page's names."""
    found = []
    cursor = {}
    for number in range(1000):
        answer = door.list(**parameters, **cursor)
        found.append(names(answer))
        if answer.json()["next_cursor"] is None:
            return found
        cursor = {"cursor": answer.json()["next_cursor"]}
        between(number)
    raise AssertionError("the cursors never end")


def every_page(door, between=lambda number: None, **parameters):
    return list(chain.from_iterable(pages(door, between, **parameters)))


def hold(door, *resources, ttl_seconds=60):
    for resource in resources:
        door.granted(resource, f"owner of {resource}"[:255], ttl_seconds)


@pytest.fixture
def door(open_site):
    return open_site(RATE_LIMITS=UNLIMITED)


def test_a_list_of_nothing_is_an_empty_list_without_a_cursor(door):
    answer = door.list()
    assert answer.status == 200
    assert answer.media_type == "application/json"
    assert answer.json() == {"locks": [], "next_cursor": None}


def test_each_entry_is_the_lock_as_status_shows_it(door):
    hold(door, "b", "a", "c")
    locks = door.list().json()["locks"]
    assert [lock["resource"] for lock in locks] == ["a", "b", "c"]
    for lock in locks:
        assert_lock(lock, **door.read(lock["resource"]).json())


def test_the_list_is_in_the_order_of_code_points(door):
    resources = ["", " ", "!", "A", "B", "Z", "a", "b", "z", "~", "\u0080", "é", "ﬁ", "閂", "\ud7ff", "\ue000"]
    resources += ["\uffff", "\U00010000", "\U0001f512", "\U0010ffff", "a ", "aa", "a\u0301", "10", "9"]
    hold(door, *reversed(resources[1:]))
    assert names(door.list()) == sorted(resources[1:])
    assert every_page(door, limit=3) == sorted(resources[1:])


def test_expired_and_released_leases_are_not_listed(door):
    hold(door, "a", "b", "c")
    hold(door, "short", ttl_seconds=5)
    door.delete("b", "owner of b")
    door.clock.advance(4.999)
    assert names(door.list()) == ["a", "c", "short"]
    door.clock.advance(0.001)
    assert names(door.list()) == ["a", "c"]


PREFIX_CASES = [
    ("", ["%", "%x", "*", "*x", "A", "_", "_x", "a", "a%b", "aXb", "a_b", "ab", "b"]),
    ("a", ["a", "a%b", "aXb", "a_b", "ab"]),
    ("A", ["A"]),
    ("a%", ["a%b"]),
    ("%", ["%", "%x"]),
    ("_", ["_", "_x"]),
    ("*", ["*", "*x"]),
    ("a_", ["a_b"]),
    ("a*", []),
    ("a%b", ["a%b"]),
    ("ab", ["ab"]),
    ("abc", []),
    ("?", []),
    ("[a]", []),
    ("'", []),
    ("\\", []),
    ("' OR '1'='1", []),
]


@pytest.mark.parametrize(("prefix", "expected"), PREFIX_CASES)
def test_a_prefix_is_plain_text_in_which_nothing_is_special(door, prefix, expected):
    hold(door, *PREFIX_CASES[0][1])
    assert names(door.list(prefix=prefix)) == expected
    assert every_page(door, prefix=prefix, limit=2) == expected


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        ("x", ["x", "x\U0010ffff", "x\U0010ffffz", "x ", "xé"], ["w\U0010ffff", "y", "X"]),
        ("x\U0010ffff", ["x\U0010ffff", "x\U0010ffffa", "x\U0010ffff\U0010ffff"], ["x\U0010fffe", "y", "x"]),
        ("\U0010ffff", ["\U0010ffff", "\U0010ffffa"], ["\U0010fffe\U0010ffff", "z"]),
        ("\ud7ff", ["\ud7ff", "\ud7ffa"], ["\ue000", "\ud7fe"]),
        ("\uffff", ["\uffff", "\uffffa"], ["\U00010000", "\ufffe"]),
        ("~", ["~", "~~"], ["\u0080", "}"]),
        ("é", ["é", "éa"], ["e\u0301", "ê", "è"]),
        ("Straße", ["Straße 1"], ["Strasse", "straße"]),
        ("a b", ["a b", "a bc"], ["a+b", "ab"]),
        ("a+", ["a+b"], ["a b"]),
    ],
    ids=ascii,
)
def test_a_prefix_ends_exactly_where_its_names_end(door, prefix, inside, outside):
    hold(door, *inside, *outside)
    assert names(door.list(prefix=prefix)) == sorted(inside)


def test_a_plus_in_the_query_is_a_plus(door):
    hold(door, "a+b", "a b")
    assert names(door.request("GET", "/locks?prefix=a+")) == ["a+b"]


def test_a_list_shows_100_leases_unless_told_otherwise(door):
    hold(door, *(f"n{number:04d}" for number in range(101)))
    first = door.list()
    assert len(first.json()["locks"]) == 100
    assert first.json()["next_cursor"] is not None
    assert names(door.list(cursor=first.json()["next_cursor"])) == ["n0100"]


@pytest.mark.parametrize("limit", ["1", "2", "999", "1000", "0001"])
def test_a_limit_from_1_to_1000_is_accepted(door, limit):
    hold(door, "a", "b", "c")
    assert len(names(door.list(limit=limit))) == min(int(limit), 3)


REFUSED_LIMITS = [
    "",
    "0",
    "-1",
    "1001",
    "10000000000",
    "9" * 5000,
    "1.0",
    "1e2",
    "abc",
    "5 ",
    " 5",
    "+5",
    "1_0",
    "٥",
    "²",
]
REFUSED_LIMITS += ["0x5", "null", "5\x00", "5,5", "true", "NaN", "Infinity"]


@pytest.mark.parametrize("limit", REFUSED_LIMITS, ids=lambda limit: ascii(limit[:12]))
def test_any_other_limit_is_refused(door, limit):
    answer = door.list(limit=limit)
    assert_problem(answer, "validation-failed")
    assert answer.fields() == {"limit"}


@pytest.mark.parametrize("prefix", ["%FF", "%ED%A0%80", "\u00ff", "a%C3", "%00", "a" * 256, "%F0%9F%94%92" * 256])
def test_a_prefix_no_name_could_have_is_refused(door, prefix):
    answer = door.request("GET", f"/locks?prefix={prefix}")
    assert_problem(answer, "validation-failed")
    assert answer.fields() == {"prefix"}


@pytest.mark.parametrize("cursor", ["x", "%FF", "-", "null", "🔒", "a" * 5000 + "!", "6", "%00", "ff", "eda080"])
def test_a_cursor_the_service_never_gave_out_is_refused(door, cursor):
    answer = door.request("GET", f"/locks?cursor={cursor}".encode().decode("latin-1"))
    assert_problem(answer, "validation-failed")
    assert answer.fields() == {"cursor"}


@pytest.mark.parametrize("query", ["limit=5&limit=5", "prefix=a&prefix=b", "cursor=&cursor=", "limit=5&%6Cimit=6"])
def test_a_parameter_that_stands_twice_is_400(door, query):
    assert_problem(door.request("GET", f"/locks?{query}"), "malformed-request")


@pytest.mark.parametrize(
    "query", ["", "x=1", "Limit=0", "page=2&offset=-1", "&", "&&=&", "=", "limit=1000&", "a=1&&b=2&"]
)
def test_unknown_parameters_are_ignored(door, query):
    hold(door, "a")
    assert names(door.request("GET", f"/locks?{query}")) == ["a"]


def test_all_faults_of_one_query_are_reported_together(door):
    answer = door.request("GET", "/locks?limit=0&prefix=%FF&cursor=!")
    assert_problem(answer, "validation-failed")
    assert answer.fields() == {"limit", "prefix", "cursor"}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 8, 9, 100])
def test_the_chain_of_cursors_shows_every_lease_once(door, limit):
    resources = [f"n{number}" for number in range(8)]
    hold(door, *resources)
    found = pages(door, limit=limit)
    assert list(chain.from_iterable(found)) == resources
    assert all(len(page) == limit for page in found[:-1])
    assert len(found) == -(-len(resources) // limit)


def test_the_chain_works_for_names_of_every_kind(door):
    resources = ["%", "a&b=c#d", "é", "\U0001f512" * 255, "閂", " ", "a" * 255, "+", '"', "\\", "\u0085", "=", "?"]
    hold(door, *resources)
    assert every_page(door, limit=1) == sorted(resources)


def test_a_cursor_can_be_used_as_it_is_in_an_address(door):
    hold(door, *["%+&#é \U0001f512" + str(number) for number in range(3)])
    cursor = door.list(limit=1).json()["next_cursor"]
    assert isinstance(cursor, str)
    assert list_path(cursor=cursor) == f"/locks?cursor={cursor}"


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_leases_that_expire_between_two_pages_make_no_gap_and_no_repeat(door, limit):
    for number in range(30):
        hold(door, f"n{number:02d}", ttl_seconds=10 if number % 3 else 3600)
    lasting = [f"n{number:02d}" for number in range(0, 30, 3)]
    found = every_page(door, lambda number: door.clock.advance(10 if number == 1 else 0), limit=limit)
    assert found == sorted(set(found))
    assert set(lasting) <= set(found)
    assert set(found) - set(lasting) <= {f"n{number:02d}" for number in range(3 * limit)}


def test_the_lease_a_cursor_points_behind_may_be_gone(door):
    hold(door, "a", "b", "c", "d")
    cursor = door.list(limit=2).json()["next_cursor"]
    door.delete("b", "owner of b")
    door.site.forget_rows("resource = 'b'")
    assert names(door.list(limit=2, cursor=cursor)) == ["c", "d"]


def test_leases_granted_between_two_pages_make_no_repeat(door):
    hold(door, "b", "d", "f")
    new = iter(["a", "c", "e", "g"])
    found = every_page(door, lambda number: hold(door, next(new)), limit=1)
    assert found == sorted(set(found))
    assert {"b", "d", "f"} <= set(found)


def test_a_cursor_goes_with_its_prefix_and_with_another_limit(door):
    hold(door, "a1", "a2", "a3", "b1")
    first = door.list(prefix="a", limit=1)
    cursor = first.json()["next_cursor"]
    rest = door.list(prefix="a", limit=1000, cursor=cursor)
    assert names(first) + names(rest) == ["a1", "a2", "a3"]
    assert rest.json()["next_cursor"] is None


def test_a_full_last_page_has_no_cursor(door):
    hold(door, "a", "b", "c", "d")
    second = door.list(limit=2, cursor=door.list(limit=2).json()["next_cursor"])
    assert (names(second), second.json()["next_cursor"]) == (["c", "d"], None)
