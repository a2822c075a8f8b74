"""No 500 for any input: arbitrary bytes at paths, queries, bodies and headers get an answer of the contract."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.http.shape import assert_shaped

generated = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])

BODY = b'{"owner": "alice", "ttl_seconds": 60}'
METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
# Bytes of a request line or header as CGI hands them over; servers refuse NUL, CR and LF themselves.
RAW = st.binary(max_size=60).map(lambda raw: raw.translate(None, b"\0\r\n").decode("latin-1"))
PIECES = st.lists(
    st.sampled_from(
        ["/", "//", "locks", "locks/", "/renew", "/release", "/health", "/problems/", "..", ".", "index.cgi"]
    )
    | st.sampled_from(
        ["%", "%2F", "%2f", "%00", "%25", "%ff", "%C3%A9", "\u00c3\u00a9", "\u00ff", "\x01", "\x7f", "\u00a0"]
    )
    | st.sampled_from(["?", "&", "=", "+", ";", "#", "*", "\\", '"', "<", "1", "a", "alice", "http:"])
    | st.sampled_from(["limit=", "cursor=", "prefix=", "owner="]),
    max_size=12,
).map("".join)
TARGETS = st.one_of(
    PIECES,
    PIECES.map(lambda pieces: "/locks/" + pieces),
    PIECES.map(lambda pieces: "/locks?" + pieces),
    RAW,
    RAW.map(lambda raw: "/locks/" + raw),
    RAW.map(lambda raw: "/locks?limit=" + raw),
    RAW.map(lambda raw: "/locks?cursor=" + raw + "&prefix=" + raw),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=20),
    st.text(st.characters(categories=["Cs"]), max_size=3),
    st.sampled_from(["alice", " alice ", "", 60, 1, 0, 604800, 604801, 2**63, 10**400]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.fixed_dictionaries({}, optional={"owner": VALUES, "ttl_seconds": VALUES, "x": VALUES})
BODIES = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [BODY, b"", b"{}", b"[", b"\xef\xbb\xbf" + BODY, b'"', b"nul", b"-", b'{"', b"1e999999999", b"\\ud800"]
    ),
    OBJECTS.map(lambda value: json.dumps(value).encode()),
    OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.tuples(OBJECTS, st.integers(0, 200), st.binary(max_size=3)).map(
        lambda parts: json.dumps(parts[0]).encode()[: parts[1]] + parts[2]
    ),
)
NUMBERS = ["", "0", "-1", "37", "38", "99999", "9" * 5000, "1e3"]
WORDS = [
    "chunked",
    "gzip, chunked",
    "identity",
    "DELETE",
    "GET",
    "null",
    "%s%n",
    "\t",
    "a" * 8000,
    "\u00ff\u00fe",
    "' OR 1=1",
]
MEDIA = [
    "text/html",
    "*/*",
    "text/html;q=1e400",
    "text/html;q=-1",
    "text/html;q=nan",
    ",,;;==",
    "q=",
    "application/json",
]
MEDIA += ["application/json;q=" + "9" * 99, "multipart/form-data"]
ORIGINS = ["https://app.example", "1.2.3.4", "::1", "fe80::1%eth0", "[::1]:80", "1.2.3.4, 5.6.7.8"]
KEYS = ["Basic \u00ff", "Bearer x", "Basic " + "=" * 9]
TOKENS = st.sampled_from([*NUMBERS, *WORDS, *MEDIA, *ORIGINS, *KEYS])
READ = [
    "Accept",
    "Content-Type",
    "Content-Length",
    "Transfer-Encoding",
    "X-Forwarded-For",
    "X-HTTP-Method-Override",
    "Origin",
]
READ += ["Authorization", "X-Authorization", "Access-Control-Request-Method", "Host"]
NOT_READ = [
    "Cookie",
    "Range",
    "Expect",
    "If-None-Match",
    "If-Modified-Since",
    "Accept-Encoding",
    "Accept-Language",
    "Proxy",
]
NOT_READ += [
    "User-Agent",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Prefix",
    "X-Original-URL",
    "X-Rewrite-URL",
]
HEADERS = st.dictionaries(st.sampled_from(READ) | st.sampled_from(NOT_READ), TOKENS | RAW, max_size=5)


@given(method=METHODS, target=TARGETS)
@example(method="OPTIONS", target="*")
@example(method="GET", target="")
@example(method="GET", target="http://")
@example(method="GET", target="://")
@example(method="CONNECT", target="locks.example:443")
@example(method="GET", target="/locks/" + "%" * 3000)
@generated
def test_any_target_gets_an_answer_of_the_contract(kept_door, method, target):
    assert_shaped(kept_door.request(method, target, BODY if method == "POST" else b""), method)


@given(
    method=st.sampled_from(["POST", "DELETE"]),
    action=st.sampled_from(["", "/renew", "/release", "?owner=alice"]),
    body=BODIES,
)
@generated
def test_any_body_gets_an_answer_of_the_contract(kept_door, method, action, body):
    assert_shaped(kept_door.request(method, "/locks/x" + action, body), method)


@given(
    method=METHODS,
    target=st.sampled_from(["/locks/x", "/locks", "/health", "/", "/nope", "/locks/x/renew"]),
    headers=HEADERS,
)
@generated
def test_any_headers_get_an_answer_of_the_contract(kept_door, method, target, headers):
    assert_shaped(kept_door.request(method, target, BODY if method in ("POST", "DELETE") else b"", headers), method)


@given(
    method=METHODS | RAW.filter(bool),
    target=TARGETS,
    body=BODIES,
    headers=HEADERS,
    remote_addr=st.none() | TOKENS | RAW,
    variables=st.dictionaries(
        st.sampled_from(
            ["QUERY_STRING", "REQUEST_URI", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "REMOTE_USER"]
        ),
        st.one_of(RAW, st.sampled_from(["", "a=b&a=b", "%ff", "/locks/x", "0", "99999999", "HTTP/0.9"])),
        max_size=3,
    ),
)
@generated
def test_anything_at_all_gets_an_answer_of_the_contract(
    kept_door, method, target, body, headers, remote_addr, variables
):
    answer = kept_door.request(method, target, body, headers, remote_addr, variables)
    assert_shaped(answer, method)


@given(forwarded_for=st.one_of(TOKENS, RAW), remote_addr=st.one_of(TOKENS, RAW))
@generated
def test_any_client_address_is_counted(limited_door, forwarded_for, remote_addr):
    answer = limited_door.request("GET", "/locks/x", b"", {"X-Forwarded-For": forwarded_for}, remote_addr)
    assert answer.status in (404, 429)
    assert_shaped(answer, "GET")
    assert answer.header("RateLimit").startswith('"read";r=')


@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=60))
@example(name="%2F")
@example(name="..")
@example(name="\x7f")
@generated
def test_any_name_is_either_a_literal_name_or_refused(kept_door, name):
    door = kept_door
    door.site.forget_rows()
    answer = door.acquire(name, "alice", 5)
    if any(character < " " or character == "\x7f" for character in name):
        assert answer.status == 422
        return
    assert answer.json()["lock"]["resource"] == name
    assert door.read(name).json() == answer.json()["lock"]
    assert name in [lock["resource"] for lock in door.list(prefix=name).json()["locks"]]
    assert door.delete(name, "alice").status == 204
    assert door.site.stored() == []


OWNER_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


@given(owner=st.text(max_size=40) | st.text(OWNER_WHITE_SPACE + "ab\x1c\x1f", max_size=8))
@generated
def test_any_owner_is_trimmed_and_kept_or_refused(kept_door, owner):
    door = kept_door
    door.site.forget_rows()
    trimmed = owner.strip(OWNER_WHITE_SPACE)
    answer = door.acquire("x", owner, 5)
    if not trimmed or any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in trimmed):
        assert answer.status == 422
        assert answer.fields() == {"owner"}
        return
    assert answer.json()["lock"]["owner"] == trimmed
    assert door.delete("x", owner).status == 204
