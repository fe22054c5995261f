"""The golden self-test: what a node says of it decides whether it may work."""

from farm.contract.node import SelfTest
from farm.fleet.models import Node
from farm.fleet.services.health import quarantine

# so many times its first self-test a node may take: beyond what a busy minute does, within what is still the same node
LATENCY_BAND = 3.0


def keep_self_test(*, node: Node, test: SelfTest | None) -> None:
    """Keeps the newest self-test; one that fails, or takes far longer than the first, quarantines the node."""
    if test is None:
        return
    node.self_test_json = test.model_dump(mode="json")
    if node.self_test_ms is None and test.passed and not node.is_emulated:
        node.self_test_ms = test.p50_ms
    node.save(update_fields=["self_test_json", "self_test_ms"])
    problem = what_is_wrong(test, first_ms=node.self_test_ms)
    if problem:
        quarantine(node=node, reason=problem)


def what_is_wrong(test: SelfTest, *, first_ms: float | None) -> str:
    """Why a node with this self-test may not work, in one sentence; empty when it may."""
    if not test.passed:
        return f"Its self-test failed: {test.sentence}"[:500]
    if first_ms is None or test.p50_ms is None or test.p50_ms <= LATENCY_BAND * first_ms:
        return ""
    return (
        f"Its self-test takes {test.p50_ms:.3g} ms, {test.p50_ms / first_ms:.1f} times as long as at first "
        f"({first_ms:.3g} ms): see what else runs on it and how hot it is, or resume it to take this as its new pace."
    )
