"""A node that holds a lease and would fill the farm's disk: one file a place, and none left behind."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import Team
from farm.base.refusals import NoSpace, TooLarge, Unprocessable
from farm.contract.blocks import Lease
from farm.contract.divergence import DivergenceReport
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import Blob
from farm.registry.services import remove_unused_blobs
from farm.runs import services
from farm.runs.models import Attempt, Divergence, Part, Run, Trace
from farm.runs.services import node_files, reports
from tests.integration.runs.making import claim, first_block, measure, post
from tests.integration.runs.test_divergences import answer, ask, zipped
from tests.unit.rules.making import make_check, make_facts

pytestmark = pytest.mark.django_db


def trace(size: int = 1000) -> bytes:
    """A gzipped trace that no other is equal to, of about so many bytes."""
    return gzip.compress(b'["' + os.urandom(size).hex().encode() + b'"]')


def held(node: Node, run: Run) -> dict[str, Any]:
    lease = claim(node, first_block(run))
    return {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}


def stored(team: Team) -> set[str]:
    """Digests of the files that lie in the team's folder."""
    folder = Path(storage.blob_path(team_id=team.pk, sha256="00")).parent.parent
    return {path.name for path in folder.glob("*/*")}


def test_a_node_that_sends_another_trace_a_thousand_times_keeps_one(
    node: Node, run: Run, team: Team, django_capture_on_commit_callbacks: Any
) -> None:
    place = held(node, run)
    before, blobs = stored(team), Blob.objects.count()
    with django_capture_on_commit_callbacks(execute=True):
        digests = [services.accept_trace(**place, place=(0, 0), chunks=[trace()]) for _ in range(20)]
    assert stored(team) - before == {digests[-1]}
    assert (Blob.objects.count(), Trace.objects.count()) == (blobs + 1, 1)


def test_the_same_trace_in_two_places_is_one_file_until_neither_needs_it(
    node: Node, run: Run, team: Team, django_capture_on_commit_callbacks: Any
) -> None:
    place, same = held(node, run), trace()
    with django_capture_on_commit_callbacks(execute=True):
        digest = services.accept_trace(**place, place=(0, 0), chunks=[same])
        services.accept_trace(**place, place=(1, 0), chunks=[same])
        services.accept_trace(**place, place=(0, 0), chunks=[trace()])
    assert digest in stored(team)
    with django_capture_on_commit_callbacks(execute=True):
        services.accept_trace(**place, place=(1, 0), chunks=[trace()])
    assert digest not in stored(team)


def test_traces_that_nobody_asked_for_are_refused(node: Node, run: Run) -> None:
    place = held(node, run)
    with pytest.raises(Unprocessable, match="has no trace 64"):
        services.accept_trace(**place, place=(0, 64), chunks=[trace()])


def test_a_node_cannot_use_more_than_the_team_s_quota(node: Node, run: Run, team: Team) -> None:
    place = held(node, run)
    Team.objects.update(quota_bytes=5_000)
    with pytest.raises(TooLarge, match="of its 5,000 left"):
        services.accept_trace(**place, place=(0, 0), chunks=[trace(10_000)])
    assert not Trace.objects.exists()


def test_a_node_cannot_use_more_than_its_attempt_s_room(node: Node, run: Run) -> None:
    place = held(node, run)
    kept = {"attempt": Attempt.objects.get(), "trace_round": 1, "sha256": "f" * 64}
    Trace.objects.create(**kept, arm=9, bytes=node_files.MAX_BYTES - 25_000)
    for arm in (0, 1):
        services.accept_trace(**place, place=(arm, 0), chunks=[trace(10_000)])
    with pytest.raises(TooLarge, match="are kept"):
        services.accept_trace(**place, place=(2, 0), chunks=[trace(10_000)])
    # in the place of an earlier one it needs no more room
    services.accept_trace(**place, place=(1, 0), chunks=[trace(10_000)])


