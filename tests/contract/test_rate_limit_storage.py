"""The rules of the rate-limit storage, for every implementation."""

from __future__ import annotations

import pytest


def test_the_first_hit_opens_a_window_of_the_asked_length(storage, clock):
    count, reset_at = storage.hit("k", 60)

    assert count == 1
    assert reset_at == pytest.approx(clock.now_ms() / 1000 + 60, abs=0.0005)


def test_hits_are_counted_one_by_one(storage):
    assert [storage.hit("k", 60)[0] for _ in range(40)] == list(range(1, 41))


def test_the_end_of_a_window_never_moves_while_it_lives(storage, clock):
    _, reset_at = storage.hit("k", 60)

    ends = []
    for _ in range(59):
        clock.advance(1)
        ends.append(storage.hit("k", 60)[1])

    assert ends == [reset_at] * 59


def test_a_window_counts_to_the_last_millisecond_and_starts_anew_at_its_end(storage, clock):
    _, reset_at = storage.hit("k", 60)
    clock.advance(59.999)
    assert storage.hit("k", 60) == (2, reset_at)

    clock.advance(0.001)
    count, next_reset_at = storage.hit("k", 60)

    assert count == 1
    assert next_reset_at == pytest.approx(reset_at + 60, abs=0.0005)


def test_a_window_starts_at_the_first_hit_and_not_on_a_grid(storage, clock):
    storage.hit("k", 60)
    clock.advance(75.25)

    count, reset_at = storage.hit("k", 60)

    assert count == 1
    assert reset_at == pytest.approx(clock.now_ms() / 1000 + 60, abs=0.0005)


@pytest.mark.parametrize("window_seconds", [1, 60, 3600, 86_400])
def test_a_window_is_as_long_as_asked(storage, clock, window_seconds):
    storage.hit("k", window_seconds)
    clock.advance(window_seconds - 0.001)
    assert storage.hit("k", window_seconds)[0] == 2

    clock.advance(0.001)
    assert storage.hit("k", window_seconds)[0] == 1


def test_the_count_stops_at_the_ceiling(storage):
    assert [storage.hit("k", 60, ceiling=4)[0] for _ in range(7)] == [1, 2, 3, 4, 4, 4, 4]


def test_the_ceiling_does_not_move_the_end_of_the_window(storage, clock):
    _, reset_at = storage.hit("k", 60, ceiling=2)
    for _ in range(5):
        clock.advance(10)
        assert storage.hit("k", 60, ceiling=2) == (2, reset_at)

    clock.advance(10)
    assert storage.hit("k", 60, ceiling=2)[0] == 1


def test_a_count_above_a_lowered_ceiling_is_cut_to_it(storage):
    for _ in range(10):
        storage.hit("k", 60)

    assert storage.hit("k", 60, ceiling=3)[0] == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "b"), ("a", "A"), ("a", "a "), ("a\0b", "ab"), ("a\0b", "a\0b\0"), ("\u00e9", "e\u0301"), ("", "\0")],
)
def test_keys_are_counted_apart(storage, clock, one, other):
    storage.hit(one, 60)
    storage.hit(one, 60)
    clock.advance(1)

    count, reset_at = storage.hit(other, 60)

    assert count == 1
    assert reset_at == pytest.approx(clock.now_ms() / 1000 + 60, abs=0.0005)
    assert storage.hit(one, 60)[0] == 3


@pytest.mark.parametrize("key", ["../../etc/passwd", "/", "a/b", "." * 300, "x" * 100_000, "\n", "\0", "%2F", "C:\\"])
def test_any_text_is_a_key(storage, key):
    assert [storage.hit(key, 60)[0] for _ in range(2)] == [1, 2]


def test_a_clock_that_steps_back_leaves_no_window_longer_than_its_length(storage, clock):
    storage.hit("k", 60)
    clock.advance(-3600)

    count, reset_at = storage.hit("k", 60)

    assert count == 2
    assert reset_at <= clock.now_ms() / 1000 + 60 + 0.0005
    clock.advance(60)
    assert storage.hit("k", 60)[0] == 1


def test_after_a_step_back_a_full_window_still_ends(storage, clock):
    for _ in range(5):
        storage.hit("k", 60, ceiling=3)
    clock.advance(-3600)
    _, reset_at = storage.hit("k", 60, ceiling=3)

    for _ in range(5):
        clock.advance(10)
        assert storage.hit("k", 60, ceiling=3) == (3, reset_at)

    clock.advance(10)
    assert storage.hit("k", 60, ceiling=3)[0] == 1


def test_a_clock_that_steps_forth_opens_a_new_window(storage, clock):
    storage.hit("k", 60)
    clock.advance(3600)

    count, reset_at = storage.hit("k", 60)

    assert count == 1
    assert reset_at == pytest.approx(clock.now_ms() / 1000 + 60, abs=0.0005)


def test_the_count_is_a_whole_number_and_the_end_a_float(storage):
    count, reset_at = storage.hit("k", 60)

    assert type(count) is int
    assert type(reset_at) is float
