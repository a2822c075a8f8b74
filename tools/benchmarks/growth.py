"""How the cost of a request grows with what is stored, with the number of those who ask at once, and during a sweep."""

from __future__ import annotations

import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tools.benchmarks.installations import HIGH_LIMITS, OWNER, Call, Project, Site, acquire
from tools.benchmarks.plan import Plan, Progress
from tools.benchmarks.processes import Program, Run, Started, compared, run, run_at_once
from tools.benchmarks.tables import Column, Table, median

_COSTS = [
    Column("wall_ms", "wall ms", 2),
    Column("wall_ratio", "to the first", 2),
    Column("cpu_ms", "CPU ms", 2),
    Column("cpu_ratio", "to the first", 2),
]
STORED_COLUMNS = [Column("case", "one request"), Column("stored", "stored"), *_COSTS]
CROWD_COLUMNS = [
    Column("case", "acquire of one lock"),
    *_COSTS,
    Column("granted", "granted"),
    Column("refused", "not answered 200"),
]
SWEEP_COLUMNS = [
    Column("case", "a sweep deletes"),
    Column("seconds", "seconds", 1),
    Column("acquires", "acquires meanwhile"),
    Column("median_ms", "median ms", 2),
    Column("slow_ms", "99th of 100 ms", 1),
    Column("longest_ms", "longest ms", 1),
    Column("alone_median_ms", "alone: median ms", 2),
    Column("alone_longest_ms", "longest ms", 1),
]

CONFIG = f"{HIGH_LIMITS}MAX_LOCKS = 100_000_000\n"
ALONE = 100
_HELD = "/locks/held"
_NEW = "/locks/new:{n}"
#: what is stored is the same behind a round as before it
REQUESTS = {
    "acquire": acquire(_NEW),
    "status": Call("GET", _NEW),
    "release": Call("POST", f"{_NEW}/release", {"owner": OWNER}),
}

