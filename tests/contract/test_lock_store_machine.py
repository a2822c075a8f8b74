"""Random histories: the SQLite store and the readable model must agree on every outcome."""

from __future__ import annotations

import shutil
import tempfile

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.errors import CapacityReached, LeaseNotFound, NotHolder
from app.lease import Held
from app.memory_stores import InMemoryLockStore
from app.sqlite_locks import SqliteLockStore
from tests.clocks import ManualClock

# Few names and owners, so that histories meet; some that a careless LIKE, collation or trim would confuse.
RESOURCES = st.sampled_from(["a", "A", "a%", "a_", "b", "\u00e9", "e\u0301", "\U0001f512", "\ufb01"])
OWNERS = st.sampled_from(["ann", "ANN", "bob", "a%"])
TTLS = st.sampled_from([1, 2, 10, 60, 3600, 604_800])
# Exact ends of the lengths above, one millisecond around them, and steps back.
ADVANCES = st.sampled_from(
    [0, 0.001, 0.999, 1, 1.001, 2, 9.999, 10, 58, 60, 3600, 3600.001, 604_800, -0.001, -1, -30, -3600]
)
MAX_LOCKS = 4


def outcome(call):
    """What the caller learns, with the token taken out: implementations may leave gaps between tokens."""
    try:
        answer = call()
    except (CapacityReached, LeaseNotFound, NotHolder) as refusal:
        return type(refusal).__name__, None
    if isinstance(answer, Held):
        return ("held", answer.retry_after_seconds), None
    if answer is None or isinstance(answer, int):
        return answer, None
    if isinstance(answer, list):
        return [lease_facts(lease) for lease in answer], [lease.fencing_token for lease in answer]
    return lease_facts(answer), [answer.fencing_token]


def lease_facts(lease):
    return lease.resource, lease.owner, lease.acquired_at, lease.expires_at


class SqliteAgainstTheModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.folder = tempfile.mkdtemp()
        self.sqlite = SqliteLockStore(self.folder, self.clock, max_locks=MAX_LOCKS)
        self.model = InMemoryLockStore(self.clock, max_locks=MAX_LOCKS)
        self.token_pairs: dict[int, int] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def both(self, call) -> None:
        stored, stored_tokens = outcome(lambda: call(self.sqlite))
        expected, expected_tokens = outcome(lambda: call(self.model))
        assert stored == expected
        for stored_token, expected_token in zip(stored_tokens or [], expected_tokens or []):
            if expected_token in self.token_pairs:
                assert self.token_pairs[expected_token] == stored_token
            else:
                assert all(stored_token > earlier for earlier in self.token_pairs.values())
                assert all(expected_token > earlier for earlier in self.token_pairs)
                self.token_pairs[expected_token] = stored_token

    @rule(resource=RESOURCES, owner=OWNERS, ttl_seconds=TTLS)
    def acquire(self, resource, owner, ttl_seconds):
        self.both(lambda store: store.acquire(resource, owner, ttl_seconds))

    @rule(resource=RESOURCES, owner=OWNERS, ttl_seconds=TTLS)
    def renew(self, resource, owner, ttl_seconds):
        self.both(lambda store: store.renew(resource, owner, ttl_seconds))

    @rule(resource=RESOURCES, owner=OWNERS)
    def release(self, resource, owner):
        self.both(lambda store: store.release(resource, owner))

    @rule(resource=RESOURCES)
    def read(self, resource):
        self.both(lambda store: store.read(resource))

    @rule(
        prefix=st.sampled_from(["", "a", "a%", "A", "_", "e"]),
        limit=st.integers(1, 5),
        after=st.one_of(st.just(""), RESOURCES),
    )
    def list_live(self, prefix, limit, after):
        self.both(lambda store: store.list_live(prefix, limit, after))

    @rule(keep_seconds=st.sampled_from([0, 1, 60, 3600]), chunk_rows=st.integers(1, 3))
    def delete_expired(self, keep_seconds, chunk_rows):
        self.both(lambda store: store.delete_expired(keep_seconds, chunk_rows))

    @rule(seconds=ADVANCES)
    def time_passes_or_the_clock_steps(self, seconds):
        self.clock.advance(seconds)

    @rule()
    def another_process_opens_the_database(self):
        self.sqlite = SqliteLockStore(self.folder, self.clock, max_locks=MAX_LOCKS)

    @invariant()
    def the_same_leases_are_live(self):
        self.both(lambda store: store.list_live("", 100, ""))


# Each step commits to a real disk, so the default of 50 steps times 100 examples would take minutes.
SqliteAgainstTheModel.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestSqliteAgainstTheModel = SqliteAgainstTheModel.TestCase
