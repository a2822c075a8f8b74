"""The Flask door: every address of the contract, and HTML for people.

What is answered is decided in `app.api`, before Flask's own routing: that sees a path which the server has decoded and
may have shortened, and the contract is about the path as it was sent.
"""

from __future__ import annotations

from flask import Flask, Response, render_template, request

from app import __version__
from app.api import FailedService, Service, handle
from app.request import Request

#: a page needs nothing, from anywhere
PAGE_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def create_app(service: Service | FailedService) -> Flask:
    """Return the Flask application of a service."""
    app = Flask(__name__, static_folder=None, template_folder="pages/templates")

    @app.before_request
    def answer() -> Response:
        environ = request.environ
        asked = Request(environ, environ["wsgi.input"].read, bool(environ.get("wsgi.input_terminated")))
        answered = handle(service, asked)
        headers = answered.headers
        if answered.page and asked.prefers_html():
            body = render_template(
                f"{answered.page}.html", base=asked.base, version=__version__, shown=answered.document
            )
            headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", PAGE_POLICY)]
            headers += [header for header in answered.headers if header[0] != "Content-Type"]
            response = Response(body, status=answered.status_line(), headers=headers)
        else:
            response = Response(answered.body(), status=answered.status_line(), headers=headers)
        if answered.document is None:
            del response.headers["Content-Type"]  # Flask gives one even to an empty body
        response.call_on_close(lambda: service.after_answer(asked))
        return response

    return app
