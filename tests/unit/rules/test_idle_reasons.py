"""Why an open run stands still, in one sentence."""

import pytest

from farm.rules.presenting.idle_reasons import Waiting, idle_reason


@pytest.mark.parametrize(
    ("waiting", "sentence"),
    [
        (Waiting(), ""),
        (Waiting(preparing=1), "1 block waits for variants and inputs, which are being prepared."),
        (Waiting(preparing=3), "3 blocks wait for variants and inputs, which are being prepared."),
        (
            Waiting(preparing=1, trials=["bench-1 is installing OpenVINO to try it, about a minute."]),
            "bench-1 is installing OpenVINO to try it, about a minute. This run starts when it has.",
        ),
        (
            Waiting(queued=1, nodes=1, told=["bench-1: another measurement holds this machine since 07:12"]),
            "bench-1: another measurement holds this machine since 07:12",
        ),
        (
            Waiting(queued=2, hardware=["cuda"]),
            "No node that takes blocks for cuda is online. Start one, or add a node.",
        ),
        (
            Waiting(queued=1, hardware=["cpu"], offline=["bench-1", "bench-2"]),
            "No node that takes blocks for cpu is online. Start bench-1 or bench-2, or add a node.",
        ),
        (
            Waiting(queued=1, hardware=["cpu"], only=["bench-2 (offline)"]),
            "Only bench-2 (offline) may measure what is left. For other nodes, start a new run.",
        ),
        (Waiting(queued=2), "No node that takes blocks for this hardware is online. Start one, or add a node."),
        (
            Waiting(queued=1, nodes=1, busy=["bench-1 has been measuring run 12 since 07:12 UTC"]),
            "Queued: bench-1 has been measuring run 12 since 07:12 UTC.",
        ),
        (Waiting(queued=1, nodes=2, spent="Team “a” has no minutes left."), "Team “a” has no minutes left."),
        (Waiting(queued=1, nodes=2), "Queued: a node takes the next block within seconds."),
    ],
)
def test_a_standstill_has_its_reason(waiting: Waiting, sentence: str) -> None:
    assert idle_reason(waiting) == sentence
