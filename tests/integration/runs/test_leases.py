"""Who may have a block: one node, once, under the current attempt."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from farm.accounts.models import Team, User
from farm.base.refusals import Conflict, Invalid, NotAllowed, Refusal
from farm.contract.blocks import Lease
from farm.contract.reasons import ReasonCode
from farm.fleet import services as fleet
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.registry.models import Version
from farm.runs import services
from farm.runs.models import Attempt, Block, Run
from farm.runs.states import BlockState, RunState
from tests.integration.runs.making import claim, first_block, make_node, make_run
from tests.unit.rules.making import make_facts

pytestmark = pytest.mark.django_db
TWO_BLOCKS = {"runtime": ["1.31.1"], "batch": list(range(1, 40))}


def test_a_claim_repeated_by_the_same_node_gives_the_same_lease(block: Block, node: Node) -> None:
    assert claim(node, block) == claim(node, block)
    assert Attempt.objects.count() == 1


def test_a_process_that_read_the_block_as_waiting_takes_it_from_no_node(block: Block, node: Node) -> None:
    stale = Block.objects.select_related("run").get(pk=block.pk)
    claim(node, block)
    assert not stale.queue(came_from=BlockState.WAITING)
    held = Block.objects.get(pk=block.pk)
    assert (held.state, held.attempt) == (BlockState.LEASED, Attempt.objects.get().number)


def test_a_second_node_is_refused(block: Block, node: Node, team: Team) -> None:
    claim(node, block)
    with pytest.raises(Conflict, match="is leased at attempt 1"):
        claim(make_node(team, name="bench-2"), block)


@pytest.mark.parametrize("attempt", [0, 2, 99])
def test_another_attempt_number_is_refused(block: Block, node: Node, attempt: int) -> None:
    with pytest.raises(Conflict):
        services.claim_block(node=node, block_id=str(block.pk), attempt=attempt)
    assert Block.objects.get(pk=block.pk).state == BlockState.QUEUED


@pytest.mark.parametrize("block_id", ["", "x", "-1", "999999", "9" * 40, "1; DROP TABLE"])
def test_a_block_that_does_not_exist_is_refused_alike(node: Node, block_id: str) -> None:
    with pytest.raises(Conflict):
        services.claim_block(node=node, block_id=block_id, attempt=1)


def test_a_node_takes_one_block_at_a_time(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix=TWO_BLOCKS)
    first, second = run.blocks.order_by("number")[:2]
    claim(node, first)
    with pytest.raises(Conflict, match="takes one at a time"):
        claim(node, second)


def test_the_database_itself_allows_one_leased_block_a_device(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix=TWO_BLOCKS)
    first, second = run.blocks.order_by("number")[:2]
    claim(node, first)
    with pytest.raises(IntegrityError), transaction.atomic():
        Block.objects.filter(pk=second.pk).update(state=BlockState.LEASED, device=node.device)


@pytest.mark.parametrize("health", [NodeHealth.DRAINING, NodeHealth.QUARANTINED, NodeHealth.PENDING])
def test_a_node_that_may_not_work_gets_no_block(run: Run, node: Node, health: NodeHealth) -> None:
    Node.objects.filter(pk=node.pk).update(health=health)
    node.refresh_from_db()
    with pytest.raises(Conflict, match="may take no block"):
        claim(node, first_block(run))


def test_a_paused_node_gets_no_block(run: Run, node: Node, owner: User) -> None:
    fleet.change_settings(node=node, by=owner, is_paused=True)
    with pytest.raises(Conflict, match="Paused by its owner"):
        claim(node, first_block(run))


def test_a_node_of_another_team_gets_no_block(run: Run, stranger: User) -> None:
    theirs = make_node(Team.objects.get(name="elsewhere"), name="theirs")
    with pytest.raises(Conflict, match="does not measure for team"):
        claim(theirs, first_block(run))


def test_a_node_with_fewer_cores_than_a_cell_has_threads_is_planned_for_nothing_and_given_nothing(
    version: Version, team: Team, member: User
) -> None:
    facts = make_facts().facts.model_copy(update={"logical_cores": 8})
    node = make_node(team, facts_json=facts.model_dump(mode="json"))
    run = make_run(version, member, matrix={"runtime": ["1.31.1"], "threads": [8, 999]})
    assert "999 threads on a machine of 8 cores" in run.cells.get(status="refused").reason_text
    Node.objects.filter(pk=node.pk).update(facts_json={**node.facts_json, "logical_cores": 2})
    node.refresh_from_db()
    with pytest.raises(Conflict, match="or cores for its threads"):
        claim(node, first_block(run))


def test_a_node_that_lost_a_provider_is_refused(version: Version, team: Team, member: User) -> None:
    node = make_node(team, tags={"cpu": "probe", "openvino": "probe"}, providers=["OpenVINOExecutionProvider"])
    run = make_run(version, member, matrix={"runtime": ["onnxruntime-openvino==1.24.1"], "provider": ["openvino"]})
    Node.objects.filter(pk=node.pk).update(providers=[])
    node.refresh_from_db()
    with pytest.raises(Conflict, match="lacks hardware or a provider"):
        claim(node, first_block(run))


def test_a_heartbeat_starts_the_lease_anew(block: Block, node: Node) -> None:
    lease = claim(node, block)
    before = Block.objects.get(pk=block.pk)
    services.heartbeat(node=node, block_id=str(block.pk), attempt=1, token=lease.token)
    after = Block.objects.get(pk=block.pk)
    assert (after.beats, before.beats) == (1, 0)
    assert before.lease_expires_at is not None
    assert after.lease_expires_at is not None
    assert after.lease_expires_at >= before.lease_expires_at


@pytest.mark.parametrize("token", ["", "ofa_wrong", "ofa_" + "0" * 64])
def test_a_heartbeat_with_a_wrong_token_is_refused(block: Block, node: Node, token: str) -> None:
    claim(node, block)
    with pytest.raises(NotAllowed):
        services.heartbeat(node=node, block_id=str(block.pk), attempt=1, token=token)
    assert Block.objects.get(pk=block.pk).beats == 0


def test_another_node_cannot_use_a_stolen_token(block: Block, node: Node, team: Team) -> None:
    lease = claim(node, block)
    thief = make_node(team, name="thief")
    with pytest.raises(Conflict):
        services.heartbeat(node=thief, block_id=str(block.pk), attempt=1, token=lease.token)


def test_the_token_is_stored_as_a_digest_only(run: Run, node: Node) -> None:
    assert claim(node, first_block(run)).token not in str(Attempt.objects.values().get())


@pytest.mark.django_db(transaction=True)
def test_of_many_claims_at_once_one_wins(block: Block, team: Team) -> None:
    nodes = [make_node(team, name=f"racer-{number}") for number in range(8)]
    won, lost = at_once([lambda node=node: claim_as(node, block) for node in nodes])
    assert (len(won), len(lost)) == (1, 7)
    assert all(isinstance(refusal, Conflict) for refusal in lost)
    assert Attempt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_blocks_claimed_at_once_by_one_node_one_is_had(version: Version, node: Node, member: User) -> None:
    run = make_run(version, member, matrix=TWO_BLOCKS)
    blocks = list(run.blocks.all())
    assert len(blocks) >= 3
    won, lost = at_once([lambda block=block: claim_as(node, block) for block in blocks])
    assert (len(won), len(lost)) == (1, len(blocks) - 1)
    assert Block.objects.filter(state=BlockState.LEASED).count() == 1


def claim_as(node: Node, block: Block) -> Lease:
    return services.claim_block(node=Node.objects.get(pk=node.pk), block_id=str(block.pk), attempt=1)


def at_once(works: list[Callable[[], Lease]]) -> tuple[list[Lease], list[Refusal]]:
    """Runs each in a thread of its own, all from the same moment on."""
    gate = threading.Barrier(len(works))
    won: list[Lease] = []
    lost: list[Refusal] = []

    def attempt(work: Callable[[], Lease]) -> None:
        try:
            gate.wait()
            won.append(work())
        except Refusal as refusal:
            lost.append(refusal)
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won, lost


def test_a_block_with_a_package_that_nobody_allows_any_more_is_given_to_no_node(
    node: Node, version: Version, member: User, settings: Any
) -> None:
    settings.ALLOWED_PACKAGES = frozenset({"my-ort"})
    run = make_run(version, member, matrix={"runtime": ["my-ort==0.3"]})
    settings.ALLOWED_PACKAGES = frozenset()
    with pytest.raises(Conflict, match=r"given to any node: Unknown distribution 'my-ort'"):
        claim(node, first_block(run))
    block = first_block(run)
    assert (block.state, block.reason_code) == (BlockState.FAILED, ReasonCode.UNKNOWN_RUNTIME)
    assert not Attempt.objects.exists()
    run.refresh_from_db()
    assert run.state == RunState.FINISHED, "a block that nobody may have must not wait for ever"


def test_a_block_that_another_node_took_meanwhile_does_not_fail_for_its_package(
    node: Node, version: Version, member: User, settings: Any
) -> None:
    settings.ALLOWED_PACKAGES = frozenset({"my-ort"})
    run = make_run(version, member, matrix={"runtime": ["my-ort==0.3"]})

    class DisallowedDuringAnotherClaim(frozenset[str]):
        def __iter__(self) -> Iterator[str]:
            Block.objects.filter(run=run).update(state=BlockState.LEASED)
            return iter(())

    settings.ALLOWED_PACKAGES = DisallowedDuringAnotherClaim()
    with pytest.raises(Conflict, match="given to any node"):
        claim(node, first_block(run))
    assert first_block(run).state == BlockState.LEASED, "its attempt would stay open for ever"


def test_a_member_cannot_have_a_package_of_their_choice_sent_to_a_node(version: Version, member: User) -> None:
    for text in ("evil-package == 1.31.1", "onnxruntime @ https://evil.example/a.whl", "onnxruntime[evil]==1.31.1"):
        with pytest.raises(Invalid, match=r"Unknown distribution|not one version"):
            make_run(version, member, matrix={"runtime": [text], "provider": ["xnnpack"]})
    assert not Run.objects.exists()


def test_an_admins_allowance_lets_a_block_with_the_package_be_claimed(
    node: Node, version: Version, member: User, settings: Any
) -> None:
    settings.ALLOWED_PACKAGES = frozenset({"my-ort"})
    lease = claim(node, first_block(make_run(version, member, matrix={"runtime": ["my-ort==0.3"]})))
    assert [str(arm.cell.runtime) for arm in lease.order.arms] == ["my-ort==0.3"] * len(lease.order.arms)
