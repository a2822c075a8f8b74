"""A paused container, a swapping host: a process stands still for longer than its lease and does not know it."""

from __future__ import annotations

import os
import signal
from time import sleep

import pytest

from app.clock import SystemClock
from app.errors import LeaseNotFound, StoreUnavailable
from app.lease import Held, Lease
from app.sqlite_locks import SqliteLockStore


def frozen_past_its_end(start, store, tmp_path):
    holder = start("hold_and_renew", tmp_path, "r", "holder")
    assert holder.line() == "held"
    holder.signal(signal.SIGSTOP)
    while True:
        try:
            store.read("r")
        except LeaseNotFound:
            return holder
        sleep(0.02)


def test_a_holder_frozen_past_its_end_revives_nothing(start, store, tmp_path):
    holder = frozen_past_its_end(start, store, tmp_path)

    holder.signal(signal.SIGCONT)
    holder.go_on()

    assert holder.report() == ["LeaseNotFound", "LeaseNotFound"]
    with pytest.raises(LeaseNotFound):
        store.read("r")


def test_a_holder_frozen_past_its_end_cannot_touch_the_next_holders_lease(start, store, tmp_path):
    holder = frozen_past_its_end(start, store, tmp_path)
    granted = store.acquire("r", "next", 60)
    assert isinstance(granted, Lease)

    holder.signal(signal.SIGCONT)
    holder.go_on()

    assert holder.report() == ["NotHolder", "NotHolder"]
    lease = store.read("r")
    assert (lease.owner, lease.expires_at, lease.fencing_token) == ("next", granted.expires_at, granted.fencing_token)


def frozen_in_mid_write(start, store, tmp_path):
    store.acquire("bystander", "o", 60)
    writer = start("freeze_in_mid_write", tmp_path, "r", "frozen")
    os.waitid(os.P_PID, writer.process.pid, os.WSTOPPED | os.WNOWAIT)
    return writer


def test_a_writer_frozen_in_mid_write_holds_up_writers_for_the_time_out_and_readers_not(start, store, tmp_path):
    frozen_in_mid_write(start, store, tmp_path)
    hurried = SqliteLockStore(str(tmp_path), SystemClock(), busy_timeout_seconds=0.2)

    with pytest.raises(StoreUnavailable):
        hurried.acquire("r", "contender", 60)

    assert hurried.read("bystander").owner == "o"
    with pytest.raises(LeaseNotFound):
        hurried.read("r")


def test_a_writer_killed_with_the_write_lock_held_sets_it_free_and_has_done_nothing(start, store, tmp_path):
    writer = frozen_in_mid_write(start, store, tmp_path)

    writer.kill()

    assert isinstance(store.acquire("r", "contender", 60), Lease)


def test_a_writer_thawed_in_mid_write_is_granted_by_the_present_instant(start, store, tmp_path):
    writer = frozen_in_mid_write(start, store, tmp_path)
    sleep(0.3)

    writer.signal(signal.SIGCONT)

    assert writer.report()[0] is True
    assert isinstance(store.acquire("r", "contender", 60), Held)
