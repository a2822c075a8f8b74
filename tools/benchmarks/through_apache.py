"""Requests a second through Apache with suEXEC, from one client and from eight at once (wrk)."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tools.benchmarks import apache, installations
from tools.benchmarks.apache import Apache
from tools.benchmarks.installations import HIGH_LIMITS, Call, Project, Script, Site, acquire, body_of
from tools.benchmarks.plan import Plan, Progress
from tools.benchmarks.tables import Column, Table, ratio

CONNECTIONS = (1, 8)
COLUMNS = [Column("case", "one request")]
for _number in CONNECTIONS:
    COLUMNS += [
        Column(f"rate_{_number}", f"{_number} at once: requests/s", 1),
        Column(f"to_flask_{_number}", "to Flask", 2),
        Column(f"to_stdlib_{_number}", "to stdlib", 2),
    ]
STDLIB, FLASK = "plain stdlib script, acquire", "plain Flask script, acquire"
CASES = 6

#: wrk calls done() at its end; its own report shows too few digits
_WRK_SCRIPT = """
wrk.method = %(method)s
wrk.body = %(body)s
wrk.headers["Host"] = %(host)s
wrk.headers["Content-Type"] = "application/json"
done = function(summary)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
    io.write(string.format('{"requests": %%d, "microseconds": %%d, "failed": %%d}\\n',
        summary.requests, summary.duration, failed))
end
"""


class Case(NamedTuple):
    """One row: the site that is asked, and the request."""

    name: str
    site: str
    call: Call


class Count(NamedTuple):
    """What wrk counted in one or more runs."""

    requests: float = 0
    seconds: float = 0
    failed: int = 0

    def plus(self, other: Count) -> Count:
        """Return both together."""
        return Count(self.requests + other.requests, self.seconds + other.seconds, self.failed + other.failed)


def steps(plan: Plan) -> int:
    """Return how many steps of progress this section has."""
    return plan.passes * len(CONNECTIONS) * CASES


def measure(plan: Plan, folder: Path, project: Project, progress: Progress) -> list[Table]:
    """Measure every case and return one table, or none where something is missing.

    Args:
        plan: how often and how long.
        folder: not used; suEXEC runs scripts in a folder of its own only.
        project: what is measured.
        progress: is told how far it is.
    """
    missing = apache.missing_parts() + ([] if shutil.which("wrk") else ["wrk"])
    if missing:
        progress.leave_out(f"Left out: Apache, which needs {', '.join(missing)} here (see --help).")
        progress.drop(steps(plan))
        return []
    with _sites(project, progress) as (top, sites, cases), Apache(top, sites) as server:
        cases = [case for case in cases if _answers(server, case, progress)]
        return [_table(cases, _count_all(plan, server, top, cases, progress))]


@contextmanager
def _sites(project: Project, progress: Progress) -> Iterator[tuple[Path, dict[str, Path], list[Case]]]:
    """Make the folder that suEXEC runs scripts in; give it, the document roots by site, and the cases."""
    top = apache.make_top()
    try:
        scripts: dict[str, Script] = {"floor": installations.make_floor(top / "floor", project)}
        cases = [Case("the floor: Python, hello", "floor", Call("GET", "/index.cgi"))]
        if installations.has_php(progress):
            scripts["php"] = installations.make_php_peer(top / "php", project)
            cases.append(Case("php-cgi, hello", "php", Call("GET", "/index.cgi")))
        scripts["stdlib"] = installations.make_stdlib_peer(top / "stdlib", project)
        cases.append(Case(STDLIB, "stdlib", acquire("/index.cgi/locks/job:nightly")))
        if installations.has_flask(progress):
            scripts["flask"] = installations.make_flask_peer(top / "flask", project)
            cases.append(Case(FLASK, "flask", acquire("/index.cgi/locks/job:nightly")))
        scripts["ours"] = Site(top / "ours", project, HIGH_LIMITS)
        cases.append(Case("acquire, again", "ours", acquire("/locks/job:nightly")))
        cases.append(Case("status", "ours", Call("GET", "/locks/job:nightly")))
        apache.hand_over(top)
        yield top, {name: script.path.parent for name, script in scripts.items()}, cases
    finally:
        shutil.rmtree(top)


def _answers(server: Apache, case: Case, progress: Progress) -> bool:
    """Send one request, which makes what is made once only, and say whether it was answered well."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        headers = {"Host": case.site, "Content-Type": "application/json"}
        connection.request(case.call.method, case.call.target, body_of(case.call), headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    if status != 200:
        progress.leave_out(f"Left out: {case.name} through Apache, since the answer was {status}.")
    return status == 200


def _count_all(
    plan: Plan, server: Apache, top: Path, cases: list[Case], progress: Progress
) -> dict[tuple[str, int], Count]:
    """Let all cases take turns; return the counts by name of the case and number of connections."""
    counts: dict[tuple[str, int], Count] = {}
    progress.drop(plan.passes * len(CONNECTIONS) * (CASES - len(cases)))
    for _ in range(plan.passes):
        for connections in CONNECTIONS:
            for case in cases:
                progress.step(f"through Apache: {case.name}, {connections} at once")
                seconds = plan.wrk_seconds_slow if case.name == FLASK else plan.wrk_seconds
                counted = _count(server, top, case, connections, seconds)
                counts[case.name, connections] = counts.get((case.name, connections), Count()).plus(counted)
    return counts


def _count(server: Apache, top: Path, case: Case, connections: int, seconds: int) -> Count:
    script = top / "request.lua"
    # A JSON string without characters beyond ASCII is a Lua string, too.
    method, host = json.dumps(case.call.method), json.dumps(case.site)
    body = json.dumps(body_of(case.call).decode()) if case.call.body else "nil"
    script.write_text(_WRK_SCRIPT % {"method": method, "host": host, "body": body}, encoding="ascii")
    address = f"http://127.0.0.1:{server.port}{case.call.target}"
    numbers = [f"--connections={connections}", f"--duration={seconds}s", "--threads=1", "--timeout=60s"]
    ended = subprocess.run(
        ["wrk", *numbers, f"--script={script}", address], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    server.settle()
    counted = json.loads(ended.stdout.splitlines()[-1])
    # wrk forgets the requests that are under way at its end. On average they are half done, and where a request takes
    # a second that is a part to reckon with.
    requests = counted["requests"] + connections / 2
    return Count(requests, counted["microseconds"] / 1e6, counted["failed"])


def _table(cases: list[Case], counts: dict[tuple[str, int], Count]) -> Table:
    table = Table(
        "Requests a second through Apache with suEXEC, all take turns; rate limits count and do not refuse", COLUMNS
    )
    rates = {key: count.requests / count.seconds for key, count in counts.items()}
    for case in cases:
        row: dict[str, Any] = {"case": case.name}
        for connections in CONNECTIONS:
            rate = rates[case.name, connections]
            row[f"rate_{connections}"] = rate
            row[f"to_flask_{connections}"] = ratio(rate, rates.get((FLASK, connections)))
            row[f"to_stdlib_{connections}"] = ratio(rate, rates.get((STDLIB, connections)))
        failed = sum(counts[case.name, connections].failed for connections in CONNECTIONS)
        if failed:
            table.notes.append(f"{case.name}: {failed} requests failed.")
        table.rows.append(row)
    return table
