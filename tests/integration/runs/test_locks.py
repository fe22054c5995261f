"""Two services that want the same run and block, or file, at the same moment: one waits, none is ended or loses it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection, transaction

from farm.accounts.models import Team
from farm.fleet.models import Node
from farm.registry import bucket
from farm.registry.models import Blob
from farm.registry.services import remove_unused_blobs, store_blob_within_quota
from farm.registry.services.uploads import store_made_blob
from farm.registry.storage import Draft, blob_path, copy_to_draft
from farm.runs.models import Block, Run
from farm.runs.services.locks import lock_run
from farm.runs.states import BlockState
from tests.integration.runs.making import claim, post
from tests.unit.rules.making import make_facts

pytestmark = pytest.mark.django_db(transaction=True)


def beside(work: Callable[[], object]) -> Callable[[], None]:
    """Starts work in a thread with a connection of its own; the result waits for it and raises what it raised."""
    problems: list[BaseException] = []

    def body() -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)
        finally:
            connection.close()

    thread = threading.Thread(target=body)
    thread.start()

    def join() -> None:
        thread.join(60)
        assert not thread.is_alive()
        if problems:
            raise problems[0]

    return join


def hold_run_then_block(block: Block, other: Callable[[], object]) -> None:
    """What cancelling does, slowly: the run is locked, the other one sets out, and then the block is wanted too."""
    with transaction.atomic():
        lock_run(block.run_id)
        join = beside(other)
        threading.Event().wait(0.5)
        Block.objects.filter(pk=block.pk).update(rung_at=None)
    join()


def test_a_claim_waits_for_whoever_holds_the_run(block: Block, node: Node) -> None:
    hold_run_then_block(block, lambda: claim(node, Block.objects.get(pk=block.pk)))
    assert Block.objects.get(pk=block.pk).state == BlockState.LEASED


def test_a_report_waits_for_whoever_holds_the_run(block: Block, node: Node) -> None:
    lease = claim(node, block)
    hold_run_then_block(block, lambda: post(node, lease, make_facts()))
    assert block.attempts.get().reports.count() == 1


def remove(blob: Blob) -> None:
    with transaction.atomic():
        remove_unused_blobs([blob.pk])


def test_a_file_that_is_made_while_one_of_the_same_content_is_removed_is_there(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draft() -> Draft:
        (tmp_path / "made").write_bytes(b"the same variant, made twice")
        return copy_to_draft(tmp_path / "made")

    def drop_slowly(**_: object) -> None:
        joins.append(beside(lambda: store_made_blob(team=team, draft=draft())))
        threading.Event().wait(0.5)

    joins: list[Callable[[], None]] = []
    first = store_made_blob(team=team, draft=draft())
    monkeypatch.setattr(bucket, "delete_file", drop_slowly)
    remove(first)
    joins[0]()
    again = Blob.objects.get(team=team, sha256=first.sha256)
    assert again.pk != first.pk
    assert blob_path(team_id=team.pk, sha256=again.sha256).exists()


def test_a_file_that_somebody_is_about_to_name_is_not_removed(run: Run, team: Team, tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"a part of one attempt, and a trace of another")
    blob = store_made_blob(team=team, draft=copy_to_draft(tmp_path / "made"))
    artifact = run.version.artifact
    with transaction.atomic():
        same = copy_to_draft(tmp_path / "made")
        assert store_blob_within_quota(team=team, draft=same) == blob
        same.discard()
        join = beside(lambda: remove(blob))
        threading.Event().wait(0.5)
        type(artifact).objects.filter(pk=artifact.pk).update(calibration=blob)
    join()
    assert Blob.objects.filter(pk=blob.pk).exists()
    assert blob_path(team_id=team.pk, sha256=blob.sha256).exists()
