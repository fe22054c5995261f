"""Fills a farm's database with the code of an older commit, and records what that code said of it.

    git worktree add /tmp/before 7ca3db55 && cd /tmp/before
    PYTHONPATH=. python CHECKOUT/tests/integration/old_database/make.py CHECKOUT/tests/integration/old_database

in an environment with the requirements of that commit. It writes `farm.sql.gz`, the rows as SQL of SQLite, and
`recorded.json.gz`, what documents, CSV, alerts and pages were (see recording.py). The node is made up, as in that
commit's own tests of pages: a run with a slow release and a runner that crashed; one with wrong outputs; one judged on
labelled data; a watch that found a release to be slower, confirmed it, looked for the cause and raised an alert.
"""

import gzip
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import recording  # noqa: E402


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["ONNXFARM_HOME"] = home
        recording.set_up()
        fill()
        # before the recording, whose token is no part of the farm
        dump = "\n".join(sqlite3.connect(Path(home, "db.sqlite3")).iterdump())
        recorded = recording.record()
        for name, text in (("farm.sql.gz", dump), ("recorded.json.gz", recorded)):
            assert home not in text, name
            (target / name).write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def fill() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from farm.accounts.models import Membership, Team, User
    from farm.accounts.states import Role
    from tests.integration.dashboard import rows
    from tests.integration.dashboard.watching import found_by_a_watch

    team = Team.objects.create(name="vision")
    owner = User.objects.create(username="owner")
    Membership.objects.create(team=team, user=owner, role=Role.ADMIN)
    node = rows.make_node(team, owner)
    first = rows.make_version(team, owner)
    rows.finished_run(first, node, owner, crashes=[3])
    rows.finished_run(first, node, owner, matrix={"matrix": {"runtime": ["1.31.1"], "batch": [1]}}, wrong=True)
    judged_on_labelled_data(rows.make_version(team, owner, name="classifier"), node, owner)
    found_by_a_watch(rows.make_version(team, owner, name="watched"), node, owner)


def judged_on_labelled_data(version, node, owner) -> None:  # type: ignore[no-untyped-def]
    import numpy as np

    from farm.contract.evaluation import AccuracyReport, EvaluationRecipe
    from farm.contract.reports import RoundReport
    from farm.registry.models import Blob, EvaluationData
    from farm.registry.states import MakingState
    from farm.rules.quality import evaluation
    from tests.integration.dashboard import rows

    blobs = [Blob.objects.create(team=version.model.team, sha256=64 * letter, bytes=1) for letter in "ef"]
    EvaluationData.objects.create(
        version=version, given=blobs[0], data=blobs[1], state=MakingState.READY, samples=100, classes=10, output="y",
        recipe_json=EvaluationRecipe().model_dump(mode="json"),
    )  # fmt: skip

    class Judged(rows.MadeUpNode):
        """Tells before the first round how many of the samples each arm had right."""

        def _report(self, lease, report):  # type: ignore[no-untyped-def]
            if isinstance(report, RoundReport) and report.round == 0:
                for arm, right in enumerate((95, 70)):
                    samples = evaluation.pack_samples(np.array([True] * right + [False] * (100 - right)))
                    found = AccuracyReport(arm=arm, measured_arm=arm, n=100, output="y", samples=samples)
                    super()._report(lease, found)
            return super()._report(lease, report)

    matrix = {"matrix": {"runtime": ["1.31.1"], "batch": [1], "precision": ["fp32", "int8-dynamic"]}}
    Judged(node).measure(rows.begin_run(version, owner, matrix=matrix))
    from farm.runs.services import conclude_runs

    conclude_runs()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
