"""A request out of CGI variables: its path, parameters, body, and whether it asks for HTML."""

from __future__ import annotations

import contextlib
import io
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.errors import BodyTooLarge, LengthRequired, MalformedRequest
from app.request import BODY_MAX_BYTES, Request


def nothing(size: int) -> bytes:
    raise AssertionError("the body was read")


def request(**environ: str) -> Request:
    return Request(environ, nothing, True)


def located(script_name: str | None, uri: str | None, path_info: str | None = None) -> tuple[str, list[bytes]]:
    variables = {"SCRIPT_NAME": script_name, "REQUEST_URI": uri, "PATH_INFO": path_info}
    found = request(**{name: value for name, value in variables.items() if value is not None})
    return found.base, found.segments


# Where the service is, and what is asked of it

AT_ROOT, IN_FOLDER, IN_FOLDERS = "/index.cgi", "/kannuki/index.cgi", "/a/b/index.cgi"
IN_PROJECT, IN_PROJECT_FOLDER = "/public_html/index.cgi", "/kannuki/public_html/index.cgi"
OF_USER, WITH_SPACE = "/~alice/index.cgi", "/my locks/index.cgi"
WITH_JAPANESE = "/\u9375/index.cgi".encode().decode("latin-1")

PLACES = [
    # A domain's root
    (AT_ROOT, "/locks/x", "", [b"locks", b"x"]),
    (AT_ROOT, "/locks", "", [b"locks"]),
    (AT_ROOT, "/locks/", "", [b"locks", b""]),
    (AT_ROOT, "/locks/x/renew", "", [b"locks", b"x", b"renew"]),
    (AT_ROOT, "/", "", [b""]),
    (AT_ROOT, "/index.cgi", "", [b""]),
    (AT_ROOT, "/index.cgi/", "", [b""]),
    (AT_ROOT, "/index.cgi/locks/x", "", [b"locks", b"x"]),
    (AT_ROOT, "/index%2Ecgi/locks/x", "", [b"locks", b"x"]),
    (AT_ROOT, "/index.cgix/locks", "", [b"index.cgix", b"locks"]),
    (AT_ROOT, "/locks/index.cgi", "", [b"locks", b"index.cgi"]),
    # A sub-folder
    (IN_FOLDER, "/kannuki/locks/x", "/kannuki", [b"locks", b"x"]),
    (IN_FOLDER, "/kannuki/", "/kannuki", [b""]),
    (IN_FOLDER, "/kannuki", "/kannuki", [b""]),
    (IN_FOLDER, "/kannuki/index.cgi/locks/x", "/kannuki", [b"locks", b"x"]),
    (IN_FOLDER, "/kannuki/index.cgi", "/kannuki", [b""]),
    (IN_FOLDER, "/kannuki/kannuki/locks", "/kannuki", [b"kannuki", b"locks"]),
    (IN_FOLDER, "/k%61nnuki/locks/x", "/kannuki", [b"locks", b"x"]),
    (IN_FOLDERS, "/a/b/locks/x", "/a/b", [b"locks", b"x"]),
    (IN_FOLDERS, "/a/b/index.cgi/health", "/a/b", [b"health"]),
    # The whole project in the document root, or in a folder of it
    (IN_PROJECT, "/locks/x", "", [b"locks", b"x"]),
    (IN_PROJECT, "/", "", [b""]),
    (IN_PROJECT, "/public_html/locks/x", "/public_html", [b"locks", b"x"]),
    (IN_PROJECT, "/public_html/", "/public_html", [b""]),
    (IN_PROJECT, "/public_html/index.cgi/locks/x", "/public_html", [b"locks", b"x"]),
    (IN_PROJECT_FOLDER, "/kannuki/locks/x", "/kannuki", [b"locks", b"x"]),
    (IN_PROJECT_FOLDER, "/kannuki/public_html/locks/x", "/kannuki/public_html", [b"locks", b"x"]),
    (IN_PROJECT_FOLDER, "/kannuki/public_html/index.cgi/health", "/kannuki/public_html", [b"health"]),
    # A user's folder
    (OF_USER, "/~alice/locks/x", "/~alice", [b"locks", b"x"]),
    (OF_USER, "/%7Ealice/locks/x", "/~alice", [b"locks", b"x"]),
    (OF_USER, "/%7ealice/index.cgi/locks/x", "/~alice", [b"locks", b"x"]),
    # A folder whose name has to be encoded in an address
    (WITH_SPACE, "/my%20locks/locks/x", "/my%20locks", [b"locks", b"x"]),
    (WITH_SPACE, "/my%20locks/index.cgi/locks/x", "/my%20locks", [b"locks", b"x"]),
    (WITH_JAPANESE, "/%E9%8D%B5/locks/x", "/%E9%8D%B5", [b"locks", b"x"]),
    (WITH_JAPANESE, "/\u9375/locks/x".encode().decode("latin-1"), "/%E9%8D%B5", [b"locks", b"x"]),
    ('/a"<b>%/index.cgi', "/a%22%3Cb%3E%25/locks", "/a%22%3Cb%3E%25", [b"locks"]),
    # A script of another name, and WSGI, where the script's name is the folder
    ("/locks.cgi", "/locks.cgi/locks/x", "", [b"locks", b"x"]),
    ("/locks.cgi", "/locks/x", "", [b"locks", b"x"]),
    ("/kannuki", "/kannuki/locks/x", "/kannuki", [b"locks", b"x"]),
    ("/kannuki", "/kannuki", "/kannuki", [b""]),
    ("", "/locks/x", "", [b"locks", b"x"]),
    ("", "/", "", [b""]),
    (None, "/locks/x", "", [b"locks", b"x"]),
    # A rewriting that the variables do not show
    (IN_FOLDER, "/locks/x", "/kannuki", [b"locks", b"x"]),
    # Percent-decoding, once
    (AT_ROOT, "/locks/a%20b", "", [b"locks", b"a b"]),
    (AT_ROOT, "/locks/a+b", "", [b"locks", b"a+b"]),
    (AT_ROOT, "/locks/a%2Bb", "", [b"locks", b"a+b"]),
    (AT_ROOT, "/locks/a%252Fb", "", [b"locks", b"a%2Fb"]),
    (AT_ROOT, "/locks/%25", "", [b"locks", b"%"]),
    (AT_ROOT, "/locks/%3F%23", "", [b"locks", b"?#"]),
    (AT_ROOT, "/locks/%ff", "", [b"locks", b"\xff"]),
    (AT_ROOT, "/locks/%FE", "", [b"locks", b"\xfe"]),
    (AT_ROOT, "/locks/%00", "", [b"locks", b"\0"]),
    (AT_ROOT, "/locks/\xe9", "", [b"locks", b"\xe9"]),
    (AT_ROOT, "/%6C%6f%63%6B%73/x", "", [b"locks", b"x"]),
    # An encoded slash is part of its segment, and so never makes another address
    (AT_ROOT, "/locks/a%2Fb", "", [b"locks", b"a/b"]),
    (AT_ROOT, "/locks/a%2fb/renew", "", [b"locks", b"a/b", b"renew"]),
    (AT_ROOT, "/locks%2Fx", "", [b"locks/x"]),
    (AT_ROOT, "/%2Flocks", "", [b"/locks"]),
    (AT_ROOT, "/index.cgi%2Flocks", "", [b"index.cgi/locks"]),
    (IN_FOLDERS, "/a%2Fb/locks", "/a/b", [b"a/b", b"locks"]),
    (IN_FOLDER, "/kannuki%2Flocks/x", "/kannuki", [b"kannuki/locks", b"x"]),
    (AT_ROOT, "/locks//x", "", [b"locks", b"", b"x"]),
    (AT_ROOT, "//locks/x", "", [b"", b"locks", b"x"]),
    # Dots are names
    (AT_ROOT, "/locks/..", "", [b"locks", b".."]),
    (AT_ROOT, "/locks/%2e%2E", "", [b"locks", b".."]),
    (AT_ROOT, "/locks/./x", "", [b"locks", b".", b"x"]),
    # A percent sign that begins nothing is one
    (AT_ROOT, "/locks/100%", "", [b"locks", b"100%"]),
    (AT_ROOT, "/locks/%4", "", [b"locks", b"%4"]),
    (AT_ROOT, "/locks/%zz", "", [b"locks", b"%zz"]),
    (AT_ROOT, "/locks/%4g%41", "", [b"locks", b"%4gA"]),
    (AT_ROOT, "/locks/%%41", "", [b"locks", b"%A"]),
    (AT_ROOT, "/locks/%+1", "", [b"locks", b"%+1"]),
    (AT_ROOT, "/locks/% 1", "", [b"locks", b"% 1"]),
    (AT_ROOT, "/locks/%4/1", "", [b"locks", b"%4", b"1"]),
    # What does not belong to the path
    (AT_ROOT, "/locks/x?owner=a/b", "", [b"locks", b"x"]),
    (AT_ROOT, "/locks/x?", "", [b"locks", b"x"]),
    (AT_ROOT, "/?/locks/x", "", [b""]),
    (AT_ROOT, "/locks/x#part", "", [b"locks", b"x"]),
    (AT_ROOT, "/locks/x;a=b", "", [b"locks", b"x;a=b"]),
    # The absolute form
    (AT_ROOT, "http://locks.example/locks/x", "", [b"locks", b"x"]),
    (AT_ROOT, "https://locks.example:8443/locks/a%2520b?owner=a", "", [b"locks", b"a%20b"]),
    (AT_ROOT, "HTTP://locks.example/locks", "", [b"locks"]),
    (AT_ROOT, "http://locks.example", "", [b""]),
    (AT_ROOT, "http://locks.example/", "", [b""]),
    (AT_ROOT, "http://locks.example?/locks/x", "", [b""]),
    (AT_ROOT, "http://[2001:db8::1]/locks/x", "", [b"locks", b"x"]),
    (AT_ROOT, "http://locks.example//locks", "", [b"", b"locks"]),
    (IN_FOLDER, "http://locks.example/kannuki/locks/x", "/kannuki", [b"locks", b"x"]),
    (IN_FOLDER, "http://locks.example/kannuki/index.cgi/locks/x", "/kannuki", [b"locks", b"x"]),
]


