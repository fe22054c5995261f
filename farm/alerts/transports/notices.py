"""Chat and paging services through apprise: listed services and parameters, sent by a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from farm.alerts.transports import messenger
from farm.alerts.transports.problem import DeliveryProblem
from farm.alerts.transports.services import checked_address

WORD_JOINER = "\u2060"
# the whole of it, with the pauses that a service asks for
TOTAL_S = 30.0
# where Python and the operator's certificates are; nothing of the farm's own, and no proxy, which would look names up
_KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_ROOT = Path(__file__).resolve().parents[3]


def check(url: str) -> None:
    """Whether apprise may be given this address. Raises DeliveryProblem with what is allowed."""
    address = checked_address(url)
    if messenger.loaded(address) is None:
        scheme = address.partition(":")[0]
        raise DeliveryProblem(
            f"Apprise does not accept this {scheme}:// address: check its documentation.", is_permanent=True
        )


def send(url: str, *, subject: str, text: str, networks: Sequence[str] = (), timeout_s: float = TOTAL_S) -> None:
    """Sends one notice. Raises DeliveryProblem. The services give no way to drop a repetition."""
    address = checked_address(url)
    scheme = address.partition(":")[0]
    order = {"url": address, "subject": as_words(subject), "text": as_words(text), "networks": list(networks)}
    with tempfile.TemporaryDirectory(prefix="onnxfarm-notice-") as folder:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {"HOME": folder, "PYTHONPATH": str(_ROOT), "NO_PROXY": "*"}
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", messenger.__name__],
                input=json.dumps(order), capture_output=True, text=True, check=False,
                timeout=timeout_s, cwd=folder, env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DeliveryProblem(f"The {scheme}:// service did not finish within {timeout_s:.0f} s.") from None
    _judge(done.stdout, scheme)


def as_words(text: str) -> str:
    """The text without what these services take for a command: `<!channel>`, `@everyone`, a link with other words."""
    return text.replace("<", "‹").replace(">", "›").replace("@", f"@{WORD_JOINER}")


def _judge(said: str, scheme: str) -> None:
    try:
        answer = json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise DeliveryProblem(f"Internal error while sending to the {scheme}:// service.") from None
    if answer["problem"] is not None:
        raise DeliveryProblem(f"{scheme}://: {answer['problem']}", is_permanent=answer["is_permanent"])
