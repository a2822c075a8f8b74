"""CONTRACT 3 and 5, HOSTING "URLs": which name a request target stands for."""

from __future__ import annotations

import pytest

from tests.http.shape import assert_problem

BODY = {"owner": "alice", "ttl_seconds": 60}

NAMES_BY_TARGET = [
    ("/locks/a", "a"),
    ("/locks/payment:42", "payment:42"),
    ("/locks/a%20b", "a b"),
    ("/locks/%20a", " a"),
    ("/locks/a%20", "a "),
    ("/locks/%20", " "),
    ("/locks/a+b", "a+b"),
    ("/locks/a%2Bb", "a+b"),
    ("/locks/%61+b", "a+b"),
    ("/locks/a%2bb", "a+b"),
    ("/locks/a%25b", "a%b"),
    ("/locks/a%2525b", "a%25b"),
    ("/locks/a%252Fb", "a%2Fb"),
    ("/locks/a%252fb", "a%2fb"),
    ("/locks/a%253Fb", "a%3Fb"),
    ("/locks/a%2500b", "a%00b"),
    ("/locks/a%3Fb", "a?b"),
    ("/locks/a%23b", "a#b"),
    ("/locks/a;b", "a;b"),
    ("/locks/a;b=c,d", "a;b=c,d"),
    ("/locks/a%3Bb", "a;b"),
    ("/locks/'a'", "'a'"),
    ("/locks/%22a%22", '"a"'),
    ('/locks/"a"', '"a"'),
    ("/locks/a%5Cb", "a\\b"),
    ("/locks/a\\b", "a\\b"),
    ("/locks/a&b=c", "a&b=c"),
    ("/locks/a=b", "a=b"),
    ("/locks/a@b!$()*,~", "a@b!$()*,~"),
    ("/locks/a:b", "a:b"),
    ("/locks/http:a", "http:a"),
    ("/locks/..", ".."),
    ("/locks/.", "."),
    ("/locks/...", "..."),
    ("/locks/%2e%2e", ".."),
    ("/locks/%2E", "."),
    ("/locks/.htaccess", ".htaccess"),
    ("/locks/renew", "renew"),
    ("/locks/release", "release"),
    ("/locks/locks", "locks"),
    ("/locks/health", "health"),
    ("/locks/null", "null"),
    ("/locks/%C3%A9", "é"),
    ("/locks/%c3%a9", "é"),
    ("/locks/\u00c3\u00a9", "é"),
    ("/locks/e%CC%81", "e\u0301"),
    ("/locks/%F0%9F%94%92", "\U0001f512"),
    ("/locks/\u00f0\u009f\u0094\u0092", "\U0001f512"),
    ("/locks/%E9%96%82", "閂"),
    ("/locks/%C2%80", "\u0080"),
    ("/locks/%C2%A0", "\u00a0"),
    ("/locks/%EF%BB%BF", "\ufeff"),
    ("/locks/%EF%BF%BF", "\uffff"),
    ("/locks/%F4%8F%BF%BF", "\U0010ffff"),
    ("/locks/%61%62", "ab"),
    ("/locks/a?b=c", "a"),
    ("/locks/a?", "a"),
    ("/locks/a?x=/renew", "a"),
    ("/%6Cocks/a", "a"),
    ("http://locks.example/locks/a", "a"),
    ("http://locks.example:8080/locks/a%2520b?x=1", "a%20b"),
    ("HTTPS://user@elsewhere.example/locks/a", "a"),
]


@pytest.mark.parametrize(("target", "name"), NAMES_BY_TARGET, ids=[ascii(target) for target, _ in NAMES_BY_TARGET])
def test_the_name_is_the_path_segment_of_the_request_uri_decoded_once(door, target, name):
    answer = door.request("POST", target, BODY)
    assert answer.status == 200
    assert answer.json()["lock"]["resource"] == name
    assert [row[1] for row in door.site.stored()] == [name]
    assert door.read(name).json() == answer.json()["lock"]
    assert door.renew(name).json()["resource"] == name
    assert door.release(name).status == 204