@pytest.mark.parametrize(("script_name", "uri", "base", "segments"), PLACES, ids=lambda value: ascii(value)[:50])
def test_a_request_line_is_split_into_the_folder_and_the_segments_behind_it(script_name, uri, base, segments):
    assert located(script_name, uri) == (base, segments)


@pytest.mark.parametrize(("script_name", "uri", "base", "segments"), PLACES, ids=lambda value: ascii(value)[:50])
def test_what_a_server_makes_of_the_path_changes_nothing_where_it_gives_the_request_line(
    script_name, uri, base, segments
):
    for path_info in ("", "/", "/-", "/another/path", "relative"):
        assert located(script_name, uri, path_info) == (base, segments)


@pytest.mark.parametrize(
    ("script_name", "path_info", "base", "segments"),
    [
        (AT_ROOT, "/locks/x", "", [b"locks", b"x"]),
        (AT_ROOT, "", "", [b""]),
        (AT_ROOT, None, "", [b""]),
        (AT_ROOT, "/", "", [b""]),
        (IN_FOLDER, "/locks/x", "/kannuki", [b"locks", b"x"]),
        (IN_PROJECT_FOLDER, "/locks/x", "/kannuki/public_html", [b"locks", b"x"]),
        (WITH_SPACE, "/locks/x", "/my%20locks", [b"locks", b"x"]),
        ("", "/locks/x", "", [b"locks", b"x"]),
        (None, "/locks/x", "", [b"locks", b"x"]),
        # It is decoded already, and never a second time.
        (AT_ROOT, "/locks/a%20b", "", [b"locks", b"a%20b"]),
        (AT_ROOT, "/locks/a%2Fb", "", [b"locks", b"a%2Fb"]),
        (AT_ROOT, "/locks/a/b", "", [b"locks", b"a", b"b"]),
        (AT_ROOT, "/locks/a?b#c", "", [b"locks", b"a?b#c"]),
        (AT_ROOT, "/locks/\xe9\x8d\xb5", "", [b"locks", b"\xe9\x8d\xb5"]),
    ],
)
@pytest.mark.parametrize("uri", [None, "", "*", "locks.example:443", "locks/x", "1http://h/x"])
def test_without_a_path_in_the_request_line_the_path_info_counts(script_name, path_info, uri, base, segments):
    assert located(script_name, uri, path_info) == (base, segments)


