"""CONTRACT 3, bodies: one JSON object, UTF-8, up to 64 KiB; 400, 411, 413 and 415."""

from __future__ import annotations

import io
import json

import pytest

from tests.http.shape import assert_problem

LIMIT_BYTES = 65536
GOOD = b'{"owner": "alice", "ttl_seconds": 60}'

#: every route with a body, with what has to be stored for it to work
TARGETS = [("POST", "/locks/x"), ("POST", "/locks/x/renew"), ("POST", "/locks/x/release"), ("DELETE", "/locks/x")]
each_target = pytest.mark.parametrize(("method", "target"), TARGETS, ids=[" ".join(way) for way in TARGETS])


def refused(door, method, target, body, slug, **how):
    """Send to a held lock what must be refused and change nothing."""
    door.granted("x", "alice")
    before = door.site.stored()
    answer = door.request(method, target, body, **how)
    assert_problem(answer, slug)
    assert door.site.stored() == before
    return answer


def padded(size, head=GOOD):
    return head + b" " * (size - len(head))


MALFORMED = {
    "white space only": b" \n ",
    "text": b"owner=alice",
    "cut off": GOOD[:-1],
    "cut off in a string": b'{"owner": "al',
    "something after it": GOOD + b"x",
    "two objects": GOOD + GOOD,
    "a NUL after it": GOOD + b"\0",
    "single quotes": b"{'owner': 'alice', 'ttl_seconds': 60}",
    "a trailing comma": b'{"owner": "alice", "ttl_seconds": 60,}',
    "a comment": b'{"owner": "alice", /* x */ "ttl_seconds": 60}',
    "a missing colon": b'{"owner" "alice", "ttl_seconds": 60}',
    "a bare name": b'{owner: "alice", "ttl_seconds": 60}',
    "a raw newline in a string": b'{"owner": "al\nice", "ttl_seconds": 60}',
    "a raw NUL in a string": b'{"owner": "al\0ice", "ttl_seconds": 60}',
    "an unknown escape": rb'{"owner": "\x41lice", "ttl_seconds": 60}',
    "half an escape": rb'{"owner": "\u12", "ttl_seconds": 60}',
    "an escape with a sign": rb'{"owner": "\u+041", "ttl_seconds": 60}',
    "an escape with an underscore": rb'{"owner": "\u0_41", "ttl_seconds": 60}',
    "NULs": b"\0" * 40,
    "no-break space around it": "\u00a0{}".encode(),
    "a no-break space after it": GOOD + "\u00a0".encode(),
    "a form feed before it": b"\f" + GOOD,
    "a form feed after it": GOOD + b"\f",
    "a vertical tab inside": b'{"owner": "alice",\v"ttl_seconds": 60}',
    "True": b'{"owner": "alice", "ttl_seconds": 60, "x": True}',
    "only a brace": b"{",
    "only a quote": b'"',
    "a byte-order mark": b"\xef\xbb\xbf" + GOOD,
}


@each_target
@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_is_400(door, method, target, body):
    refused(door, method, target, body, "malformed-request")


@each_target
@pytest.mark.parametrize(
    "body", ["[]", '[{"owner": "alice", "ttl_seconds": 60}]', '"alice"', "60", "null", "true", "1.5"]
)
def test_a_body_that_is_json_but_no_object_is_400(door, method, target, body):
    refused(door, method, target, body.encode(), "malformed-request")


@pytest.mark.parametrize("target", ["/locks/x", "/locks/x/renew"])
def test_an_empty_body_is_400_where_one_is_needed(door, target):
    refused(door, "POST", target, b"", "malformed-request")
    refused(door, "POST", target, b"", "malformed-request", headers={"Content-Length": None})


NOT_UTF_8 = {
    "latin-1": '{"owner": "é", "ttl_seconds": 60}'.encode("latin-1"),
    "utf-16": GOOD.decode().encode("utf-16"),
    "utf-16-le": GOOD.decode().encode("utf-16-le"),
    "utf-16-be": GOOD.decode().encode("utf-16-be"),
    "utf-32": GOOD.decode().encode("utf-32"),
    "utf-32-be": GOOD.decode().encode("utf-32-be"),
    "a raw surrogate": b'{"owner": "\xed\xa0\x80", "ttl_seconds": 60}',
    "an overlong slash": b'{"owner": "\xc0\xaf", "ttl_seconds": 60}',
    "above U+10FFFF": b'{"owner": "\xf4\x90\x80\x80", "ttl_seconds": 60}',
    "a lone byte in an unknown member": b'{"owner": "alice", "ttl_seconds": 60, "x": "\xff"}',
    "a lone byte after it": GOOD + b"\xff",
}


@each_target
@pytest.mark.parametrize("body", NOT_UTF_8.values(), ids=NOT_UTF_8)
def test_a_body_that_is_not_utf_8_is_400_whatever_its_type_says(door, method, target, body):
    for content_type in ("application/json", "application/json; charset=utf-16", "text/plain; charset=latin-1"):
        refused(door, method, target, body, "malformed-request", headers={"Content-Type": content_type})


