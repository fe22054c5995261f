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
    """One of apprise's services, made for an address."""

    def notify(self, *, title: str, body: str) -> bool: ...


def load_notifier(url: str) -> Notifier | None:
    """Return apprise's notifier for an address; None where apprise cannot read it. It keeps nothing on disk."""
    from apprise import Apprise, AppriseAsset
    from apprise.common import PersistentStoreMode

    asset = AppriseAsset(http_redirects=False, storage_mode=PersistentStoreMode.MEMORY)
    notifier: Notifier | None = Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    return notifier


def send(url: str, *, subject: str, text: str, pins: Pins) -> None:
    """Send one notice, once all connections of the process are pinned. Raises DeliveryProblem where the service did not
    take it, permanent where its host may not be reached."""
    plugin = load_notifier(url)
    pins.pin_process()
    if plugin is None or not plugin.notify(title=subject, body=text):
        raise pins.problem or DeliveryProblem("The service did not accept the message.")


def main() -> int:
    """Read the order from the input, send the notice, print the answer, and return 0."""
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