@pytest.mark.parametrize("uri", [None, ""])
def test_a_raw_path_under_another_name_counts_where_there_is_no_request_line(uri):
    """Some WSGI servers give RAW_URI in place of REQUEST_URI."""
    environ = {"SCRIPT_NAME": "/kannuki", "RAW_URI": "/kannuki/locks/a%2Fb?c", "PATH_INFO": "/locks/a/b"}
    found = request(**environ, **({} if uri is None else {"REQUEST_URI": uri}))
    assert (found.base, found.segments) == ("/kannuki", [b"locks", b"a/b"])
    found = request(**environ, REQUEST_URI="/kannuki/locks/x")
    assert found.segments == [b"locks", b"x"]


names = st.binary(max_size=12) | st.sampled_from([b"", b".", b"..", b"%", b"%41", b"a/b", b"/"])


@given(
    st.lists(names, min_size=1, max_size=4),
    st.sampled_from([AT_ROOT, IN_FOLDER, IN_PROJECT, IN_PROJECT_FOLDER, OF_USER, WITH_SPACE]),
    st.sampled_from(["", "~!$&'()*+,;=:@", "%s"]),
    st.sampled_from(["", "?a=b", "?"]),
)
def test_any_names_arrive_as_they_were_encoded(segments, script_name, safe, query):
    folder = script_name.rpartition("/")[0].encode("latin-1")
    path = folder.decode() + "/" + "/".join(quote(segment, safe=safe.replace("%s", "")) for segment in segments)
    found = request(SCRIPT_NAME=script_name, REQUEST_URI=path + query)
    assert found.segments == segments
    assert found.base == quote(folder, safe="/~")


