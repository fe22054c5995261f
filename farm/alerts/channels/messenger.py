"""A process that sends one notice through apprise and ends: `python -m farm.alerts.channels.messenger`.

Apprise makes its connections itself, and waits as long as a service tells it to. In this process each connection is
judged and pinned (farm.alerts.channels.pins), and the parent ends the process when its time is over.

The process reads an order as JSON from its input, and prints one line of JSON: `problem`, null where the service took
the notice, and `is_permanent`.
"""

import json
import sys
from typing import Protocol

from farm.alerts.channels.channel_kind import DeliveryProblem
from farm.alerts.channels.pins import Pins

OK = {"problem": None, "is_permanent": False}


class Notifier(Protocol):
    """One of apprise's services, made for an address."""

    def notify(self, *, title: str, body: str) -> bool: ...


def load_notifier(url: str) -> Notifier | None:
    """Return apprise's notifier for an address, which stores nothing on disk; None where apprise cannot read it."""
    from apprise import Apprise, AppriseAsset
    from apprise.common import PersistentStoreMode

    asset = AppriseAsset(http_redirects=False, storage_mode=PersistentStoreMode.MEMORY)
    notifier: Notifier | None = Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    return notifier


def send(url: str, *, subject: str, text: str, pins: Pins) -> None:
    """Pin all connections of the process, and send one notice.

    Raises DeliveryProblem where the service did not take it, and a permanent one where its host may not be reached.
    """
    plugin = load_notifier(url)
    pins.pin_process()
    if plugin is None or not plugin.notify(title=subject, body=text):
        raise pins.problem or DeliveryProblem("The service did not accept the message.")


def main() -> int:
    """Read the order from the input, send the notice, print the answer, and return 0, also where sending failed."""
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
