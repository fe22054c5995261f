"""A round that could not be measured is told of as trouble of the farm itself, and so is its end."""

from typing import Any

import pytest

from farm.accounts.models import User
from farm.alerts.models import Alert, Watch, WatchRound
from farm.alerts.services.causes import call_watch
from farm.alerts.states import AlertState, RoundOutcome
from farm.contract.reasons import ReasonCode
from farm.fleet.models import Node
from tests.integration.alerts.driving import Lab, failing_on

pytestmark = pytest.mark.django_db


LOST: dict[str, Any] = {"code": ReasonCode.RUNTIME_INSTALL_FAILED, "text": "The index does not answer."}


def call(watch: Watch, by: User, lab: Lab) -> str:
    (one,) = call_watch(watch=watch, by=by, candidate="1.30.0")
    lab.live()
    return WatchRound.objects.get(pk=one.pk).outcome


@pytest.mark.parametrize(
    ("then", "outcome", "others"),
    [
        (None, RoundOutcome.QUIET, []),
        # that the new release fails was measured as well
        (ReasonCode.CRASHED, RoundOutcome.ALERT, [AlertState.OPEN]),
    ],
)
def test_it_ends_with_the_next_round_that_measures_whatever_that_finds(
    watch: Watch, node: Node, member: User, then: ReasonCode | None, outcome: RoundOutcome, others: list[AlertState]
) -> None:
    assert call(watch, member, Lab(node, checks=failing_on("1.30.0", **LOST))) == RoundOutcome.INFRA
    trouble = Alert.objects.get()
    assert (trouble.state, trouble.node, trouble.bad) == (AlertState.INFRA, "", "1.30.0")
    assert "could not measure encoder" in trouble.sentence
    assert "The index does not answer." in trouble.sentence

    again = Lab(node) if then is None else Lab(node, checks=failing_on("1.30.0", code=then))
    assert call(watch, member, again) == outcome
    trouble.refresh_from_db()
    assert (trouble.state, trouble.resolved_in) == (AlertState.RESOLVED, "1.30.0")
    assert list(trouble.events.order_by("pk").values_list("kind", flat=True)) == ["infra", "resolved"]
    assert list(Alert.objects.exclude(pk=trouble.pk).values_list("state", flat=True)) == others


def test_it_lasts_while_rounds_are_lost(watch: Watch, node: Node, member: User) -> None:
    lab = Lab(node, checks=failing_on("1.30.0", **LOST))
    assert [call(watch, member, lab), call(watch, member, lab)] == [RoundOutcome.INFRA, RoundOutcome.INFRA]
    trouble = Alert.objects.get()
    assert trouble.state == AlertState.INFRA
    assert list(trouble.events.order_by("pk").values_list("kind", flat=True)) == ["infra", "seen_again"]
