"""What answers in place of a service whose settings are not acceptable; loaded only then."""

from __future__ import annotations

from app.api import Service
from app.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from app.clock import SystemClock
    from app.errors import Unavailable


def failed_service(reason: Unavailable, clock: SystemClock) -> Service:
    """Return a service that tells the reason wherever it would need its settings.

    Args:
        reason: what the operator has to mend.
        clock: gives the present instant in milliseconds.
    """

    def fail(*_: object) -> Any:
        raise reason

    throttle: Any = type("FailedThrottle", (), {"count": fail})()
    return Service(Settings({}), clock, fail, throttle, sweep_a_share=lambda: None)
