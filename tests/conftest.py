"""What holds for all tests."""

from __future__ import annotations

import os
import re
from collections import Counter

import pytest
from hypothesis import settings

from tests.parts import in_ci, requires

# Timing is never asserted, and CI gives the same result for the same code.
settings.register_profile("kannuki", deadline=None, derandomize=in_ci())
settings.load_profile("kannuki")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("requires"):
        requires(*mark.args, **mark.kwargs)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name in the last lines what did not run, and what failed before the tests."""
    skipped = Counter(_name_and_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if skipped:
        terminalreporter.section("skipped", sep="-")
    for (name, reason), count in sorted(skipped.items()):
        terminalreporter.line(f"{name}: {reason}" + (f" ({count} cases)" if count > 1 else ""))
    failed_checks = os.environ.get("KANNUKI_FAILED_CHECKS")
    if failed_checks:
        terminalreporter.section("failed before the tests, see above", sep="-", red=True)
        terminalreporter.line(failed_checks)


def _name_and_reason(report: pytest.TestReport) -> tuple[str, str]:
    # With xdist a node id may end in the name of a group: test_name[case]@group.
    name = re.split(r"[\[@]", report.nodeid)[0]
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return name, reason.removeprefix("Skipped: ")