DUPLICATES = {
    "owner": b'{"owner": "alice", "ttl_seconds": 60, "owner": "alice"}',
    "ttl_seconds": b'{"owner": "alice", "ttl_seconds": 60, "ttl_seconds": 61}',
    "an escaped name": rb'{"owner": "alice", "ttl_seconds": 60, "\u006fwner": "bob"}',
    "an unknown member": b'{"owner": "alice", "ttl_seconds": 60, "x": 1, "x": 1}',
    "the empty name": b'{"owner": "alice", "ttl_seconds": 60, "": 1, "": 2}',
    "in an object": b'{"owner": "alice", "ttl_seconds": 60, "x": {"a": 1, "a": 1}}',
    "in a list": b'{"owner": "alice", "ttl_seconds": 60, "x": [1, [{"a": 1, "b": 2, "a": null}]]}',
    "deep": b'{"owner": "alice", "ttl_seconds": 60, "x": {"a": {"b": {"c": {"d": 1, "d": 1}}}}}',
}


@each_target
@pytest.mark.parametrize("body", DUPLICATES.values(), ids=DUPLICATES)
def test_a_member_that_stands_twice_at_any_depth_is_400(door, method, target, body):
    refused(door, method, target, body, "malformed-request")


def test_the_same_member_in_two_objects_is_no_duplicate(door):
    body = b'{"owner": "alice", "ttl_seconds": 60, "x": {"owner": 1, "y": [{"owner": 1}, {"owner": 1}]}}'
    assert door.request("POST", "/locks/x", body).status == 200


def nested(depth, opening, closing, inside=b"1"):
    return b'{"owner": "alice", "ttl_seconds": 60, "x": ' + opening * depth + inside + closing * depth + b"}"


@each_target
@pytest.mark.parametrize(
    "body",
    [
        nested(30000, b"[", b"]"),
        nested(10000, b'{"":', b"}"),
        nested(12000, b'[{"a":', b"}]")[:60000],
        b"[" * LIMIT_BYTES,
        b'{"a":' * 13000,
        nested(5000, b"[", b"]"),
    ],
    ids=["lists", "objects", "both, cut off", "open lists", "open objects", "5000 lists"],
)
def test_a_body_nested_too_deep_is_400(door, method, target, body):
    refused(door, method, target, body, "malformed-request")


@pytest.mark.parametrize("depth", [1, 10, 30])
def test_a_body_nested_as_people_nest_is_fine(door, depth):
    assert door.request("POST", "/locks/x", nested(depth, b"[", b"]")).status == 200
    assert door.request("POST", "/locks/y", nested(depth, b'{"a":', b"}")).status == 200


@pytest.mark.parametrize("white", [b"\n", b"\r\n", b"\t", b"   "])
def test_white_space_of_json_around_the_object_is_fine(door, white):
    assert door.request("POST", "/locks/x", white + GOOD + white).status == 200


@pytest.mark.parametrize("size", [LIMIT_BYTES - 1, LIMIT_BYTES])
def test_a_body_of_up_to_64_kib_is_read(door, size):
    assert door.request("POST", "/locks/x", padded(size)).status == 200
    assert door.request("POST", "/locks/x/renew", padded(size)).status == 200
    assert door.request("DELETE", "/locks/x", padded(size)).status == 204


@each_target
@pytest.mark.parametrize("size", [LIMIT_BYTES + 1, LIMIT_BYTES * 2, 10_000_000])
def test_a_larger_body_is_413(door, method, target, size):
    refused(door, method, target, padded(size), "too-large")


@each_target
def test_a_body_announced_as_larger_is_413_before_it_arrives(door, method, target):
    for length in ("65537", "10000000000", str(2**63), str(2**64), "9" * 50, "9" * 5000):
        refused(door, method, target, GOOD, "too-large", headers={"Content-Length": length})


FORM_TYPES = [
    "application/x-www-form-urlencoded",
    "application/x-www-form-urlencoded; charset=UTF-8",
    "APPLICATION/X-WWW-FORM-URLENCODED",
    "application/x-www-form-urlencoded;charset=utf-8",
    " application/x-www-form-urlencoded ",
    "application/x-www-form-urlencoded ; q",
    "multipart/form-data; boundary=x",
    "Multipart/Form-Data",
]


@each_target
@pytest.mark.parametrize("content_type", FORM_TYPES)
def test_a_body_of_a_form_type_is_415_even_if_it_is_json(door, method, target, content_type):
    refused(door, method, target, GOOD, "unsupported-media-type", headers={"Content-Type": content_type})