anything = st.text(max_size=30) | st.text("/%.?#:&=;,+ 4fa*q", max_size=30)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            [
                "SCRIPT_NAME",
                "REQUEST_URI",
                "PATH_INFO",
                "QUERY_STRING",
                "REQUEST_METHOD",
                "HTTP_ACCEPT",
                "CONTENT_TYPE",
            ],
            anything,
        ),
    )
)
def test_no_variable_of_a_request_makes_reading_it_fail(environ):
    found = request(**environ)
    assert found.segments
    assert found.base == "" or found.base.startswith("/")
    assert found.base.isascii()
    assert found.prefers_html() in (True, False)
    assert found.has_form_type() in (True, False)
    with contextlib.suppress(MalformedRequest):
        found.parameters("a", "q")


# Method and headers


@pytest.mark.parametrize(
    ("method", "override", "seen"),
    [
        ("GET", "", "GET"),
        ("POST", "", "POST"),
        ("DELETE", "", "DELETE"),
        ("POST", "DELETE", "DELETE"),
        ("POST", " delete ", "DELETE"),
        ("GET", "DELETE", "GET"),
        ("HEAD", "DELETE", "HEAD"),
        ("OPTIONS", "DELETE", "OPTIONS"),
        ("PUT", "DELETE", "PUT"),
        ("POST", "GET", "POST"),
        ("POST", "PUT", "POST"),
        ("POST", "DELETE, GET", "POST"),
        ("POST", "X-DELETE", "POST"),
        ("DELETE", "POST", "DELETE"),
        ("post", "DELETE", "post"),
        ("BREW", "", "BREW"),
    ],
)
def test_only_a_post_can_say_that_it_is_a_delete(method, override, seen):
    assert request(REQUEST_METHOD=method, HTTP_X_HTTP_METHOD_OVERRIDE=override).method == seen


def test_a_header_is_found_by_its_name_and_is_empty_when_absent():
    found = request(CONTENT_TYPE="a", CONTENT_LENGTH="1", HTTP_X_FORWARDED_FOR="b", HTTP_CONTENT_TYPE="c", ACCEPT="d")
    assert found.header("Content-Type") == "a"
    assert found.header("content-length") == "1"
    assert found.header("X-Forwarded-For") == "b"
    assert found.header("Accept") == ""


def test_the_peers_address_is_empty_when_the_server_does_not_tell_it():
    assert request(REMOTE_ADDR="192.0.2.1").remote_addr == "192.0.2.1"
    assert request(HTTP_REMOTE_ADDR="192.0.2.1").remote_addr == ""


