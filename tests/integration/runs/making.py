"""Makes nodes, inspected versions, runs and whole blocks of reports, without a workshop and without a node."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from farm.accounts.models import Membership, Team, User
from farm.accounts.states import Role
from farm.contract import signatures
from farm.contract.blocks import Lease
from farm.contract.node import ACCURACIES, MODELS
from farm.contract.reports import EndReport, Reply, Report
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth, NodeState
from farm.registry.models import Artifact, ArtifactFile, Blob, Model, Preparation, Variant, Version
from farm.registry.states import FileRole, MakingState, VersionState
from farm.runs import services
from farm.runs.models import Block, Run
from farm.workshop.inspection import Inspection
from tests.unit.rules.making import make_check, make_facts, make_rounds

UNDERSTOOD = frozenset({ACCURACIES, MODELS})
PAIR = {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}


def make_node(team: Team, *, name: str = "bench-1", owner: User | None = None, **changes: Any) -> Node:
    """A node that is there, approved and sandboxed; without an owner of its own, one of the team's members has it."""
    known: dict[str, Any] = {
        "health": NodeHealth.ACTIVE,
        "state": NodeState.ONLINE,
        "sandbox": "landlock",
        "tags": {"cpu": "a probe's trace", "x86": "x86_64"},
        "providers": ["CPUExecutionProvider"],
        "facts_json": make_facts().facts.model_dump(mode="json"),
        "seen_at": "2026-01-01T00:00:00Z",
    }
    key = signatures.derive_public_key(signatures.make_private_key())
    known |= {"owner": owner or _keeper(team), "public_key": key, "fingerprint": signatures.make_fingerprint(key)}
    return Node.objects.create(team=team, name=name, **{**known, **changes})


def _keeper(team: Team) -> User:
    """A member of the team whose nodes these are."""
    keeper, _ = User.objects.get_or_create(username=f"keeper of {team.name}")
    Membership.objects.get_or_create(team=team, user=keeper, defaults={"role": Role.MEMBER})
    return keeper


def make_version(team: Team, *, name: str = "encoder", **found: Any) -> Version:
    """A version as inspection leaves it; its one file is not really stored."""
    known: dict[str, Any] = {"opsets": {"": 17}, "ir_version": 8, "batch": "N", "dims": ("N",)}
    inspection = Inspection(ok=True, **{**known, **found})
    model, _ = Model.objects.get_or_create(team=team, name=name)
    artifact = make_artifact(team, name)
    return Version.objects.create(
        model=model,
        number=model.versions.count() + 1,
        artifact=artifact,
        state=VersionState.READY,
        inspection=inspection.model_dump(mode="json"),
    )


def make_artifact(team: Team, name: str) -> Artifact:
    blob = make_blob(team, f"{name}.onnx")
    artifact = Artifact.objects.create(team=team, sha256=blob.sha256, main=f"{name}.onnx", bytes=blob.bytes)
    ArtifactFile.objects.create(artifact=artifact, blob=blob, name=f"{name}.onnx", role=FileRole.MODEL)
    return artifact


def make_blob(team: Team, text: str) -> Blob:
    from hashlib import sha256

    digest = sha256(text.encode()).hexdigest()
    return Blob.objects.get_or_create(team=team, sha256=digest, defaults={"bytes": len(text)})[0]


def prepare_all(team: Team) -> None:
    """What the `prepare` workers would do: every variant and preparation becomes ready."""
    for variant in Variant.objects.filter(artifact__team=team).exclude(state=MakingState.READY):
        derived = make_artifact(team, f"derived-{variant.pk}")
        Variant.objects.filter(pk=variant.pk).update(state=MakingState.READY, derived=derived)
    inputs = make_blob(team, "inputs")
    Preparation.objects.filter(artifact__team=team).update(
        state=MakingState.READY, inputs=inputs, reference=make_blob(team, "reference"), reference_of="expected"
    )


def make_run(
    version: Version, by: User, *, matrix: Mapping[str, Any] | None = None, is_prepared: bool = True, **settings: Any
) -> Run:
    """A started run; when prepared, its blocks are queued."""
    run = services.start_run(version=version, matrix={**settings, "matrix": dict(matrix or PAIR)}, requested_by=by)
    if is_prepared:
        prepare_all(version.model.team)
        services.release_ready_blocks()
    return run


def first_block(run: Run) -> Block:
    return run.blocks.select_related("run").order_by("number")[0]


def claim(node: Node, block: Block, *, understands: Collection[str] = UNDERSTOOD) -> Lease:
    block.refresh_from_db()
    return services.claim_block(
        node=node, block_id=str(block.pk), attempt=block.attempt, understands=frozenset(understands)
    )


def post(node: Node, lease: Lease, report: Report) -> Reply:
    """Says it to the farm, and settles what that ends, as the farm's own worker does."""
    reply = say(node, lease, report)
    if isinstance(report, EndReport):
        services.settle(block_id=int(lease.order.block), attempt=lease.order.attempt)
    return reply


def say(node: Node, lease: Lease, report: Report) -> Reply:
    order = lease.order
    return services.accept_report(
        node=node, block_id=order.block, attempt=order.attempt, token=lease.token, report=report
    )


def reports_of(lease: Lease, medians: Mapping[int, float], *, rounds: int = 8, **options: Any) -> list[Report]:
    """Everything a node says about a block up to its end, numbered as the lease asks."""
    first = lease.order.first_round
    made = [one for one in make_rounds(rounds, medians, **options)]
    numbered = [one.model_copy(update={"round": first + number}) for number, one in enumerate(made)]
    return [make_facts(), *(make_check(arm) for arm in medians), *numbered]


def measure(node: Node, block: Block, medians: Mapping[int, float] | Sequence[float], **options: Any) -> list[Reply]:
    """A whole attempt, from claim to end; gives the replies."""
    lease = claim(node, block)
    by_arm = medians if isinstance(medians, Mapping) else dict(enumerate(medians))
    replies = [post(node, lease, report) for report in reports_of(lease, by_arm, **options)]
    return [*replies, post(node, lease, EndReport(wall_s=1.0))]