@pytest.mark.parametrize("body", [b"owner=alice&ttl_seconds=60", b"{", b"\xff"])
def test_a_form_is_415_before_it_is_read(door, body):
    refused(door, "POST", "/locks/x", body, "unsupported-media-type", headers={"Content-Type": FORM_TYPES[0]})


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "application/json",
        "application/json; charset=utf-8",
        "application/json; charset=latin-1",
        "Application/JSON",
        "text/plain",
        "text/json",
        "application/octet-stream",
        "application/vnd.api+json",
        "application/x-www-form-urlencoded-not",
        "x-application/x-www-form-urlencoded",
        "nonsense",
        ";",
        "/",
        "\u00e9\u00ff",
        "application/json, text/plain",
    ],
)
def test_any_content_type_that_is_not_a_form_type_is_read_as_json(door, content_type):
    assert door.request("POST", "/locks/x", GOOD, {"Content-Type": content_type}).status == 200
    assert door.request("DELETE", "/locks/x", GOOD, {"Content-Type": content_type}).status == 204


@each_target
@pytest.mark.parametrize("arrived", [GOOD, GOOD[:10], b"", b"{}"])
def test_a_body_shorter_than_announced_is_400_and_nothing_is_stored(door, method, target, arrived):
    length = str(len(arrived) + 1)
    refused(door, method, target, arrived, "malformed-request", headers={"Content-Length": length})


def test_a_cut_off_body_never_makes_a_lease(door):
    answer = door.request("POST", "/locks/x", GOOD, {"Content-Length": "60"})
    assert_problem(answer, "malformed-request")
    assert door.site.stored() == []


def test_a_cut_off_delete_does_not_fall_back_on_the_owner_in_the_query(door):
    refused(door, "DELETE", "/locks/x?owner=alice", b"", "malformed-request", headers={"Content-Length": "18"})


@each_target
@pytest.mark.parametrize("length", ["-1", "abc", "1.5", "0x10", "1e3", "+5", "1 2", "٣", "1_0", "5,5"])
def test_a_content_length_that_is_no_number_is_400(door, method, target, length):
    length = length.encode().decode("latin-1")
    refused(door, method, target, GOOD, "malformed-request", headers={"Content-Length": length})


CHUNKED = {"Transfer-Encoding": "chunked", "Content-Length": None}
TO_THE_END = {"wsgi.input_terminated": True}


def test_a_chunked_body_is_read_to_its_end(door):
    answer = door.request("POST", "/locks/x", GOOD, CHUNKED, environ_extra=TO_THE_END)
    assert answer.status == 200
    assert answer.json()["lock"]["owner"] == "alice"
    body = json.dumps({"owner": "alice"}).encode()
    assert door.request("DELETE", "/locks/x", body, CHUNKED, environ_extra=TO_THE_END).status == 204


@each_target
def test_a_chunked_body_the_server_does_not_end_is_read_or_411_but_never_taken_as_empty(door, method, target):
    door.granted("x", "alice")
    answer = door.request(method, target, GOOD, CHUNKED)
    if answer.status == 411:
        assert_problem(answer, "length-required")
    else:
        assert answer.status in (200, 204)


def test_a_body_without_a_length_that_nothing_announces_is_read_to_its_end_too(door):
    for content_length in (None, ""):
        answer = door.request("POST", "/locks/x", GOOD, {"Content-Length": content_length}, environ_extra=TO_THE_END)
        assert answer.status == 200


class Stream(io.BytesIO):
    """A body that comes in pieces of one size."""

    def __init__(self, size, piece):
        super().__init__()
        self.left = size
        self.piece = piece

    def read(self, size=-1):
        given = min(self.left, len(self.piece), self.left if size < 0 else size)
        self.left -= given
        return self.piece[:given]


def test_a_chunked_body_of_any_size_is_413_without_being_kept(door):
    stream = Stream(10**9, b" " * 65536)
    variables = {**TO_THE_END, "wsgi.input": stream}
    assert_problem(door.request("POST", "/locks/x", b"", CHUNKED, environ_extra=variables), "too-large")


def test_a_body_that_arrives_byte_by_byte_is_put_together(door):
    class Trickle(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 1) if size >= 0 else 1)

    for headers in (CHUNKED, {"Content-Length": str(len(GOOD))}):
        answer = door.request(
            "POST", "/locks/x", b"", headers, environ_extra={"wsgi.input": Trickle(GOOD), **TO_THE_END}
        )
        assert answer.status == 200


@each_target
def test_a_chunked_body_has_the_same_limit(door, method, target):
    refused(door, method, target, padded(LIMIT_BYTES + 1), "too-large", headers=CHUNKED, environ_extra=TO_THE_END)
    assert door.request("POST", "/locks/y", padded(LIMIT_BYTES), CHUNKED, environ_extra=TO_THE_END).status == 200


@each_target
def test_a_chunked_body_has_the_same_rules(door, method, target):
    for body in (b"{", b"[]", b'{"owner": "a", "owner": "a"}'):
        refused(door, method, target, body, "malformed-request", headers=CHUNKED, environ_extra=TO_THE_END)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_body_on_a_request_that_needs_none_is_not_looked_at(door, method):
    for body in (b"{", b"\xff" * 100_000):
        headers = {"Content-Type": FORM_TYPES[0]}
        assert door.request(method, "/locks", body, headers).status in (200, 204)
    assert door.site.stored() == []
