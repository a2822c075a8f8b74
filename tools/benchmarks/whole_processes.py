"""Whole processes, from start to end, taking turns: what a request costs beside the start of a bare interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, NamedTuple

from tools.benchmarks import installations
from tools.benchmarks.installations import OTHER_OWNER, OWNER, Call, Project, Script, Site, acquire
from tools.benchmarks.plan import Plan, Progress
from tools.benchmarks.processes import Program, Run, compared, run
from tools.benchmarks.tables import Column, Table

COLUMNS = [
    Column("case", "one request"),
    Column("wall_ms", "wall ms", 2),
    Column("wall_ratio", "to the floor", 2),
    Column("cpu_ms", "CPU ms", 2),
    Column("cpu_ratio", "to the floor", 2),
]
#: how often it is said how far it is
STEPS = 5

_HELD = "/locks/job:nightly"
_NEW = "/locks/job:{n}"
#: name -> (the site whose state it needs, the request, what its answer holds); the default limits hold, so the
#: acquires are spread over several sites
OURS: dict[str, tuple[str, Call, bytes]] = {
    "acquire, fresh": ("new", acquire(_NEW), b'"acquired": true'),
    "acquire, again": ("held", acquire(_HELD), b'"acquired": true'),
    "acquire, contended": ("held", acquire(_HELD, OTHER_OWNER), b'"acquired": false'),
    "status": ("held", Call("GET", _HELD), b'"fencing_token"'),
    "status, no such lock: 404": ("held", Call("GET", "/locks/job:none"), b"Status: 404"),
    "renew": ("held", Call("POST", f"{_HELD}/renew", {"owner": OWNER, "ttl_seconds": 86_400}), b'"fencing_token"'),
    "release": ("new", Call("POST", f"{_NEW}/release", {"owner": OWNER}), b"Status: 204"),
    "acquire, values wrong: 422": ("wrong", Call("POST", _HELD, {"owner": " ", "ttl_seconds": 0}), b"Status: 422"),
    "acquire, limit used up: 429": ("used up", acquire(_HELD), b"Status: 429"),
}


class Case(NamedTuple):
    """One row: what is run for a round's number, what its answer holds, and what is put right before it."""

    name: str
    program: Callable[[int], Program]
    expected: bytes = b""
    prepare: Callable[[], None] | None = None

    def run(self, number: int) -> Run:
        """Run it once."""
        if self.prepare:
            self.prepare()
        return run(self.program(number))


def steps(plan: Plan) -> int:
    """Return how many steps of progress this section has."""
    return min(STEPS, plan.rounds)


def measure(plan: Plan, folder: Path, project: Project, progress: Progress) -> list[Table]:
    """Measure every case and return one table.

    Args:
        plan: how often.
        folder: where copies are made.
        project: what is measured.
        progress: is told how far it is.
    """
    cases = [_floor(project), *_ours(folder, project), *_peers(folder, project, progress)]
    cases = [case for case in cases if _answers(case, progress)]
    table = Table(f"Whole processes, medians of {plan.rounds} rounds in which all take turns", COLUMNS)
    runs: dict[str, list[Run]] = {case.name: [] for case in cases}
    unexpected = 0
    for number in range(1, plan.rounds + 1):
        if (number - 1) * steps(plan) // plan.rounds != (number - 2) * steps(plan) // plan.rounds:
            progress.step(f"whole processes, round {number} of {plan.rounds}")
        # The largest program is the last of a round. It leaves the processor's caches cold, and what comes next pays.
        cases[0].run(number)
        for case in cases:
            ended = case.run(number)
            runs[case.name].append(ended)
            unexpected += case.expected not in ended.output
    table.rows = [{"case": name, **costs} for name, costs in zip(runs, compared(list(runs.values())))]
    if unexpected:
        table.notes.append(f"{unexpected} answers were not the expected ones.")
    return [table]


def _answers(case: Case, progress: Progress) -> bool:
    """Run a case once, as warm-up, and say whether its answer is the expected one."""
    output = case.run(0).output
    if case.expected not in output:
        progress.leave_out(f"Left out: {case.name}, since the answer was {output[:80]!r}.")
    return case.expected in output


def _floor(project: Project) -> Case:
    program = Program([project.interpreter.path, "-I", "-S", "-c", "pass"], {"PATH": "/usr/bin:/bin"})
    return Case("the floor: python3 -I -S -c pass", lambda number: program)


def _peers(folder: Path, project: Project, progress: Progress) -> list[Case]:
    cases = []
    if installations.has_php(progress):
        php = installations.make_php_peer(folder / "php", project)
        cases.append(_case("php-cgi, hello", php, Call("GET", "/index.cgi"), b"hello"))
    stdlib = installations.make_stdlib_peer(folder / "stdlib", project)
    cases.append(_case("plain stdlib script, acquire", stdlib, acquire(_NEW), b'"acquired": true'))
    if installations.has_flask(progress):
        flask = installations.make_flask_peer(folder / "flask", project)
        cases.append(_case("plain Flask script, acquire", flask, acquire(_NEW), b'"acquired":true'))
    return cases


def _ours(folder: Path, project: Project) -> list[Case]:
    sites: dict[str, Site] = {}
    cases = []
    for name, (state, call, expected) in OURS.items():
        if state not in sites:
            sites[state] = Site(folder / state.replace(" ", "-"), project)
            # Compiles the code, makes the database and the lease that some cases are about.
            sites[state].answer(acquire(_HELD))
        site = sites[state]
        case = _case(name, site, call, expected)
        cases.append(case._replace(prepare=site.use_up_the_acquires) if state == "used up" else case)
    return cases


def _case(name: str, script: Script, call: Call, expected: bytes) -> Case:
    return Case(name, lambda number: script.program(call, number), expected)