@pytest.mark.parametrize(
    ("content_type", "form"),
    [
        ("application/x-www-form-urlencoded", True),
        ("application/x-www-form-urlencoded; charset=UTF-8", True),
        ("Application/X-WWW-Form-URLEncoded ;a=b", True),
        (" multipart/form-data; boundary=application/json", True),
        ("multipart/form-data", True),
        ("", False),
        ("application/json", False),
        ("text/plain", False),
        ("text/plain; a=multipart/form-data", False),
        ("multipart/mixed", False),
        ("application/x-www-form-urlencodedx", False),
        ("nonsense", False),
    ],
)
def test_form_types_are_told_from_others(content_type, form):
    assert request(CONTENT_TYPE=content_type).has_form_type() is form


# Parameters


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("", {}),
        ("owner=a", {"owner": b"a"}),
        ("owner=a&limit=5", {"owner": b"a", "limit": b"5"}),
        ("limit=5&owner=a", {"owner": b"a", "limit": b"5"}),
        ("owner=", {"owner": b""}),
        ("owner", {"owner": b""}),
        ("owner=a=b", {"owner": b"a=b"}),
        ("owner=a+b", {"owner": b"a+b"}),
        ("owner=a%2Bb", {"owner": b"a+b"}),
        ("owner=a%20b", {"owner": b"a b"}),
        ("owner=a%26b%3Dc", {"owner": b"a&b=c"}),
        ("owner=a;limit=5", {"owner": b"a;limit=5"}),
        ("owner=%2541", {"owner": b"%41"}),
        ("owner=%", {"owner": b"%"}),
        ("owner=%4", {"owner": b"%4"}),
        ("owner=%zz%41", {"owner": b"%zzA"}),
        ("owner=%ff", {"owner": b"\xff"}),
        ("owner=\xe9", {"owner": b"\xe9"}),
        ("owner=%00", {"owner": b"\0"}),
        ("%6Fwner=a", {"owner": b"a"}),
        ("owner=a?b/c#d", {"owner": b"a?b/c#d"}),
        # Names are compared exactly.
        ("Owner=a", {}),
        ("owner =a", {}),
        ("%EF%BB%BFowner=a", {}),
        ("Owner=a&owner=b", {"owner": b"b"}),
        # Nothing between two ampersands is no parameter, and what nobody asked for may be there as it likes.
        ("&", {}),
        ("&&owner=a&&&limit=5&&", {"owner": b"a", "limit": b"5"}),
        ("=a&=b&owner=a", {"owner": b"a"}),
        ("x=1&owner=a&x=2&x", {"owner": b"a"}),
        ("prefix=a&prefix=b", {}),
    ],
)
def test_the_named_parameters_of_a_query_are_read(query, parameters):
    assert request(QUERY_STRING=query).parameters("owner", "limit") == parameters


def test_a_request_without_a_query_has_no_parameters():
    assert request().parameters("owner") == {}


@pytest.mark.parametrize(
    "query",
    [
        "owner=a&owner=b",
        "owner=a&owner=a",
        "owner&owner",
        "owner=&owner=a",
        "x=1&owner=a&y=2&%6fwner=b",
        "owner=a&&owner",
    ],
)
def test_a_named_parameter_that_is_there_twice_is_refused(query):
    with pytest.raises(MalformedRequest):
        request(QUERY_STRING=query).parameters("limit", "owner")


# The body


class Client:
    """The sending side of a body: gives pieces, then its end, and counts what was taken."""

    def __init__(self, *pieces: bytes, breaks: bool = False) -> None:
        self._pieces = list(pieces)
        self._breaks = breaks
        self.taken = 0

    def read(self, size: int) -> bytes:
        assert size > 0
        if not self._pieces:
            if self._breaks:
                raise ConnectionResetError
            return b""
        piece = self._pieces.pop(0)
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
            piece = piece[:size]
        self.taken += len(piece)
        return piece


def sent(client: Client, ends_by_itself: bool = True, **environ: str) -> bytes:
    return Request(environ, client.read, ends_by_itself).body()


@pytest.mark.parametrize("pieces", [[b"{}"], [b"{", b"}"], [b"{}", b"more of the next"], [b"{}more"]])
@pytest.mark.parametrize("length", ["2", " 2 ", "02", "0000000000000002"])
def test_a_body_is_as_long_as_announced(pieces, length):
    client = Client(*pieces)
    assert sent(client, CONTENT_LENGTH=length) == b"{}"
    assert client.taken == 2


def test_leading_zeros_of_a_length_count_for_nothing_however_many_they_are():
    assert sent(Client(b"{}"), CONTENT_LENGTH="0" * 30 + "2") == b"{}"