#: spread over names and ends; the multiplier and the prime modulus mix the order
_FILL = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO distributed_locks (resource, owner, acquired_at, set_at, expires_at)
SELECT printf('job:%d', n * 7919 % 1000003), 'web-7.example:4711', :set_at, :set_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', :first_end, printf('+%d seconds', n * 7919 % 1000003))
FROM numbers
"""
_INSTANT = "%Y-%m-%dT%H:%M:%S.000Z"
DAY_SECONDS = 86_400


def steps(plan: Plan) -> int:
    """Return how many steps of progress this section has."""
    return 3 + plan.crowds + 2


def measure(plan: Plan, folder: Path, project: Project, progress: Progress) -> list[Table]:
    """Measure all and return the tables.

    Args:
        plan: how much.
        folder: where copies are made.
        project: what is measured.
        progress: is told how far it is.
    """
    stored = Table("How the cost grows with what is stored, medians, all sizes take turns", STORED_COLUMNS)
    progress.step(f"storing up to {max(plan.live_leases):,} live leases and {max(plan.window_files):,} window files")
    with _sites(folder, project) as make:
        sites = {count: make(f"leases-{count}") for count in plan.live_leases}
        for count, site in sites.items():
            store_leases(site, count, first_end=time.time() + DAY_SECONDS)
        progress.step("with more and more live leases")
        stored.rows += _measure_sizes(plan, sites, "live leases", REQUESTS)
    with _sites(folder, project) as make:
        sites = {count: make(f"windows-{count}") for count in plan.window_files}
        for count, site in sites.items():
            store_windows(site, count - 1, changed_at=time.time())
        progress.step("with more and more window files")
        stored.rows += _measure_sizes(plan, sites, "window files", {"acquire": REQUESTS["acquire"]})
    with _sites(folder, project) as make:
        crowds = _measure_crowds(plan, make("crowds"), progress)
    with _sites(folder, project) as make:
        sweeps = _measure_sweeps(plan, make, progress)
    return [stored, crowds, sweeps]


class _Maker:
    """Makes sites in a folder."""

    def __init__(self, folder: Path, project: Project) -> None:
        self._folder = folder
        self._project = project

    def __call__(self, name: str) -> Site:
        site = Site(self._folder / name, self._project, CONFIG)
        output = site.answer(acquire(_HELD)).output
        if b'"acquired": true' not in output:
            raise RuntimeError(f"the first acquire was answered {output[:80]!r}")
        return site


@contextmanager
def _sites(folder: Path, project: Project) -> Iterator[_Maker]:
    """Give what makes sites; they are gone at the end, since a million leases take some room."""
    with tempfile.TemporaryDirectory(dir=folder) as top:
        yield _Maker(Path(top), project)


def store_leases(site: Site, count: int, first_end: float) -> None:
    """Add leases to a site's database, past the service, which would take hours.

    Args:
        site: a site whose database has been made.
        count: how many.
        first_end: seconds since 1970; they end from there on, over some eleven days.
    """
    now = time.time()
    instants = {
        "set_at": time.strftime(_INSTANT, time.gmtime(min(now, first_end) - 60)),
        "first_end": time.strftime(_INSTANT, time.gmtime(first_end)),
    }
    with closing(sqlite3.connect(site.var / "locks.sqlite3", isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-200000")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_FILL, {"count": count, **instants})
        connection.execute("COMMIT")
    os.sync()  # what is not on the disk yet would be written during the measurement


def store_windows(site: Site, count: int, changed_at: float) -> None:
    """Add rate-limit files to a site, as clients leave them that have come once."""
    record = f'{{"count": 1, "reset_at": {changed_at + 60:.3f}}}'.ljust(64).encode("ascii")
    for _ in range(count):
        path = site.var / "rate-limits" / f"{secrets.token_hex(32)}.json"
        path.write_bytes(record)
        os.utime(path, (changed_at, changed_at))
    os.sync()


def _measure_sizes(plan: Plan, sites: dict[int, Site], what: str, requests: dict[str, Call]) -> list[dict[str, Any]]:
    runs: dict[tuple[str, int], list[Run]] = {(name, size): [] for name in requests for size in sites}
    for number in range(plan.growth_rounds + 1):
        for size, site in sites.items():
            for name, call in requests.items():
                ended = run(site.program(call, number))
                if number:  # the first round is the warm-up
                    runs[name, size].append(ended)
    rows: list[dict[str, Any]] = []
    for name in requests:
        costs = [runs[name, size] for size in sites]
        for size, row in zip(sites, compared(costs)):
            rows.append({"case": f"{name}, {what}", "stored": size, **row})
    return rows


def _measure_crowds(plan: Plan, site: Site, progress: Progress) -> Table:
    """Let more and more owners ask for one lock at once; a new lock each time."""
    table = Table(
        f"Contenders for one lock at once, medians of {plan.crowds} rounds, all numbers take turns", CROWD_COLUMNS
    )
    runs: dict[int, list[Run]] = {contenders: [] for contenders in plan.contenders}
    for crowd in range(plan.crowds):
        progress.step(f"contenders at once, round {crowd + 1} of {plan.crowds}")
        for contenders in plan.contenders:
            target = f"/locks/crowd:{contenders}:{crowd}"
            runs[contenders] += run_at_once([site.program(acquire(target, f"web-{n}")) for n in range(contenders)])
    for (contenders, its_runs), row in zip(runs.items(), compared(list(runs.values()))):
        granted = sum(b'"acquired": true' in run.output for run in its_runs)
        refused = sum(not run.output.startswith(b"Status: 200") for run in its_runs)
        table.rows.append({"case": f"{contenders} at once", **row, "granted": granted, "refused": refused})
    return table


def _measure_sweeps(plan: Plan, make: _Maker, progress: Progress) -> Table:
    table = Table("A sweep, and acquires of one held lock, one after the other, while it runs", SWEEP_COLUMNS)
    long_ago = time.time() - 30 * DAY_SECONDS
    progress.step(f"a sweep of {plan.swept_files:,} rate-limit files")
    site = make("files")
    store_windows(site, plan.swept_files, long_ago)
    table.rows.append(_measure_sweep(f"{plan.swept_files:,} rate-limit files", site))
    progress.step(f"a sweep of {plan.swept_rows:,} ended leases")
    site = make("rows")
    store_leases(site, plan.swept_rows, long_ago)
    table.rows.append(_measure_sweep(f"{plan.swept_rows:,} ended leases", site))
    return table


def _measure_sweep(case: str, site: Site) -> dict[str, Any]:
    request = site.program(acquire(_HELD))
    alone = [run(request).wall_ms for _ in range(ALONE)]
    command = [site.interpreter.path, str(site.folder / "tools" / "sweep.py")]
    sweep = Started(Program(command, {"PATH": "/usr/bin:/bin"}))
    meanwhile = []
    swept = None
    try:
        while not swept:
            meanwhile.append(run(request).wall_ms)
            swept = sweep.poll()
    finally:
        if not swept:
            sweep.end()
    return {
        "case": case,
        "seconds": swept.wall_ms / 1000,
        "acquires": len(meanwhile),
        "median_ms": median(meanwhile),
        "slow_ms": sorted(meanwhile)[-1 - len(meanwhile) // 100],
        "longest_ms": max(meanwhile),
        "alone_median_ms": median(alone),
        "alone_longest_ms": max(alone),
        "said": swept.output.decode().strip(),
    }
