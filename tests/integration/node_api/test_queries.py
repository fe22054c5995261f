"""What each message of a node asks the database, sign-in included: at most so often, however large the block is."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from farm.accounts.models import Team, User
from farm.contract.reports import EndReport, Report
from farm.runs.models import Block, Comparison, Run
from farm.runs.services import settle
from farm.runs.states import BlockState, RunState
from tests.integration.node_api.calls import NodeClient
from tests.integration.runs.making import first_block, make_run, make_version
from tests.unit.rules.making import make_check, make_facts, make_rounds

pytestmark = pytest.mark.django_db
PAIR = {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}
WIDE = {"runtime": ["1.29.0", "1.30.0", "1.31.1"], "batch": [1, 2, 4]}
# a message: the most questions it may take
MOST = {"claim": 11, "heartbeat": 3, "facts": 6, "check": 6, "round": 7, "the last round": 9, "end": 14}


class Counted:
    """A node's block, each message of it counted."""

    def __init__(self, machine: NodeClient, block: Block) -> None:
        self._machine, self._block = machine, block
        self.most: dict[str, int] = {}
        claimed = self._sent("claim", "claim", {"attempt": 1})
        self._token = str(claimed["token"])
        self._sent("heartbeat", "heartbeat", {"attempt": 1})
        arms = {int(arm["arm"]): 1.0 for arm in claimed["order"]["arms"]}
        self._report("facts", make_facts())
        for arm in arms:
            self._report("check", make_check(arm))
        for report in make_rounds(8, arms):
            self._report("the last round" if report.round == 7 else "round", report)
        self._report("end", EndReport(wall_s=30.0))

    def _report(self, kind: str, report: Report) -> None:
        self._sent(kind, "reports", {"attempt": 1, "report": report.model_dump(mode="json")})

    def _sent(self, kind: str, what: str, body: dict[str, object]) -> dict[str, object]:
        with CaptureQueriesContext(connection) as captured:
            answer = self._machine.post(f"blocks/{self._block.pk}/{what}", body, token=getattr(self, "_token", ""))
        assert answer.status_code == 200, answer.content
        # the test's own transaction makes savepoints of the services' transactions
        asked = [one for one in captured if "SAVEPOINT" not in one["sql"]]
        self.most[kind] = max(len(asked), self.most.get(kind, 0))
        said: dict[str, object] = answer.json()
        return said


@pytest.mark.parametrize("matrix", [PAIR, WIDE], ids=["two cells", "nine cells"])
def test_a_message_asks_the_database_at_most_so_often(
    machine: NodeClient, team: Team, member: User, matrix: dict[str, object]
) -> None:
    run = make_run(make_version(team), member, matrix=matrix)
    counted = Counted(machine, first_block(run))
    assert {kind: most for kind, most in counted.most.items() if most > MOST[kind]} == {}
    # and all of it was done
    assert settle(block_id=run.blocks.get().pk, attempt=1)
    run = Run.objects.get(pk=run.pk)
    assert (run.state, Comparison.objects.filter(run=run).exists()) == (RunState.FINISHED, True)
    assert run.blocks.get().state == BlockState.DONE
