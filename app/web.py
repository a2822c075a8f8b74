"""The Flask door: every address of the contract, and HTML for people.

What is answered is decided in `app.api`, before Flask's own routing: that sees a path which the server has decoded and
may have shortened, and the contract is about the path as it was sent.
"""

from __future__ import annotations

from flask import Flask, Response, render_template, request

from app import __version__, log
from app.api import Service, handle
from app.request import Request
from app.response import Response as Answer

#: a page needs nothing, from anywhere
PAGE_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def create_app(service: Service) -> Flask:
    """Return the Flask application of a service."""
    app = Flask(__name__, static_folder=None, template_folder="pages/templates")

    @app.before_request
    def answer() -> Response:
        environ = request.environ
        asked = Request(environ, environ["wsgi.input"].read, bool(environ.get("wsgi.input_terminated")))
        answered = handle(service, asked)
        body, headers = answered.body(), answered.headers
        page = _page(answered, asked) if answered.page and asked.prefers_html() else ""
        if page:
            body = page.encode("utf-8")
            headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", PAGE_POLICY)]
            headers += [header for header in answered.headers if header[0] != "Content-Type"]
        response = Response(body, status=answered.status_line(), headers=headers)
        if answered.document is None:
            del response.headers["Content-Type"]  # Flask gives one even to an empty body
        response.call_on_close(lambda: service.after_answer(asked))
        return response

    return app


def _page(answered: Answer, asked: Request) -> str:
    """Return the page that shows a document, or "" where it cannot be made: then the document itself has to do."""
    try:
        return render_template(f"{answered.page}.html", base=asked.base, version=__version__, shown=answered.document)
    except Exception as error:
        log.failure(error)
        return ""
