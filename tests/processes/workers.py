"""What the processes of these tests do: `python -m tests.processes.workers ROLE ARGUMENT…`.

Each role prints one JSON value at its end. What must outlive a SIGKILL goes to a log, one write a line.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from time import monotonic, sleep, time

from app.clock import SystemClock
from app.errors import LeaseNotFound, NotHolder, RateLimitUnavailable
from app.file_rate_limits import FileRateLimitStorage
from app.lease import Lease
from app.sqlite_locks import SqliteLockStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def locks(var_dir: str) -> SqliteLockStore:
    # Never busy for long enough to give up: a slow machine must not look like a fault.
    return SqliteLockStore(var_dir, SystemClock(), busy_timeout_seconds=60)


def windows(directory: str) -> FileRateLimitStorage:
    return FileRateLimitStorage(directory, SystemClock())


def wait_until(moment: float) -> None:
    """Sleep almost until a moment of monotonic time and spin for the rest, so that all contenders start as one."""
    sleep(max(0.0, moment - monotonic() - 0.002))
    while monotonic() < moment:
        pass


def append_line(path: str, *facts: object) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, (json.dumps(facts) + "\n").encode())
    os.close(descriptor)


def contend(var_dir: str, owner: str, first_at: str, gap_seconds: str, *resources: str) -> list[list[object]]:
    """Ask once for each resource, one after the other at set moments; report (resource, token, asked, granted)."""
    store = locks(var_dir)
    grants: list[list[object]] = []
    for number, resource in enumerate(resources):
        wait_until(float(first_at) + number * float(gap_seconds))
        asked = monotonic()
        lease = store.acquire(resource, owner, 600)
        if isinstance(lease, Lease):
            grants.append([resource, lease.fencing_token, asked, monotonic()])
    return grants


def start_first(owner: str, first_at: str, gap_seconds: str, *folders: str) -> list[int]:
    """Acquire something in each folder, where there is no database yet, at set moments; report the tokens."""
    tokens: list[int] = []
    for number, folder in enumerate(folders):
        wait_until(float(first_at) + number * float(gap_seconds))
        lease = locks(folder).acquire(f"of {owner}", owner, 600)
        assert isinstance(lease, Lease)
        tokens.append(lease.fencing_token)
    return tokens


def contend_at_expiry(var_dir: str, owner: str, *ends: str) -> list[list[object]]:
    """Ask for resources again and again around the moment at which each ends, given as resource=moment."""
    store = locks(var_dir)
    grants: list[list[object]] = []
    for end in ends:
        resource, _, moment = end.rpartition("=")
        wait_until(float(moment) - 0.01)
        while True:
            asked = monotonic()
            lease = store.acquire(resource, owner, 600)
            if isinstance(lease, Lease):
                grants.append([resource, lease.fencing_token, asked, monotonic()])
            if isinstance(lease, Lease) or monotonic() > float(moment) + 0.15:
                break
    return grants


def live_dangerously(var_dir: str, log: str, owner: str, until: str, *resources: str) -> int:
    """Acquire, renew, release and abandon at random until a moment, noting each step; made to be killed at any."""
    store = locks(var_dir)
    chance = random.Random(owner)
    rounds = 0

    def set_end(change: Callable[..., object], resource: str, ttl_seconds: int) -> Lease | None:
        # Noted before it is asked for: a process killed behind the commit may have shortened what it held.
        asked = monotonic()
        append_line(log, "asks", resource, owner, asked)
        lease = change(resource, owner, ttl_seconds)
        if not isinstance(lease, Lease):
            return None
        append_line(log, "granted", resource, owner, asked, monotonic(), lease.fencing_token, ttl_seconds)
        return lease

    while monotonic() < float(until):
        rounds += 1
        resource = chance.choice(resources)
        try:
            if set_end(store.acquire, resource, chance.choice([1, 2])):
                sleep(chance.random() / 100)
                if chance.random() < 0.3:
                    set_end(store.renew, resource, 1)
                if chance.random() < 0.9:
                    append_line(log, "gives up", resource, owner, monotonic())
                    store.release(resource, owner)
        except (LeaseNotFound, NotHolder):
            continue
        kept = f"kept by {owner}, {rounds}"
        lease = store.acquire(kept, owner, 3600)
        assert isinstance(lease, Lease)
        append_line(log, "kept", kept, owner, lease.fencing_token)
    return rounds


def hold_and_renew(var_dir: str, resource: str, owner: str) -> list[str]:
    """Acquire for a second, wait for a line, then try to renew and to release; report what became of each."""
    store = locks(var_dir)
    store.acquire(resource, owner, 1)
    print("held", flush=True)
    sys.stdin.readline()
    outcomes = []
    for attempt in (lambda: store.renew(resource, owner, 60), lambda: store.release(resource, owner)):
        try:
            attempt()
            outcomes.append("done")
        except (LeaseNotFound, NotHolder) as refusal:
            outcomes.append(type(refusal).__name__)
    return outcomes


class FreezingClock(SystemClock):
    """The store reads the clock once it holds the write lock; there the process freezes."""

    def now_ms(self) -> int:
        os.kill(os.getpid(), signal.SIGSTOP)
        return super().now_ms()


def freeze_in_mid_write(var_dir: str, resource: str, owner: str) -> list[object]:
    """Acquire, frozen with the write lock held; report the grant, should the process be thawed."""
    asked = time()
    lease = SqliteLockStore(var_dir, FreezingClock()).acquire(resource, owner, 60)
    return [isinstance(lease, Lease), asked]


def hit(directory: str, key: str, times: str) -> list[int]:
    """Count so many hits; report the counts."""
    storage = windows(directory)
    counts: list[int] = []
    while len(counts) < int(times):
        try:
            counts.append(storage.hit(key, 86_400)[0])
        except RateLimitUnavailable:  # others were faster for a quarter of a second; it was not counted
            continue
    return counts


def hit_for_ever(directory: str, key: str, log: str) -> None:
    """Count hits until killed, noting each count once it is known."""
    storage = windows(directory)
    while True:
        try:
            count, _ = storage.hit(key, 86_400)
        except RateLimitUnavailable as error:
            if error.cause != "in use for too long":
                append_line(log, error.cause)
            continue
        append_line(log, count)


def hit_stale_windows(directory: str, scratch: str, key: str, path: str, times: str) -> list[list[int]]:
    """Hit a window that has ended and is due to be swept, twice; report the pairs that are not 1, 2.

    The second count says whether the first hit has lasted: the new window is an hour long.
    """
    storage = windows(directory)
    chance = random.Random(key)
    wrong = []
    for _ in range(int(times)):
        with open(scratch, "w", encoding="ascii") as file:
            file.write('{"count": 7, "reset_at": 1000000000.000}'.ljust(64))
        os.utime(scratch, (1_000_000_000, 1_000_000_000))
        os.replace(scratch, path)
        wait_until(monotonic() + chance.random() / 3000)
        try:
            counts = [storage.hit(key, 3600)[0], storage.hit(key, 3600)[0]]
        except RateLimitUnavailable:
            continue
        if counts != [1, 2]:
            wrong.append(counts)
    return wrong


def sweep_for_ever(directory: str) -> None:
    """Delete stale window files again and again until killed, one line for each sweep that deleted some."""
    storage = windows(directory)
    while True:
        deleted = storage.delete_stale(7200)
        if deleted:
            os.write(1, b"%d\n" % deleted)


ROLES = {
    role.__name__: role
    for role in (
        contend,
        contend_at_expiry,
        freeze_in_mid_write,
        hit,
        hit_for_ever,
        hit_stale_windows,
        hold_and_renew,
        live_dangerously,
        start_first,
        sweep_for_ever,
    )
}

if __name__ == "__main__":
    print(json.dumps(ROLES[sys.argv[1]](*sys.argv[2:])))  # type: ignore[operator]
