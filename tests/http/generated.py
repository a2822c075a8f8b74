"""Strategies for requests of every kind, sensible ones and others."""

from __future__ import annotations

import json

from hypothesis import strategies as st

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
VARIABLES = st.dictionaries(
    st.sampled_from(["QUERY_STRING", "REQUEST_URI", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "REMOTE_USER"]),
    RAW | st.sampled_from(["", "a=b&a=b", "%ff", "/locks/x", "0", "99999999", "HTTP/0.9"]),
    max_size=3,
)
