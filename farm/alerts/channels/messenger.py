"""A process that sends one notice through apprise and ends: `python -m farm.alerts.channels.messenger`.

Apprise's services make their connections themselves, and wait as long as a service tells them to. Here each connection
is judged and pinned (farm.alerts.channels.pins), and whoever started the process ends it when its time is over.

Takes an order as JSON on its input, and answers one line of JSON: `problem`, null when the notice was taken, and
`is_permanent`.
"""

import json
import sys
from typing import Protocol

from farm.alerts.channels.channel_kind import DeliveryProblem
from farm.alerts.channels.pins import Pins

OK = {"problem": None, "is_permanent": False}


class Notifier(Protocol):
    """One of apprise's services, with its address read."""

    def notify(self, *, title: str, body: str) -> bool: ...


def loaded(url: str) -> Notifier | None:
    """Apprise's own object for a checked address, which keeps nothing on disk; None when it cannot be read."""
    from apprise import Apprise, AppriseAsset
    from apprise.common import PersistentStoreMode

    asset = AppriseAsset(http_redirects=False, storage_mode=PersistentStoreMode.MEMORY)
    notifier: Notifier | None = Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    return notifier


def send(url: str, *, subject: str, text: str, pins: Pins) -> None:
    """Sends one notice. Raises DeliveryProblem: permanent where the service's host may not be reached."""
    plugin = loaded(url)
    pins.take_over()
    if plugin is None or not plugin.notify(title=subject, body=text):
        raise pins.problem or DeliveryProblem("The service did not accept the message.")


def main() -> int:
    """Reads the order, and answers."""
    order = json.load(sys.stdin)
    problem: DeliveryProblem | None = None
    try:
        send(order["url"], subject=order["subject"], text=order["text"], pins=Pins(order["networks"]))
    except DeliveryProblem as raised:
        problem = raised
    answer = {"problem": str(problem), "is_permanent": problem.is_permanent} if problem else OK
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
