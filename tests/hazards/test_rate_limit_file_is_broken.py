"""A window file can hold anything: a full disk, a crash, an editor or another program wrote it.

Whatever it holds is a new window or a clamped one, never an error, and the file counts again after the next hit.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.file_rate_limits import FileRateLimitStorage
from tests.clocks import ManualClock

WINDOW_SECONDS = 60
RECORD_BYTES = 64


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(tmp_path, clock) -> FileRateLimitStorage:
    return FileRateLimitStorage(str(tmp_path), clock)


def window_file(folder: Path, key: str) -> Path:
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def soon(clock: ManualClock) -> float:
    return clock.now_ms() / 1000 + 30


def record(count: object = 5, reset_at: object = 1796097936.123) -> bytes:
    return f'{{"count": {count}, "reset_at": {reset_at}}}'.encode()


BROKEN = {
    "empty": b"",
    "NULs": b"\0" * RECORD_BYTES,
    "blanks": b" " * RECORD_BYTES,
    "record of NULs behind a good one": record().ljust(RECORD_BYTES) + b"\0" * RECORD_BYTES,
    "trailing junk": record() + b"x",
    "trailing brace": record() + b"}",
    "trailing NUL": record() + b"\0",
    "a second record": record() + record(),
    "longer than the record": record().ljust(RECORD_BYTES) + b"tail of an older, longer record}",
    "a megabyte": b"x" * 1_000_000,
    "half a record": record()[:20],
    "half a record, padded": record()[:20].ljust(RECORD_BYTES),
    "without the last brace": record()[:-1].ljust(RECORD_BYTES),
    "byte-order mark": b"\xef\xbb\xbf" + record(),
    "UTF-16": record().decode().encode("utf-16"),
    "not UTF-8": b"\xff" * RECORD_BYTES,
    "HTML": b"<!DOCTYPE html><title>508</title>",
    "array": b"[]",
    "array of the two values": b"[5, 1796097936.123]",
    "null": b"null",
    "number": b"5",
    "string": b'"count"',
    "empty object": b"{}",
    "only count": b'{"count": 5}',
    "only reset_at": b'{"reset_at": 1796097936.123}',
    "nested": b'{"count": {"count": 5}, "reset_at": 1796097936.123}',
    "deep": b"[" * 100_000,
    "deep objects": b'{"count":' * 20_000,
    "count NaN": record(count="NaN"),
    "count Infinity": record(count="Infinity"),
    "count null": record(count="null"),
    "count true": record(count="true"),
    "count text": record(count='"5"'),
    "count negative": record(count=-5),
    "count a fraction": record(count=5.5),
    "count 1e400": record(count="1e400"),
    "count of 5,000 digits": record(count="9" * 5000),
    "reset_at NaN": record(reset_at="NaN"),
    "reset_at Infinity": record(reset_at="Infinity"),
    "reset_at -Infinity": record(reset_at="-Infinity"),
    "reset_at null": record(reset_at="null"),
    "reset_at true": record(reset_at="true"),
    "reset_at text": record(reset_at='"1796097936.123"'),
    "reset_at negative": record(reset_at=-1796097936.123),
    "reset_at 1e400": record(reset_at="1e400"),
    "reset_at of 5,000 digits": record(reset_at="9" * 5000),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_a_new_window_and_counts_from_then_on(storage, tmp_path, clock, broken):
    path = window_file(tmp_path, "k")
    path.write_bytes(broken)

    first = storage.hit("k", WINDOW_SECONDS, ceiling=31)
    second = storage.hit("k", WINDOW_SECONDS, ceiling=31)

    assert first == (1, pytest.approx(clock.now_ms() / 1000 + WINDOW_SECONDS, abs=0.0005))
    assert second == (2, first[1])
    assert json.loads(path.read_bytes()) == {"count": 2, "reset_at": pytest.approx(second[1], abs=0.0005)}


@pytest.mark.parametrize("count", ["0", "99999999", "9" * 19, "9" * 20, "9" * 45])
def test_a_count_out_of_range_does_not_outlive_the_ceiling_and_still_fits_the_record(storage, tmp_path, clock, count):
    path = window_file(tmp_path, "k")
    path.write_bytes(record(count, soon(clock)))

    counts = [storage.hit("k", WINDOW_SECONDS, ceiling=31)[0] for _ in range(3)]

    assert counts == [1, 2, 3] or counts == [31, 31, 31]
    assert json.loads(path.read_bytes())["count"] == counts[-1]


@pytest.mark.parametrize("count", ["99999999", "9" * 19, "9" * 45])
def test_without_a_ceiling_a_count_out_of_range_is_no_error(storage, tmp_path, clock, count):
    window_file(tmp_path, "k").write_bytes(record(count, soon(clock)))

    first, second = [storage.hit("k", WINDOW_SECONDS)[0] for _ in range(2)]

    assert first >= 1
    assert second >= first
    assert json.loads(window_file(tmp_path, "k").read_bytes())["count"] == second


def test_a_reset_far_in_the_future_is_clamped_to_one_window_from_now(storage, tmp_path, clock):
    path = window_file(tmp_path, "k")
    path.write_bytes(record(5, "99999999999.000"))

    count, reset_at = storage.hit("k", WINDOW_SECONDS)

    assert count == 6
    assert reset_at == pytest.approx(clock.now_ms() / 1000 + WINDOW_SECONDS, abs=0.0005)
    clock.advance(WINDOW_SECONDS - 0.001)
    assert storage.hit("k", WINDOW_SECONDS) == (7, reset_at)
    clock.advance(0.001)
    assert storage.hit("k", WINDOW_SECONDS)[0] == 1


def test_a_clamped_end_is_kept_even_when_the_count_has_reached_the_ceiling(storage, tmp_path, clock):
    window_file(tmp_path, "k").write_bytes(record(31, "99999999999.000"))

    _, reset_at = storage.hit("k", WINDOW_SECONDS, ceiling=31)
    clock.advance(WINDOW_SECONDS - 0.001)

    assert storage.hit("k", WINDOW_SECONDS, ceiling=31) == (31, reset_at)
    clock.advance(0.001)
    assert storage.hit("k", WINDOW_SECONDS, ceiling=31)[0] == 1


def test_the_file_holds_one_record_of_fixed_size_padded_with_spaces(storage, tmp_path, clock):
    for hits in range(1, 12):
        count, reset_at = storage.hit("k", WINDOW_SECONDS)
        raw = window_file(tmp_path, "k").read_bytes()
        assert raw == record(hits, f"{reset_at:.3f}").ljust(RECORD_BYTES)
        assert count == hits


def test_the_files_name_is_the_sha256_of_the_key(storage, tmp_path):
    storage.hit("acquire\x00300\x0060\x00ip:192.0.2.1", WINDOW_SECONDS)

    assert [path.name for path in tmp_path.iterdir()] == [
        "d55a7ccc192d47082353af450f501206cd24c252c38f1b9f94bae916f6e5b637.json"
    ]


def test_a_deleted_file_is_a_new_window(storage, tmp_path):
    storage.hit("k", WINDOW_SECONDS)
    window_file(tmp_path, "k").unlink()

    assert storage.hit("k", WINDOW_SECONDS)[0] == 1
    assert storage.hit("k", WINDOW_SECONDS)[0] == 2


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    raw=st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["count", "reset_at", "x"]), inner, max_size=3)
            ),
            max_leaves=5,
        ).map(lambda value: json.dumps(value).encode()),
        st.tuples(st.integers() | st.floats(), st.integers() | st.floats()).map(
            lambda pair: json.dumps({"count": pair[0], "reset_at": pair[1]}).encode()
        ),
    )
)
def test_no_content_is_an_error_and_none_makes_a_window_longer_or_uncounted(storage, tmp_path, clock, raw):
    window_file(tmp_path, "k").write_bytes(raw)

    count, reset_at = storage.hit("k", WINDOW_SECONDS, ceiling=31)
    next_count, next_reset_at = storage.hit("k", WINDOW_SECONDS, ceiling=31)

    now = clock.now_ms() / 1000
    assert 1 <= count <= 31
    assert now < reset_at <= now + WINDOW_SECONDS + 0.0005
    assert math.isclose(next_reset_at, reset_at, abs_tol=0.0005)
    assert next_count == min(31, count + 1)
