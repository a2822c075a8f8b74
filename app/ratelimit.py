"""The rules of the rate limits: which budget, which client, which window, which headers.

Pure: nothing here reads a clock or touches a disk. A window is fixed: it begins with a client's first hit, and its end
never moves while it lives. So twice the limit can pass around one end; that is the price of one small record a client.
"""

from __future__ import annotations

#: policy -> (limit, window in seconds). Renew and release have a budget of their own, so that a client which acquires
#: too often is never throttled into losing what it holds.
DEFAULT_RATE_LIMITS = {
    "acquire": (300, 60),
    "hold": (1200, 60),
    "read": (600, 60),
    "auth": (30, 3600),
}
#: policies that refuse when they cannot count; the others let the request pass
FAIL_CLOSED = ("auth",)

UNKNOWN_CLIENT = "ip:unknown"
#: the record has one length, so that one write replaces it whole and nothing of an older one is left behind it
RECORD_BYTES = 64
#: larger numbers in a record are damage: no count and no time gets there
_PLAUSIBLE = 10**12


def window_key(policy: str, limit: int, window_seconds: int, client: str) -> str:
    """Return the name of a client's window; a changed setting starts a fresh one."""
    return f"{policy}\0{limit}\0{window_seconds}\0{client}"


def advance(window: tuple[int, int] | None, now_ms: int, window_ms: int, ceiling: int | None = None) -> tuple[int, int]:
    """Return the window after one more hit.

    Args:
        window: (count, end in milliseconds since 1970), or None when there is none.
        now_ms: the instant of the hit.
        window_ms: the length of a window.
        ceiling: the count goes no further.

    Returns:
        The new (count, end). An end further away than a whole window was written by a clock that has stepped back
        since, and is brought near.
    """
    if window is None or now_ms >= window[1]:
        return 1, now_ms + window_ms
    count = window[0] + 1
    return count if ceiling is None else min(count, ceiling), min(window[1], now_ms + window_ms)


def read_window(record: object) -> tuple[int, int] | None:
    """Return (count, end in milliseconds) of a decoded record, or None when it is not a window."""
    if not isinstance(record, dict):
        return None
    count, reset_at = record.get("count"), record.get("reset_at")
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < _PLAUSIBLE:
        return None
    if isinstance(reset_at, bool) or not isinstance(reset_at, (int, float)) or not 0 <= reset_at < _PLAUSIBLE:
        return None
    return count, round(reset_at * 1000)


def write_window(window: tuple[int, int]) -> bytes:
    """Return the record of a window, RECORD_BYTES long."""
    count, reset_at_ms = window
    record = f'{{"count": {count}, "reset_at": {reset_at_ms // 1000}.{reset_at_ms % 1000:03d}}}'
    return record.ljust(RECORD_BYTES).encode("ascii")


def reset_after_seconds(reset_at: float, now_ms: int, window_seconds: int) -> int:
    """Return the whole seconds until the window ends: at least 1, at most its length."""
    return min(window_seconds, max(1, -((now_ms - round(reset_at * 1000)) // 1000)))


def quota_headers(
    policy: str, limit: int, window_seconds: int, count: int, reset_seconds: int
) -> list[tuple[str, str]]:
    """Return the headers of an answer that was counted (IETF draft-ietf-httpapi-ratelimit-headers)."""
    return [
        ("RateLimit-Policy", f'"{policy}";q={limit};w={window_seconds}'),
        ("RateLimit", f'"{policy}";r={max(0, limit - count)};t={reset_seconds}'),
    ]


def client_key(remote_addr: str, forwarded_for: str, trusted_hops: int) -> str:
    """Return the name of the client whose hits are counted together.

    Args:
        remote_addr: the address of the peer.
        forwarded_for: the X-Forwarded-For header, or "".
        trusted_hops: how many entries of it, from the right, the operator's own proxies have written. The last of
            them names the client. With fewer entries the request came past the proxies, and its peer is the client.

    Returns:
        ``ip:`` and an IPv4 address or the /64 of an IPv6 address (one customer has at least that many), or
        ``ip:unknown`` for what is no address.
    """
    address = remote_addr
    if trusted_hops:
        entries = forwarded_for.split(",")
        if len(entries) >= trusted_hops and forwarded_for.strip():
            address = _without_port(entries[-trusted_hops].strip())
    address = address.strip()
    if _ipv4_octets(address):
        return "ip:" + address
    groups = _ipv6_groups(address)
    if groups is None:
        return UNKNOWN_CLIENT
    if groups[:5] == [0, 0, 0, 0, 0] and groups[5] == 0xFFFF:
        return f"ip:{groups[6] >> 8}.{groups[6] & 255}.{groups[7] >> 8}.{groups[7] & 255}"
    return "ip:" + ":".join(f"{group:x}" for group in groups[:4]) + "::/64"


def _without_port(entry: str) -> str:
    """Return the address of an entry; some proxies write the client's port behind it, as in 192.0.2.1:443."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry


def _ipv4_octets(address: str) -> list[int] | None:
    """Return the four numbers of a dotted address, or None; like inet_pton, without leading zeros."""
    parts = address.split(".")
    if len(parts) != 4:
        return None
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) <= 3 and int(part) <= 255 and str(int(part)) == part):
            return None
    return [int(part) for part in parts]


def _ipv6_groups(address: str) -> list[int] | None:
    """Return the eight 16-bit groups of an IPv6 address (RFC 4291, 2.2), or None. A zone is left out."""
    address = address.partition("%")[0]
    head, gap, tail = address.partition("::")
    left = _groups(head, last=not gap)
    right = _groups(tail, last=True)
    if left is None or right is None:
        return None
    missing = 8 - len(left) - len(right)
    if missing < 1 if gap else missing:
        return None
    return left + [0] * missing + right


def _groups(text: str, last: bool) -> list[int] | None:
    if not text:
        return []
    groups = []
    parts = text.split(":")
    for number, part in enumerate(parts, 1):
        octets = _ipv4_octets(part) if last and number == len(parts) else None
        if octets:
            groups += [octets[0] << 8 | octets[1], octets[2] << 8 | octets[3]]
        elif 1 <= len(part) <= 4 and all(digit in "0123456789abcdefABCDEF" for digit in part):
            groups.append(int(part, 16))
        else:
            return None
    return groups
