"""A request as the rules see it: method, path, parameters, headers and body, out of CGI variables (RFC 3875).

WSGI has the same variables, so both doors make the same Request. The path comes from REQUEST_URI where the server
gives it, because PATH_INFO has been decoded and rewritten on the way: there ``%2F`` has become a slash.
"""

from __future__ import annotations

from app.errors import BodyTooLarge, LengthRequired, MalformedRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

BODY_MAX_BYTES = 65_536
#: the folder that holds index.cgi; where the whole project lies in the document root, it is in no address
PUBLIC_FOLDER = b"public_html"
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
_HEX_DIGITS = b"0123456789abcdefABCDEF"
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


class Request:
    """One request.

    Args:
        environ: CGI variables as WSGI has them: each text holds bytes as Latin-1 (PEP 3333).
        read: reads up to that many bytes of the body, b"" at its end.
        ends_by_itself: whether the body ends where ``read`` gives b"", so that its length need not be known.

    Attributes:
        method: in upper case as sent; a POST that says so by X-HTTP-Method-Override is a DELETE.
        base: the folder the service is installed in, "" at the root of a domain; percent-encoded.
        segments: the parts of the path behind the base, each percent-decoded once; one that was sent with %2F holds a
            slash.
    """

    def __init__(self, environ: dict[str, str], read: Callable[[int], bytes], ends_by_itself: bool) -> None:
        self._environ = environ
        self._read = read
        self._ends_by_itself = ends_by_itself
        self.method = environ.get("REQUEST_METHOD", "GET")
        if self.method == "POST" and _says_delete(self.header("X-HTTP-Method-Override")):
            self.method = "DELETE"
        self.base, self.segments = _locate(environ)

    @property
    def remote_addr(self) -> str:
        """The address of the peer, or ""."""
        return self._environ.get("REMOTE_ADDR", "")

    def header(self, name: str) -> str:
        """Return a request header's value, or "" when it is absent or empty."""
        variable = name.upper().replace("-", "_")
        if variable not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            variable = "HTTP_" + variable
        return self._environ.get(variable, "")

    def parameters(self, *names: str) -> dict[str, bytes]:
        """Return those of the named parameters that the query has, percent-decoded. A plus is a plus.

        Raises:
            MalformedRequest: one of them is there twice.
        """
        found: dict[str, bytes] = {}
        for part in self._environ.get("QUERY_STRING", "").split("&"):
            encoded_name, _, value = part.partition("=")
            name = _percent_decoded(encoded_name).decode("latin-1")
            if name in found:
                raise MalformedRequest(f"The parameter {name} is in the query twice.")
            if name in names:
                found[name] = _percent_decoded(value)
        return found

    def has_form_type(self) -> bool:
        """Say whether the body is declared as what an HTML form sends."""
        return self.header("Content-Type").partition(";")[0].strip().lower() in FORM_TYPES

    def body(self) -> bytes:
        """Return the whole body.

        Raises:
            BodyTooLarge: it has more than BODY_MAX_BYTES; no more than that has been read.
            LengthRequired: nobody can tell where it ends.
            MalformedRequest: its length is no number, or fewer bytes came than announced.
        """
        announced = self.header("Content-Length").strip()
        if not announced:
            return self._body_of_unknown_length()
        if not (announced.isascii() and announced.isdigit()):
            raise MalformedRequest("The Content-Length is not a number.")
        digits = announced.lstrip("0") or "0"
        length = int(digits[:9])
        if length > BODY_MAX_BYTES:
            raise BodyTooLarge
        body = self._read_up_to(length)
        if len(body) < length:
            raise MalformedRequest("The body was cut off: fewer bytes arrived than Content-Length says.")
        return body

    def prefers_html(self) -> bool:
        """Say whether the Accept header asks for HTML rather than JSON, as browsers do (RFC 9110, 12.5.1)."""
        accept = self.header("Accept").lower()
        if "html" not in accept and "text/*" not in accept:
            return False
        json = max(_quality(accept, "application/json"), _quality(accept, "application/problem+json"))
        return _quality(accept, "text/html") > json

    def _body_of_unknown_length(self) -> bytes:
        if not self._ends_by_itself:
            if self.header("Transfer-Encoding"):
                raise LengthRequired
            return b""
        body = self._read_up_to(BODY_MAX_BYTES + 1)
        if len(body) > BODY_MAX_BYTES:
            raise BodyTooLarge
        return body

    def _read_up_to(self, length: int) -> bytes:
        body = b""
        while len(body) < length:
            try:
                piece = self._read(length - len(body))
            except OSError:
                break  # the client is gone; what came is too short
            if not piece:
                break
            body += piece
        return body


def _says_delete(override: str) -> bool:
    # A header that came twice arrives as one, with a comma.
    return {said.strip().upper() for said in override.split(",")} == {"DELETE"}


def _locate(environ: dict[str, str]) -> tuple[str, list[bytes]]:
    """Split the request's path into the folder of the service and the segments behind it."""
    script = environ.get("SCRIPT_NAME", "").encode("latin-1", "replace").split(b"/")[1:]
    folder = script[:-1] if script and script[-1].endswith(b".cgi") else script
    path = _path_of(environ.get("REQUEST_URI") or environ.get("RAW_URI", ""))
    if not path:
        # Decoded already, and %2F with it: a server that gives no raw path cannot tell it from a slash.
        inside = environ.get("PATH_INFO", "").encode("latin-1", "replace").split(b"/")[1:]
        return _address(folder), inside or [b""]
    segments = [_percent_decoded(segment) for segment in path.split("/")[1:]]
    above = folder[:-1] if folder[-1:] == [PUBLIC_FOLDER] else folder
    for mount, base in ((script, folder), (folder, folder), (above, above)):
        if segments[: len(mount)] == mount:
            return _address(base), segments[len(mount) :] or [b""]
    return _address(folder), segments


def _path_of(uri: str) -> str:
    """Return the path of a request line's target: origin form, or absolute form as proxies send it (RFC 9112, 3.2)."""
    if not uri.startswith("/"):
        scheme, separator, rest = uri.partition("://")
        if not separator or not scheme.isalpha():
            return ""
        uri = "/" + rest.partition("?")[0].partition("/")[2]
    return uri.partition("?")[0].partition("#")[0]


def _address(segments: list[bytes]) -> str:
    return "".join("/" + _percent_encoded(segment) for segment in segments)


def _percent_decoded(text: str) -> bytes:
    """Decode once; a percent sign that no two hexadecimal digits follow stays as it is."""
    first, *parts = text.encode("latin-1", "replace").split(b"%")
    decoded = [first]
    for part in parts:
        digits = part[:2]
        if len(digits) == 2 and digits[0] in _HEX_DIGITS and digits[1] in _HEX_DIGITS:
            decoded += (bytes((int(digits, 16),)), part[2:])
        else:
            decoded += (b"%", part)
    return b"".join(decoded)


def _percent_encoded(raw: bytes) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in raw)


def _quality(accept: str, media_type: str) -> float:
    """Return the weight of a media type: that of the most specific range which covers it, else 0."""
    specific = {"*/*": 1, media_type.partition("/")[0] + "/*": 2, media_type: 3}
    best, weight = 0, 0.0
    for item in accept.split(","):
        media_range, *parameters = [part.strip() for part in item.split(";")]
        if specific.get(media_range, 0) > best:
            best, weight = specific[media_range], _weight(parameters)
    return weight


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            digits = value.strip()
            if digits.replace(".", "", 1).isdigit() and digits.isascii() and len(digits) <= 5:
                return min(1.0, float(digits))
            return 0.0
    return 1.0