def test_an_announced_length_of_nothing_reads_nothing():
    client = Client(b"{}")
    assert sent(client, CONTENT_LENGTH="0") == b""
    assert client.taken == 0


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("pieces", [[], [b"{"], [b"{}"], [b"{", b"}", b" "]])
def test_a_body_that_was_cut_off_is_refused_even_where_it_is_complete_json(pieces, breaks):
    with pytest.raises(MalformedRequest):
        sent(Client(*pieces, breaks=breaks), CONTENT_LENGTH="4")


@pytest.mark.parametrize(
    "length", ["-1", "+2", "2.0", "0x2", "2, 2", "2 2", "two", "1e1", "\u0662", "\xb2", "2\0", "NaN"], ids=ascii
)
def test_a_length_that_is_no_number_is_refused(length):
    client = Client(b"{}" * 100)
    with pytest.raises(MalformedRequest):
        sent(client, CONTENT_LENGTH=length)
    assert client.taken == 0


def test_the_longest_body_is_read():
    assert sent(Client(b"x" * BODY_MAX_BYTES), CONTENT_LENGTH=str(BODY_MAX_BYTES)) == b"x" * 65_536


@pytest.mark.parametrize(
    "length", [str(BODY_MAX_BYTES + 1), "1" + "0" * 19, "9" * 20, "9" * 21, "9" * 5000, "1" + "0" * 40]
)
def test_a_length_beyond_the_limit_is_refused_without_reading(length):
    client = Client(b"x" * 100)
    with pytest.raises(BodyTooLarge):
        sent(client, CONTENT_LENGTH=length)
    assert client.taken == 0


@pytest.mark.parametrize("environ", [{}, {"CONTENT_LENGTH": ""}, {"CONTENT_LENGTH": " "}])
@pytest.mark.parametrize("transfer_encoding", ["", "chunked", "Chunked"])
def test_a_body_of_unknown_length_is_read_to_its_end(environ, transfer_encoding):
    for pieces in ([], [b"{}"], [b"{", b"}"], [b"x" * 1000] * 65, [b"x" * BODY_MAX_BYTES]):
        client = Client(*pieces)
        assert sent(client, HTTP_TRANSFER_ENCODING=transfer_encoding, **environ) == b"".join(pieces)


@pytest.mark.parametrize("pieces", [[b"x" * (BODY_MAX_BYTES + 1)], [b"x" * 10_000_000], [b"x" * 1000] * 10_000])
def test_a_body_of_unknown_length_beyond_the_limit_is_not_read_to_its_end(pieces):
    client = Client(*pieces)
    with pytest.raises(BodyTooLarge):
        sent(client, HTTP_TRANSFER_ENCODING="chunked")
    assert client.taken == BODY_MAX_BYTES + 1


@pytest.mark.parametrize("transfer_encoding", ["chunked", "gzip, chunked", "identity"])
def test_a_body_whose_end_nobody_can_see_is_refused_and_not_taken_for_empty(transfer_encoding):
    client = Client(b"{}")
    with pytest.raises(LengthRequired):
        sent(client, ends_by_itself=False, HTTP_TRANSFER_ENCODING=transfer_encoding)
    assert client.taken == 0


def test_without_any_sign_of_a_body_it_is_empty():
    client = Client(b"of the next request")
    assert sent(client, ends_by_itself=False) == b""
    assert client.taken == 0


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), max_size=10))
def test_a_body_is_the_same_in_whatever_pieces_it_arrives(body, sizes):
    stream = io.BytesIO(body)
    pieces = [piece for piece in [stream.read(size) for size in sizes] + [stream.read()] if piece]
    assert sent(Client(*pieces), CONTENT_LENGTH=str(len(body))) == body
    assert sent(Client(*pieces)) == body


# HTML or JSON