@pytest.mark.parametrize("character", ["a", "é", "閂", "\U0001f512", "%", " "], ids=ascii)
def test_a_resource_of_255_characters_is_accepted_and_one_of_256_is_refused(door, character):
    assert door.acquire(character * 255).json()["lock"]["resource"] == character * 255
    before = door.site.stored()
    for answer in (door.acquire(character * 256), door.read(character * 256), door.renew(character * 256)):
        assert_problem(answer, "validation-failed")
        assert answer.faults() == {("resource", "too_long")}
    assert door.delete(character * 256).status == 422
    assert door.site.stored() == before


@pytest.mark.parametrize("byte", [*range(0x20), 0x7F], ids="%{0:02x}".format)
def test_a_control_character_in_a_resource_is_refused(door, byte):
    for target in (f"/locks/%{byte:02x}", f"/locks/a%{byte:02X}b"):
        answer = door.request("POST", target, BODY)
        assert_problem(answer, "validation-failed")
        assert answer.faults() == {("resource", "control_character")}
    assert door.site.stored() == []


INVALID_UTF_8 = [
    "%ff",
    "%fe",
    "%80",
    "a%C3",
    "%C3%28",
    "%C0%AF",
    "%C0%80",
    "%E0%80%AF",
    "%ED%A0%80",
    "%ED%BF%BF",
    "%ED%A0%BD%ED%B4%92",
    "%F4%90%80%80",
    "%F8%88%80%80%80",
    "a%E9b",
    "\u00ff",
    "\u00e9",
]


@pytest.mark.parametrize("name", INVALID_UTF_8, ids=ascii)
def test_a_resource_that_is_no_utf_8_is_refused_in_every_operation(door, name):
    for answer in (
        door.request("POST", f"/locks/{name}", BODY),
        door.request("GET", f"/locks/{name}"),
        door.request("DELETE", f"/locks/{name}", {"owner": "alice"}),
        door.request("POST", f"/locks/{name}/renew", BODY),
        door.request("POST", f"/locks/{name}/release", {"owner": "alice"}),
    ):
        assert_problem(answer, "validation-failed")
        assert answer.faults() == {("resource", "invalid_unicode")}
    assert door.site.stored() == []


def test_an_empty_resource_is_refused(door):
    answer = door.request("POST", "/locks/", BODY)
    assert_problem(answer, "validation-failed")
    assert answer.faults() == {("resource", "empty")}
    assert door.site.stored() == []


OTHER_ROUTES = [
    "/locks/a/b",
    "/locks/a/",
    "/locks/a//",
    "/locks//a",
    "/locks///",
    "/locks/a/renew/",
    "/locks/a/renew/x",
    "/locks/a//renew",
    "/locks/a/Renew",
    "/locks/a/release/now",
    "/locks/a%2Fb",
    "/locks/a%2fb",
    "/locks/a%2Frenew",
    "/locks/a%2frelease",
    "/locks%2Fa",
    "/locks/%2F",
    "/locks/a/../b",
    "/locks/../locks/a",
    "/locks/%2e%2e/a",
    "/locks/a/%2e%2e",
    "/x/../locks/a",
    "//locks/a",
    "/./locks/a",
    "/LOCKS/a",
    "/lock/a",
    "/locksa",
    "/locks%20/a",
    "/nope",
    "/health/",
    "/healthz",
    "/problems/..%2f..%2fvar",
    "/var/locks.sqlite3",
    "/index.cgi.bak",
    "/%00",
    "/%ff",
]


@pytest.mark.parametrize("target", OTHER_ROUTES, ids=ascii)
def test_a_further_slash_or_any_other_path_is_another_route_and_touches_no_lock(door, target):
    door.granted("a", "alice")
    before = door.site.stored()
    for method, body in (("GET", b""), ("POST", BODY), ("DELETE", {"owner": "alice"}), ("PUT", b"")):
        assert_problem(door.request(method, target, body), "not-found", "No such page.")
    assert door.site.stored() == before


@pytest.mark.parametrize("name", ["a%2", "a%", "%", "%zz", "a%G0", "%u0041", "a%-1b", "%%41"])
def test_a_broken_percent_escape_never_becomes_another_name(door, name):
    door.granted("a", "bob")
    door.granted("A", "bob")
    answer = door.request("POST", f"/locks/{name}", BODY)
    if answer.status == 200:
        assert answer.json()["lock"]["resource"] == name.replace("%41", "A")
    else:
        assert answer.status in (400, 422)
        assert len(door.site.stored()) == 2


