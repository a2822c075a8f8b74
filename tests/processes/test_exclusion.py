"""Two contenders, one winner, always: judged by the times in which owners were sure to hold the lock."""

from __future__ import annotations

import threading
from time import monotonic, sleep, time

import pytest

from app.clock import SystemClock
from app.lease import Lease, ms_from_instant
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock
from tests.processes.holds import Hold, double_holds

CONTENDERS = 16
ROUNDS = 40
GAP_SECONDS = 0.06


def contend_for(start, folder, resources: list[str]) -> list[Hold]:
    # So much time for all of them to have started.
    first_at = monotonic() + 2.5
    workers = [
        start("contend", folder, f"contender {number}", first_at, GAP_SECONDS, *resources)
        for number in range(CONTENDERS)
    ]
    return [
        Hold(resource, f"contender {number}", token, asked, granted, 600)
        for number, worker in enumerate(workers)
        for resource, token, asked, granted in worker.report()
    ]


def assert_one_winner_each(holds: list[Hold], resources: list[str]) -> None:
    assert double_holds(holds) == []
    assert sorted(hold.resource for hold in holds) == sorted(resources)
    assert len({hold.token for hold in holds}) == len(resources)


def test_of_sixteen_contenders_for_a_fresh_name_one_wins(start, store, tmp_path):
    resources = [f"fresh {number}" for number in range(ROUNDS)]

    holds = contend_for(start, tmp_path, resources)

    assert_one_winner_each(holds, resources)
    assert {(lease.resource, lease.owner, lease.fencing_token) for lease in store.list_live("", 1000, "")} == {
        (hold.resource, hold.owner, hold.token) for hold in holds
    }


def test_of_sixteen_contenders_for_an_ended_lease_one_wins(start, store, tmp_path):
    """The row is there and belongs to nobody: here a check before the write lock grants twice."""
    resources = [f"ended {number}" for number in range(ROUNDS)]
    long_ago = SqliteLockStore(str(tmp_path), ManualClock(round(time() * 1000) - 3_600_000))
    before = [long_ago.acquire(resource, "gone", 1).fencing_token for resource in resources]

    holds = contend_for(start, tmp_path, resources)

    assert_one_winner_each(holds, resources)
    assert min(hold.token for hold in holds) > max(before)


def test_of_twelve_contenders_at_the_instant_of_expiry_one_wins_and_not_before_it(start, store, tmp_path):
    holders, arguments = [], []
    for number in range(12):
        resource = f"expiring {number}"
        asked = monotonic()
        lease = store.acquire(resource, "holder", 5)
        holders.append(Hold(resource, "holder", lease.fencing_token, asked, monotonic(), 5))
        arguments.append(f"{resource}={monotonic() + ms_from_instant(lease.expires_at) / 1000 - time()}")
        sleep(0.18)
    workers = [start("contend_at_expiry", tmp_path, f"contender {number}", *arguments) for number in range(12)]

    holds = [
        Hold(resource, f"contender {number}", token, asked, granted, 600)
        for number, worker in enumerate(workers)
        for resource, token, asked, granted in worker.report()
    ]

    assert double_holds(holders + holds) == []
    assert sorted(hold.resource for hold in holds) == sorted(hold.resource for hold in holders)


@pytest.mark.parametrize("attempt", range(8))
def test_many_threads_of_one_process_have_one_winner_too(tmp_path, attempt):
    """As under a WSGI server with threads; here at the first start, whose files all threads make at once."""
    store = SqliteLockStore(str(tmp_path), SystemClock(), busy_timeout_seconds=30)
    together = threading.Barrier(12)
    answers: list[object] = []

    def contend(owner: str) -> None:
        together.wait()
        try:
            answers.append(store.acquire("r", owner, 60))
        except Exception as error:
            answers.append(error)

    threads = [threading.Thread(target=contend, args=(f"o{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    assert sum(isinstance(answer, Lease) for answer in answers) == 1
