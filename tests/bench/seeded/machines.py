"""Teams, people, models with versions, and nodes with their A/A history, in bulk."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from farm.accounts.models import AuditEvent, Membership, Team, User
from farm.accounts.states import Role
from farm.contract.base import digest_json
from farm.contract.cells import Recipe, Workload
from farm.fleet.models import Node, NodeEvent, NullEstimate
from farm.fleet.selectors.noise import estimate_noise_floor
from farm.fleet.states import NodeEventKind, NodeHealth, NodeState
from farm.registry.models import Artifact, ArtifactFile, Blob, Model, Preparation, Variant, Version
from farm.registry.states import FileRole, MakingState, VersionState
from tests.bench.seeded.writing import Writer
from tests.integration.dashboard.rows import CPU, INSPECTION

FAMILIES = ("encoder", "detector", "ranker", "speech", "ocr", "segmenter", "translator", "embedder", "classifier")
SIZES = ("tiny", "small", "base", "large", "xl")
LABELS = ("production", "nightly", "mobile", "server", "team-a", "team-b", "experiment", "public")
PROCESSORS = ("AMD EPYC 7763", "AMD EPYC 9654", "Intel Xeon 8488C", "Intel Core i7-12700", "Ampere Altra", "Apple M2")
RELEASES = ("1.24.4", "1.25.1", "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.0", "1.31.1")
PRECISIONS = ("fp32", "int8-dynamic")
BATCHES = (1, 2, 4, 8, 16, 32)
PAIRS_A_NODE = 200
HEALTHS = (NodeHealth.ACTIVE, NodeHealth.DRAINING, NodeHealth.QUARANTINED, NodeHealth.PENDING)


@dataclass
class People:
    """The team whose pages are measured, another one beside it, and who is in them."""

    team: Team
    other: Team
    reader: User
    everybody: list[User]


def people(writer: Writer) -> People:
    """Two teams; the reader is an ordinary member of one of them."""
    team, other = Team.objects.create(name="vision"), Team.objects.create(name="elsewhere")
    users = [User.objects.create(username=f"person-{number}") for number in range(20)]
    for number, user in enumerate(users):
        role = Role.ADMIN if number == 0 else Role.MEMBER
        Membership.objects.create(team=team if number % 10 else other, user=user, role=role)
    Membership.objects.create(team=team, user=users[0], role=Role.ADMIN)
    return People(team, other, users[0], users)


@dataclass
class Line:
    """A version that was measured, with what its runs need."""

    version: Version
    variants: dict[str, Variant]
    preparations: dict[str, Preparation]


def models(writer: Writer, dice: random.Random, folk: People, count: int, *, since: datetime) -> list[Line]:
    """So many models with one to five versions each; a tenth belongs to the other team. Newest versions of each."""
    lines = []
    for number in range(count):
        team = folk.other if number % 10 == 9 else folk.team
        by = dice.choice(folk.everybody)
        at = since + timedelta(days=150 * number / count)
        name = f"{dice.choice(FAMILIES)}-{dice.choice(SIZES)}-{number:04d}"
        labels = dice.sample(LABELS, dice.randint(0, 3))
        model = writer.add(Model(team=team, name=name, labels=labels, created_by=by, created_at=at))
        for version in range(1, 1 + dice.choice((1, 1, 1, 2, 2, 3, 5))):
            line = _version(writer, model, version, by, at + timedelta(days=version))
        lines.append(line)
    return lines


def _version(writer: Writer, model: Model, number: int, by: User, at: datetime) -> Line:
    team, sha256 = model.team, digest_json([model.name, number])
    blob = writer.add(Blob(team=team, sha256=sha256, bytes=4_321_000, created_at=at))
    artifact = writer.add(Artifact(team=team, sha256=sha256, main=f"{model.name}.onnx", bytes=4_321_000, created_at=at))
    writer.add(ArtifactFile(artifact=artifact, blob=blob, name=artifact.main, role=FileRole.MODEL))
    kept = {"state": VersionState.READY, "inspection": INSPECTION, "uploaded_by": by, "asked_at": at, "created_at": at}
    version = writer.add(Version(model=model, number=number, artifact=artifact, **kept))
    made = {"state": MakingState.READY, "finished_at": at, "asked_at": at, "created_at": at}
    variants, preparations = {}, {}
    for precision in PRECISIONS:
        recipe = Recipe(precision=precision)
        row = Variant(artifact=artifact, recipe_json=recipe.model_dump(mode="json"), derived=artifact, **made)
        row.recipe_sha256 = digest_json(row.recipe_json)
        variants[precision] = writer.add(row)
    for batch in BATCHES:
        workload = Workload(batch=batch).model_dump(mode="json")
        prepared = Preparation(artifact=artifact, workload_json=workload, inputs=blob, reference=blob, **made)
        prepared.workload_sha256 = digest_json(workload)
        prepared.reference_of = "onnxruntime==1.31.1 CPU, no optimisations"
        preparations[str(batch)] = writer.add(prepared)
    return Line(version, variants, preparations)


def nodes(writer: Writer, dice: random.Random, folk: People, count: int, *, now: datetime) -> list[Node]:
    """So many nodes, most of them there, with runtimes, a log and A/A pairs of the last months."""
    return [_node(writer, dice, folk, number, now) for number in range(count)]


def _node(writer: Writer, dice: random.Random, folk: People, number: int, now: datetime) -> Node:
    name = f"bench-{number:03d}"
    away = dice.random() < 0.05
    health = dice.choices(HEALTHS, (92, 3, 3, 2))[0]
    installed = dice.sample(RELEASES, dice.randint(2, len(RELEASES)))
    with_openvino = number % 4 == 0
    facts = {
        "hostname": name, "os": "Linux 6.12", "arch": "x86_64", "cpu_model": dice.choice(PROCESSORS),
        "logical_cores": dice.choice((2, 8, 16, 64)), "physical_cores": 4, "memory_bytes": 64_000_000_000,
        "sandbox": "landlock",
    }  # fmt: skip
    verdicts = dice.choices(("undecided", "equal", "slower"), (90, 9.5, 0.5), k=PAIRS_A_NODE)
    pairs = [[dice.gauss(0, 0.01) for _ in range(8)] for _ in range(PAIRS_A_NODE)]
    floor = estimate_noise_floor([(ratios, sum(ratios) / 8) for ratios in pairs])
    assert floor is not None
    tags = {"cpu": "probe trace: 3 nodes on CPUExecutionProvider", "x86": "platform says x86_64"}
    node = writer.add(
        Node(
            team=folk.team, owner=dice.choice(folk.everybody), name=name, public_key=digest_json(name)[:44],
            fingerprint="SHA256:" + digest_json(name)[:24], health=health, facts_json=facts,
            state=NodeState.OFFLINE if away else NodeState.ONLINE,
            tags={**tags, **({"openvino": "probe trace"} if with_openvino else {})},
            providers=[CPU, *(["OpenVINOExecutionProvider"] if with_openvino else [])],
            runtimes=[f"onnxruntime=={one}" for one in installed], sandbox="landlock", seen_at=now,
            log_tail="INFO block done\n" * 250, created_at=now - timedelta(days=170 - number / 2),
            null_pairs=len(verdicts), null_alarms=verdicts.count("slower"), null_deviation=floor.deviation,
            null_margin=floor.margin, null_block=PAIRS_A_NODE,
        )
    )  # fmt: skip
    _history(writer, node, list(zip(verdicts, pairs, strict=True)), now)
    return node


def _history(writer: Writer, node: Node, pairs: list[tuple[str, list[float]]], now: datetime) -> None:
    for place in range(50):
        kind = NodeEventKind.ONLINE if place % 2 else NodeEventKind.OFFLINE
        at = now - timedelta(hours=80 * (50 - place))
        writer.add(NodeEvent(node=node, kind=kind, text=f"{node.name} is {kind.label.lower()}.", at=at))
    for place, (verdict, ratios) in enumerate(pairs):
        writer.add(
            NullEstimate(
                node=node, cell_class=f"{CPU} fp32 ×1", block=1_000_000 * node.pk + place, arm=0, twin=1, rounds=8,
                estimate=sum(ratios) / 8, log_ratios=ratios, verdict=verdict,
                at=now - timedelta(hours=20 * (PAIRS_A_NODE - place)),
            )
        )  # fmt: skip


def audit(writer: Writer, dice: random.Random, folk: People, count: int, *, now: datetime) -> None:
    """Lines of the audit log."""
    for place in range(count):
        by = dice.choice(folk.everybody)
        at = now - timedelta(minutes=10 * (count - place))
        writer.add(AuditEvent(at=at, actor=by, team=folk.team, verb="run started", subject=f"run {place}"))
