"""Parts of a machine that a test needs and that may be missing: Apache, another Python, root."""

from __future__ import annotations

import os

import pytest


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


def requires(present: object, reason: str) -> None:
    """Go on where a part is present; else skip the test, or fail it in CI, where nothing may be missing.

    For tests and fixtures; `@pytest.mark.requires(present, reason)` and `pytestmark` do the same before the fixtures.
    """
    if present:
        return
    if in_ci():
        pytest.fail(f"missing here, and nothing may be missing in CI: {reason}", pytrace=False)
    pytest.skip(reason)