def test_names_are_compared_without_case_folding_or_normalisation(door):
    names = ["x", "X", "\u00e9", "e\u0301", "ﬁ", "fi", "Å", "\u212b", "ß", "SS", "x ", " x", "x\u200b", "İ", "i"]
    tokens = {door.granted(name, f"owner of {name}")["fencing_token"] for name in names}
    assert len(tokens) == len(names)
    assert {row[1] for row in door.site.stored()} == set(names)


def test_a_name_of_all_acceptable_ascii_characters_survives_as_it_is(door):
    name = "".join(map(chr, range(0x20, 0x7F))).replace("/", "")
    assert door.granted(name)["resource"] == name
    assert door.list().json()["locks"][0]["resource"] == name


@pytest.mark.parametrize(
    ("request_uri", "variables"),
    [
        ("/locks/a%2525b", {"SCRIPT_NAME": "/index.cgi", "PATH_INFO": "/-"}),
        ("/index.cgi/locks/a%2525b", {"SCRIPT_NAME": "/index.cgi", "PATH_INFO": "/locks/a%25b"}),
        ("/sub/locks/a%2525b", {"SCRIPT_NAME": "/sub/index.cgi", "PATH_INFO": "/-"}),
        ("/sub/index.cgi/locks/a%2525b", {"SCRIPT_NAME": "/sub/index.cgi", "PATH_INFO": "/locks/a%25b"}),
        ("/a/b%20c/locks/a%2525b", {"SCRIPT_NAME": "/a/b c/index.cgi", "PATH_INFO": "/-"}),
        ("/sub/locks/a%2525b", {"SCRIPT_NAME": "/sub", "PATH_INFO": "/locks/a%25b"}),
        ("http://h/sub/locks/a%2525b", {"SCRIPT_NAME": "/sub/index.cgi", "PATH_INFO": "/-"}),
        ("/locks/a%2525b", {"SCRIPT_NAME": "/public_html/index.cgi", "PATH_INFO": "/-"}),
        ("/locks/locks/a%2525b", {"SCRIPT_NAME": "/locks/index.cgi", "PATH_INFO": "/-"}),
    ],
)
def test_it_works_at_the_root_in_a_sub_folder_and_called_directly(door, request_uri, variables):
    answer = door.request("POST", request_uri, BODY, environ_extra=variables)
    assert answer.status == 200
    assert answer.json()["lock"]["resource"] == "a%25b"
    assert door.request("GET", request_uri, environ_extra=variables).status == 200


@pytest.mark.parametrize(
    ("request_uri", "script_name", "base"),
    [
        ("/nope", "/index.cgi", ""),
        ("/index.cgi/nope", "/index.cgi", ""),
        ("/sub/nope", "/sub/index.cgi", "/sub"),
        ("/sub/index.cgi/nope", "/sub/index.cgi", "/sub"),
        ("/nope", "/public_html/index.cgi", ""),
    ],
)
def test_the_type_of_a_problem_is_under_the_folder_of_the_service_and_never_names_the_script(
    door, request_uri, script_name, base
):
    answer = door.request("GET", request_uri, environ_extra={"SCRIPT_NAME": script_name, "PATH_INFO": "/-"})
    assert_problem(answer, "not-found", "No such page.")
    assert answer.json()["type"] == f"{base}/problems/not-found"


@pytest.mark.parametrize("name", ["a", "a b", "\u00c3\u00a9", "a%25b", "a+b", ".."])
def test_a_server_that_tells_no_request_uri_is_served_by_the_decoded_path(door, name):
    variables = {"REQUEST_URI": None, "PATH_INFO": f"/locks/{name}"}
    answer = door.request("POST", "/", BODY, environ_extra=variables)
    assert answer.json()["lock"]["resource"] == name.encode("latin-1").decode()
    variables["PATH_INFO"] = f"/locks/{name}/renew"
    assert door.request("POST", "/", BODY, environ_extra=variables).status == 200
