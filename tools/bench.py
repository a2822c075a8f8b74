"""Measures what a request costs: beside a bare interpreter, through Apache, and as more and more is stored."""

# What is imported before the version check parses on Python 3.6, see tools/environment.py.

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import environment
from tools.environment import ROOT

if TYPE_CHECKING:
    from tools.benchmarks.plan import Plan, Progress
    from tools.benchmarks.tables import Table

SECTIONS = ("processes", "apache", "growth")

EXAMPLES = """\
examples:
  python3 tools/bench.py                      everything, in some minutes
  python3 tools/bench.py --quick              fewer runs and smaller stores, in less than one
  python3 tools/bench.py --only processes     one section: processes, apache or growth

What is measured:
  processes   whole processes that take turns, as ratios to the start of a bare interpreter in the same run; beside the
              service a PHP hello and two plain scripts that grant locks, tools/peers/flask_acquire.py and
              tools/peers/stdlib_acquire.py
  apache      requests a second through an Apache of its own with suEXEC, on a free port of this machine
  growth      up to a million live leases, a hundred thousand rate-limit files, 64 contenders, and sweeps

Everything is measured on copies in the folder build/ and, for Apache, in /var/www; they are removed at the end. It
asserts nothing. Figures are worth something on a machine that has nothing else to do.

What is missing is named and left out. For all of it, be root, and on Debian and Ubuntu:
  apt-get install --no-install-recommends apache2-bin apache2-suexec-pristine wrk php-cgi
"""


def parse(arguments: "list[str]") -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python3 tools/bench.py",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="measure less, in less than a minute")
    parser.add_argument("--only", choices=SECTIONS, help="measure one section")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, with all decimals")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    return parser.parse_args(arguments)


def measure(plan: "Plan", sections: "list[str]", folder: Path) -> "tuple[dict[str, str], list[Table], Progress]":
    """Measure the sections; return the facts about the machine, the tables, and what was left out."""
    from tools.benchmarks import growth, installations, machine, through_apache, whole_processes
    from tools.benchmarks.plan import Progress

    project = installations.Project(folder / "project")
    facts = machine.describe(project.interpreter, folder)
    modules = {"processes": whole_processes, "apache": through_apache, "growth": growth}
    progress = Progress(sum(modules[section].steps(plan) for section in sections))
    tables = []
    for section in sections:
        try:
            tables += modules[section].measure(plan, folder, project, progress)
        except Exception as fault:  # what has been measured is worth showing all the same
            progress.leave_out(f"Left out: {section}, since it failed: {type(fault).__name__}: {fault}.")
    return facts, tables, progress


def report(facts: "dict[str, str]", tables: "list[Table]", left_out: "list[str]", form: str) -> str:
    """Return all that was found in one text.

    Args:
        facts: about the machine.
        tables: what was measured.
        left_out: what was not, a sentence each.
        form: `text`, `markdown` or `json`.
    """
    if form == "json":
        found = {"machine": facts, "tables": [table.as_data() for table in tables], "left_out": left_out}
        return json.dumps(found, indent=1)
    machine = ", ".join(f"{name} {fact}" for name, fact in facts.items())
    shown = [table.as_markdown() if form == "markdown" else table.as_text() for table in tables]
    return "\n\n".join([*shown, "\n".join([f"Measured: {machine}.", *left_out])])


def end(signal_number: int, _frame: object) -> NoReturn:
    """End in good order, so that everything is removed; further signals do not disturb that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + signal_number)


def main(arguments: "list[str]") -> None:
    """Measure and print."""
    options = parse(arguments)
    environment.require_supported_python()
    from tools.benchmarks.plan import FULL, QUICK

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    # Beside the project and not in /tmp, which may be kept in memory: there, a sync costs nothing.
    (ROOT / "build").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"bench-{os.getpid()}-", dir=str(ROOT / "build")))
    try:
        sections = [options.only] if options.only else list(SECTIONS)
        facts, tables, progress = measure(QUICK if options.quick else FULL, sections, folder)
    finally:
        shutil.rmtree(str(folder))
    form = "json" if options.json else "markdown" if options.markdown else "text"
    print(report(facts, tables, progress.left_out, form))


if __name__ == "__main__":
    main(sys.argv[1:])
