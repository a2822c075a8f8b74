"""A host kills processes at any moment. Some contenders die in mid-write; nothing that was granted may suffer."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

from tests.processes.holds import Hold, double_holds, falling_tokens

CONTENDERS = 10
SECONDS = 7
RESOURCES = ("a", "b", "c")


def read_log(path: Path) -> list[list]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def holds_of(log: list[list]) -> list[Hold]:
    """A hold lasts until its length is over or its owner's next step with the resource."""
    holds = []
    present: dict[tuple[str, str], Hold] = {}
    for what, resource, owner, *facts in log:
        if what in ("asks", "gives up") and (resource, owner) in present:
            hold = present.pop((resource, owner))
            hold.ends = min(hold.ends, facts[0])
        elif what == "granted":
            asked, granted, token, ttl_seconds = facts
            present[resource, owner] = Hold(resource, owner, token, asked, granted, ttl_seconds)
            holds.append(present[resource, owner])
    return holds


def test_contenders_killed_in_mid_write_leave_the_database_whole_and_no_lock_held_twice_or_lost(start, store, tmp_path):
    chance = random.Random(7)
    log = tmp_path / "log"
    log.touch()
    store.check()
    until = monotonic() + SECONDS
    born = 0
    living = []
    killed = 0
    while monotonic() < until:
        while len(living) < CONTENDERS:
            living.append(start("live_dangerously", tmp_path, log, f"o{born}", until, *RESOURCES))
            born += 1
        sleep(chance.random() / 5)
        living.pop(chance.randrange(len(living))).kill()
        killed += 1
    for worker in living:
        worker.report()

    with closing(sqlite3.connect(tmp_path / "locks.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    steps = read_log(log)
    holds = holds_of(steps)
    assert killed > 20
    assert len({hold.owner for hold in holds}) > 10
    assert double_holds(holds) == []
    assert falling_tokens(holds) == []
    kept = {resource: (owner, token) for what, resource, owner, token, *_ in steps if what == "kept"}
    assert len(kept) > 20
    for resource, (owner, token) in kept.items():
        lease = store.read(resource)
        assert (lease.owner, lease.fencing_token) == (owner, token)
