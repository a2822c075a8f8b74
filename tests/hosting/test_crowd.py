"""Many requests at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

CROWD = 40


def test_of_forty_contenders_at_once_exactly_one_wins_and_all_are_answered(site):
    with ThreadPoolExecutor(CROWD) as crowd:
        answers = list(crowd.map(lambda number: site.acquire("crowd", f"owner-{number}", 600), range(CROWD)))
    assert [answer.status for answer in answers] == [200] * CROWD
    winners = [answer.json()["lock"] for answer in answers if answer.json()["acquired"]]
    assert len(winners) == 1
    assert site.ask("GET", "/locks/crowd").json() == winners[0]
