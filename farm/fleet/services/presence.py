"""Stores and answers the hellos of nodes, and marks silent nodes offline."""

import re
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from farm.base.refusals import Unprocessable
from farm.contract import version
from farm.contract.node import HOST, TRIALS, Hello, Welcome
from farm.contract.version import CONTRACT_VERSION
from farm.fleet.models import Node
from farm.fleet.services.enrolment import check_facts, check_tags
from farm.fleet.services.health import store_self_test
from farm.fleet.services.trials import start_next_trial, store_trial_result
from farm.fleet.states import NodeEventKind, NodeHealth, NodeState
from farm.rules.runtimes.observed_loads import merge_observed_loads

# a node is offline after a silence of this many pauses between hellos; until then others wait for it
SILENT_HELLOS = 1.5
# how many releases a node's row keeps, with what they were seen to load
MAX_OBSERVED = 256

SENTENCES = {
    NodeHealth.PENDING: "Waiting for approval.",
    NodeHealth.ACTIVE: "",
    NodeHealth.DRAINING: "Draining: accepts no new blocks.",
    NodeHealth.QUARANTINED: "Quarantined: accepts no blocks until an admin resumes it.",
    NodeHealth.RETIRED: "Removed from the farm.",
}


def record_hello(*, node: Node, hello: Hello, host: str = "", understands: frozenset[str] = frozenset()) -> Welcome:
    """Store a node's hello, mark it online or, when it leaves, offline, and return the answer for it.

    `host` is the node's name for its machine; it is ignored unless it is 16 hexadecimal digits. `understands` holds the
    node's abilities beyond the contract's version. Raises Unprocessable for tags without evidence or that the facts
    contradict, and for facts that are too large; the refusal is then written to the node's log, and nothing is stored.
    The answer to a node that understands trials and stays names its next trial, which begins with it. A self-test that
    differs from the one before is judged, and may quarantine the node.
    """
    try:
        check_facts(hello.facts)
        check_tags(hello.tags, hello.facts, proven=hello.providers)
    except Unprocessable as refusal:
        node.log(NodeEventKind.REFUSED, refusal.detail, code=refusal.code)
        raise
    with transaction.atomic():
        node.understands_trials = TRIALS in understands
        _store_hello(node, hello, host=host if re.fullmatch(HOST, host) else "")
        if hello.tried is not None:
            store_trial_result(node, hello.tried)
        node.change_state(NodeState.OFFLINE if hello.state == "leaving" else NodeState.ONLINE)
        if hello.state != "leaving" and hello.self_test != node.self_test:
            store_self_test(node=node, test=hello.self_test)
    answer = make_welcome(node, contract_version=hello.contract_version)
    if hello.state == "leaving" or TRIALS not in understands:
        return answer
    return answer.model_copy(update={"trial": start_next_trial(node)})


def make_welcome(node: Node, *, contract_version: int = CONTRACT_VERSION) -> Welcome:
    """Make the farm's answer to a node: its health, its queues, its owner's settings and a sentence for its terminal.

    The sentence is that of a pause by the owner's settings, or else the reason of its health, or else what its health
    means; empty for an active node without either. A node of an unsupported contract version gets no queues, and is
    told so.
    """
    if not version.is_supported(contract_version):
        sentence = (
            f"This node speaks version {contract_version} of the contract and the farm speaks "
            f"{version.describe_supported_versions()}: install the same release of onnxfarm on both. "
            "Until then it gets no blocks."
        )
        return Welcome.model_validate({"health": node.health, "settings": node.settings, "sentence": sentence})
    sentence = node.pause or node.health_reason or SENTENCES[NodeHealth(node.health)]
    return Welcome.model_validate(
        {"health": node.health, "queues": node.queues, "settings": node.settings, "sentence": sentence}
    )


def clear_doing(node: Node) -> None:
    if node.doing:
        Node.objects.filter(pk=node.pk).update(doing="")


def mark_silent_nodes_offline() -> int:
    """Mark nodes offline that have sent no hello for SILENT_HELLOS pauses between two; return how many."""
    silence = timedelta(seconds=Node().settings.hello_every_s * SILENT_HELLOS)
    silent = Node.objects.filter(state=NodeState.ONLINE, seen_at__lt=timezone.now() - silence)
    return sum(node.change_state(NodeState.OFFLINE) for node in silent)


def _log_runtimes(node: Node, hello: Hello) -> None:
    """Log runtimes that were installed or removed, so that the owner sees for which block a package was installed."""
    before, after = set(node.runtimes), {str(runtime) for runtime in hello.runtimes}
    names_by_verb = {"installed": after - before, "removed": before - after}
    changes = [f"{verb} {', '.join(sorted(names))}" for verb, names in names_by_verb.items() if names]
    if changes:
        text = f"{'; '.join(changes).capitalize()}."
        node.log(NodeEventKind.RUNTIMES, text[:1000], actor=None, **({"block": hello.block} if hello.block else {}))


def _store_hello(node: Node, hello: Hello, *, host: str) -> None:
    _log_runtimes(node, hello)
    node.contract_version = hello.contract_version
    node.facts_json = hello.facts.model_dump(mode="json")
    node.tags = dict(hello.tags)
    node.providers = list(hello.providers)
    node.runtimes = [str(runtime) for runtime in hello.runtimes]
    observed = {
        name: loads.model_dump() for name, loads in hello.loads.items() if merge_observed_loads([{name: loads}])
    }
    # the loads of releases that the node has removed stay
    node.loads = dict([*{**node.loads, **observed}.items()][-MAX_OBSERVED:])
    node.sandbox = hello.facts.sandbox
    node.is_emulated = hello.facts.is_emulated
    node.host = host
    node.log_tail = hello.log_tail
    node.seen_at = timezone.now()
    node.doing = hello.doing
    node.save(
        update_fields=[
            *("contract_version", "facts_json", "tags", "providers", "runtimes", "loads", "sandbox", "is_emulated"),
            *("host", "log_tail", "seen_at", "understands_trials", "doing"),
        ]
    )