def test_a_disk_with_no_more_than_its_reserve_takes_no_trace(node: Node, run: Run, settings: Any) -> None:
    settings.DISK_RESERVE_BYTES = 2**60
    read: list[int] = []

    def chunks() -> Any:
        read.append(1)
        yield trace()

    with pytest.raises(NoSpace):
        services.accept_trace(**held(node, run), place=(0, 0), chunks=chunks())
    assert read == []


def test_traces_of_an_attempt_that_came_to_nothing_are_removed(
    node: Node, lease: Lease, team: Team, django_capture_on_commit_callbacks: Any
) -> None:
    place = {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}
    with django_capture_on_commit_callbacks(execute=True):
        digest = services.accept_trace(**place, place=(0, 0), chunks=[trace()])
        assert digest in stored(team)
        post(node, lease, EndReport(reason=Reason(code=ReasonCode.CRASHED, text="It broke.")))
    assert digest not in stored(team)


def test_reports_without_end_are_refused(node: Node, lease: Lease) -> None:
    post(node, lease, make_facts())
    post(node, lease, make_check(0, log_tail="x" * 4_000))
    told = Attempt.objects.get()
    assert told.reported_bytes == sum(len(body) for body in told.reports.values_list("body", flat=True))
    Attempt.objects.update(reported_bytes=reports.MAX_REPORTED_BYTES - 4_000)
    with pytest.raises(TooLarge):
        post(node, lease, make_check(1, log_tail="x" * 4_000))
    assert Attempt.objects.get().reports.count() == 2


@pytest.fixture
def asked(member_api: Client, node: Node, run: Run) -> Run:
    """A finished run with a question about its cell c2."""
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    run.refresh_from_db()
    ask(member_api, run)
    return run


def test_parts_of_a_model_replace_each_other_and_go_when_no_answer_names_them(
    node: Node, asked: Run, team: Team, django_capture_on_commit_callbacks: Any
) -> None:
    lease = claim(node, first_block(asked))
    place = {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}
    before = stored(team)
    with django_capture_on_commit_callbacks(execute=True):
        parts = [zipped() + bytes([number]) for number in range(5)]
        digests = [services.accept_part(**place, arm=1, chunks=[part]) for part in parts]
    assert stored(team) - before == {digests[-1]}
    with django_capture_on_commit_callbacks(execute=True):
        assert services.remove_old_parts() == 0
        post(node, lease, EndReport(wall_s=1.0))
        assert services.remove_old_parts() == 1
    assert stored(team) == before
    assert not Part.objects.exists()


def test_the_part_that_an_answer_names_stays_and_goes_with_the_next_question(
    member_api: Client, node: Node, asked: Run, team: Team, django_capture_on_commit_callbacks: Any
) -> None:
    lease = claim(node, first_block(asked))
    place = {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}
    digest = services.accept_part(**place, arm=1, chunks=[zipped()])
    post(node, lease, DivergenceReport(arm=1, document=answer(), part_sha256=digest))
    post(node, lease, EndReport(wall_s=1.0))
    with django_capture_on_commit_callbacks(execute=True):
        assert services.remove_old_parts() == 1
    assert Divergence.objects.get().part is not None
    assert digest in stored(team)
    with django_capture_on_commit_callbacks(execute=True):
        ask(member_api, asked)
    assert digest not in stored(team)


def test_a_node_cannot_pass_off_another_file_of_the_team_as_its_part(node: Node, asked: Run) -> None:
    model = asked.version.artifact.files.get().blob
    lease = claim(node, first_block(asked))
    post(node, lease, DivergenceReport(arm=1, document=answer(), part_sha256=model.sha256))
    assert Divergence.objects.get().part is None


def test_a_file_that_a_trace_or_an_answer_needs_is_not_removed_with_a_version(
    node: Node, run: Run, team: Team, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        digest = services.accept_trace(**held(node, run), place=(0, 0), chunks=[trace()])
        assert remove_unused_blobs(Blob.objects.filter(sha256=digest).values_list("pk", flat=True)) == 0
    assert digest in stored(team)
