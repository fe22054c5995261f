"""Why an open run stands still, in one sentence."""

from datetime import UTC, datetime

import pytest

from farm.contract.node import NodeSettings
from farm.rules.presenting.idle_reasons import Waiting, describe_unavailable_node, explain_idle_run, explain_pause


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
            Waiting(queued=1, nodes=1, obstacles=["bench-1: another measurement holds this machine since 07:12"]),
            "bench-1: another measurement holds this machine since 07:12",
        ),
        (
            Waiting(queued=2, hardware=["cuda"], team="b"),
            "No node that takes blocks of “b” for cuda is online. Start one, or add a node.",
        ),
        (
            Waiting(queued=1, hardware=["cpu"], offline=["bench-1", "bench-2"], team="b"),
            "No node that takes blocks of “b” for cpu is online. Start bench-1 or bench-2, or add a node.",
        ),
        (
            Waiting(queued=1, hardware=["cpu"], bound_nodes=["bench-2 (offline)"]),
            "Only bench-2 (offline) may measure what is left. For other nodes, start a new run.",
        ),
        (
            Waiting(queued=2, team="b"),
            "No node that takes blocks of “b” for this hardware is online. Start one, or add a node.",
        ),
        (
            Waiting(
                queued=1, hardware=["cpu"], unavailable=[describe_unavailable_node("bench-1", "paused by its owner")]
            ),
            "No node takes this run's blocks for cpu now: bench-1 is online but paused by its owner. To begin sooner, "
            "add a node.",
        ),
        (
            Waiting(queued=1, hardware=["cpu"], unavailable=["bench-1 is online but draining"], offline=["bench-2"]),
            "No node takes this run's blocks for cpu now: bench-1 is online but draining. To begin sooner, start "
            "bench-2, or add a node.",
        ),
        (
            Waiting(queued=1, nodes=1, busy=["bench-1 has been measuring run 12 since 07:12 UTC"]),
            "Queued: bench-1 has been measuring run 12 since 07:12 UTC.",
        ),
        (Waiting(queued=1, nodes=2, used_up_minutes="Team “a” has no minutes left."), "Team “a” has no minutes left."),
        (Waiting(queued=1, nodes=2), "Queued: a node takes the next block within seconds."),
    ],
)
def test_a_standstill_has_its_reason(waiting: Waiting, sentence: str) -> None:
    assert explain_idle_run(waiting) == sentence


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, ""),
        ({"hours": "09:00-17:00"}, ""),
        ({"hours": "20:00-06:00"}, "outside its owner's hours until 20:00 UTC"),
        ({"hours": "20:00-06:00", "is_paused": True}, "paused by its owner"),
    ],
)
def test_the_owner_s_limits_say_until_when_a_node_is_kept(limits, words) -> None:
    assert explain_pause(NodeSettings(**limits), datetime(2026, 11, 27, 12, tzinfo=UTC)) == words
