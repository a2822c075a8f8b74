"""What a request does after its answer costs the client nothing."""

from __future__ import annotations


def test_the_client_is_served_before_its_request_does_a_share_of_the_clean_up(hosting):
    """The stand-in for the clean-up waits for a file that is made when the answer is here."""
    var = hosting.top / "share" / "var"
    for path in var.glob("answer-came*"):
        path.unlink()
    client = hosting.client("share.test")
    for number in range(2):
        with client.connect() as connection:
            answer = connection.ask("POST", f"/locks/{number}", {"owner": "alice", "ttl_seconds": 60})
            assert answer.status == 200, answer
            (var / "answer-came").touch()
            hosting.wait_until_idle()
            assert (var / "answer-came-first").exists(), "the answer came after the clean-up"
            (var / "answer-came-first").unlink()
