"""What the server makes of an address, seen by a script that tells what it was given."""

from __future__ import annotations

import pytest

from tests.hosting import machine

#: sites of the probe: the site, the folder on it, and what SCRIPT_NAME is there
PLACES = [
    ("probe.test", "", "/index.cgi"),
    ("folder.test", "/probe", "/probe/index.cgi"),
    ("probe-whole.test", "", "/public_html/index.cgi"),
    ("above.test", "/probe", "/probe/public_html/index.cgi"),
    ("above.test", "/probe/public_html", "/probe/public_html/index.cgi"),
]


@pytest.fixture(params=PLACES, ids=lambda place: place[0] + place[1])
def place(request, hosting):
    host, folder, script = request.param
    return hosting.client(host, folder), script


TARGETS = [
    b"/",
    b"/locks",
    b"/locks?prefix=a%2Fb&limit=1",
    b"/locks/plain",
    b"/locks/plain/renew",
    b"/locks/%20",
    b"/locks/a+b",
    b"/locks/%C3%A9",
    "/locks/閂".encode(),
    b"/locks/a;b=c",
    b"/locks/'%22",
    b"/locks/100%25",
    b"/locks/%253F",
    b"/locks/a%3Fb",
    b"/locks/a%23b",
    b"/locks/a%252Fb",
    b"/locks/%25252e",
    b"/locks/a%5Cb",
    b"/locks/%0a",
    b"/locks/%0D%0Ax",
    b"/locks/%ff",
    b"/locks//twice",
    b"/locks/.htaccess",
    b"/locks/index.cgi",
    b"/locks/robots.txt",
    b"/.htaccess",
    b"/.git/config",
    b"/index.cgix",
    b"/index.html",
    b"/no/such/page",
]


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_every_address_reaches_the_script_as_it_was_sent(place, target):
    client, script = place
    answer = client.ask("GET", target)
    assert answer.status == 200, answer
    given = answer.json()
    assert given["REQUEST_URI"].encode("utf-8", "surrogateescape") == client.base.encode() + target
    assert given["SCRIPT_NAME"] == script
    assert given["PATH_INFO"] == "/-"


@pytest.mark.parametrize("target", [b"/index.cgi", b"/index.cgi/", b"/index.cgi/locks/x", b"/index.cgi/locks/100%25"])
def test_the_script_called_by_name_gets_the_path_behind_it(probe, target):
    given = probe.ask("GET", target).json()
    assert given["SCRIPT_NAME"] == "/index.cgi"
    assert given["REQUEST_URI"].encode() == target
    assert given.get("PATH_INFO", "").encode() == target.replace(b"%25", b"%")[len(b"/index.cgi") :]


def test_an_absolute_target_reaches_the_script_as_it_was_sent(probe):
    given = probe.ask("GET", "http://probe.test/locks/a%25b").json()
    assert given["REQUEST_URI"] == "http://probe.test/locks/a%25b"
    assert given["PATH_INFO"] == "/-"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_the_authorization_header_reaches_the_script(place, method):
    client, script = place
    for target in (f"{client.base}/locks/x", f"{client.base}/", f"{script}/locks/x", script):
        with client.connect() as connection:
            answer = connection.ask(method, target, headers={"Authorization": "Bearer a b=="})
        assert answer.json()["HTTP_AUTHORIZATION"] == "Bearer a b==", target


def test_an_absent_authorization_header_is_empty(place):
    client, _ = place
    assert not client.ask("GET", "/locks/x").json().get("HTTP_AUTHORIZATION")


def test_the_mirror_of_the_authorization_header_reaches_the_script(probe):
    assert probe.ask("GET", "/locks/x", headers={"X-Authorization": "Bearer x"}).json()["HTTP_X_AUTHORIZATION"]


def test_robots_txt_is_served_as_a_file(place):
    client, _ = place
    answer = client.ask("GET", "/robots.txt")
    assert answer.status == 200
    assert answer.body == b"User-agent: *\nDisallow: /\n"


def test_the_script_runs_as_the_owner_of_the_site(probe):
    assert probe.ask("GET", "/").json()["USER_ID"] == machine.site_ids()[0]