BROWSERS = {
    "Firefox 132": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Firefox 128": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,"
    "image/svg+xml,*/*;q=0.8",
    "Chrome": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7",
    "Safari": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Safari 4": "application/xml,application/xhtml+xml,text/html;q=0.9,text/plain;q=0.8,image/png,*/*;q=0.5",
    "Opera 12": "text/html, application/xml;q=0.9, application/xhtml+xml, image/png, image/webp, image/jpeg, "
    "image/gif, image/x-xbitmap, */*;q=0.1",
    "Lynx": "text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01",
    "w3m": "text/html, text/*;q=0.5, image/*",
    "jQuery asking for HTML": "text/html, */*; q=0.01",
}
MACHINES = {
    "none": "",
    "curl, requests, fetch()": "*/*",
    "axios": "application/json, text/plain, */*",
    "jQuery": "application/json, text/javascript, */*; q=0.01",
    "jQuery without a type": "*/*",
    "a careful client": "application/json",
    "one that knows of problems": "application/problem+json, application/json",
    "an image in a page": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
    "a script in a page": "*/*;q=0.1",
    "Go, for metrics": "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "a feed reader": "application/rss+xml, application/atom+xml, application/xhtml+xml",
}
HTML_FIRST = [
    "text/html",
    "TEXT/HTML",
    " text/html ",
    "text/html;level=1",
    "text/html;q=0.001",
    "text/html; q=1.000 , application/json;q=0.999",
    "text/html;Q=1,application/json;Q=0.5",
    "text/html ; q = 0.5, application/json ; q = 0.4",
    "application/json;q=0.1, text/html;q=0.2",
    "application/json;q=0, text/html;q=0.1",
    "application/json;q=0.1,*/*;q=0.9,text/html;q=0.2,application/problem+json;q=0.1",
    "text/html,application/*;q=0.9",
    "*/*;q=0.1, text/html",
    "text/*",
    "text/*;q=0.5, application/*;q=0.4",
    ",,text/html,,",
    ";q=1,text/html",
    "text/html;q=1.",
    "text/html, application/json;q=nonsense",
]
JSON_FIRST_OR_EQUAL = [
    "text/html;q=0",
    "text/html;q=0.000",
    "text/html, application/json",
    "text/html, application/problem+json",
    "text/html;q=0.5, application/json;q=0.5",
    "text/html;q=0.5, application/problem+json;q=0.6",
    "text/html;q=0.9, application/*",
    "text/html;q=0.9, */*",
    "text/html, */*",
    "text/*, */*",
    "text/*, text/html;q=0",
    "text/*;q=0.9, application/json;q=0.95",
    # The most specific range decides, not the highest weight.
    "text/html;q=0.1, text/*;q=1, application/json;q=0.5",
    "*/*;q=1, text/html;q=0.1",
    "text/html;q=5, application/json",
    # Weights that are none
    "text/html;q=",
    "text/html;q",
    "text/html;q=nonsense",
    "text/html;q=nan",
    "text/html;q=inf",
    "text/html;q=1e0",
    "text/html;q=-1",
    "text/html;q=+1",
    "text/html;q=.",
    "text/html;q=0.1.1",
    "text/html;q=1.0000",
    "text/html;q=\u0661",
    "text/html;q=\xb2",
    # Types that are others
    "text/htmlx",
    "xtext/html",
    "html",
    "*/html",
    "*",
    "application/xhtml+xml",
    "text/plain",
    "image/*",
    "text/html/*",
    "text / html",
]


@pytest.mark.parametrize("accept", [*BROWSERS.values(), *HTML_FIRST], ids=lambda accept: ascii(accept)[:60])
def test_a_browser_and_who_asks_like_one_gets_html(accept):
    assert request(HTTP_ACCEPT=accept).prefers_html() is True


@pytest.mark.parametrize("accept", [*MACHINES.values(), *JSON_FIRST_OR_EQUAL], ids=lambda accept: ascii(accept)[:60])
def test_whoever_does_not_ask_for_html_before_json_gets_json(accept):
    assert request(HTTP_ACCEPT=accept).prefers_html() is False


weights = st.integers(0, 1000)


@given(html=weights, json=weights, any_type=weights, upper=st.booleans(), order=st.randoms(use_true_random=False))
@example(html=1000, json=1000, any_type=0, upper=False, order=None)
def test_the_higher_weight_wins_in_any_order(html, json, any_type, upper, order):
    items = [
        f"text/html;q={html / 1000:.3f}",
        f"application/json; q={json / 1000:.3f}",
        f"application/problem+json;q={json / 1000:.3f}",
        f"*/*;q={any_type / 1000:.3f}",
    ]
    if order:
        order.shuffle(items)
    accept = ", ".join(items)
    assert request(HTTP_ACCEPT=accept.upper() if upper else accept).prefers_html() is (html > json)
