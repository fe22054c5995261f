"""Kinds of channels: what a package's entry has to be, and a channel whose package is gone."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from farm.accounts.models import Team, User
from farm.alerts.channels.channel_kind import ChannelKind, Message
from farm.alerts.channels.table import GROUP, KINDS, OWN
from farm.alerts.models import Channel
from farm.alerts.services import channels, deliveries
from farm.alerts.states import DeliveryState
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page


def no_matter(*_: object) -> None:
    return


PAGER = ChannelKind(name="pager", title="Pager", takes="a pager's number", check=no_matter, send=no_matter)


def test_an_address_that_cannot_be_shown_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("acme_pager")
    vars(module).update(one=replace(PAGER, shown=lambda target: target[99]))
    monkeypatch.setitem(sys.modules, "acme_pager", module)
    (kind,) = GROUP.load([EntryPoint("one", "acme_pager:one", GROUP.name)]).entries
    assert kind.shown("0123 456") == "…"


def read(monkeypatch: pytest.MonkeyPatch, **given: object) -> tuple[list[str], str]:
    """The names that are taken of these entries, and why others are not."""
    module = ModuleType("acme_pager")
    vars(module).update(given)
    monkeypatch.setitem(sys.modules, "acme_pager", module)
    found = GROUP.load([EntryPoint(name, f"acme_pager:{name}", GROUP.name) for name in given])
    return [kind.name for kind in found.entries], " ".join(found.refused.values())


def test_an_entry_of_a_package_is_taken_and_shows_nothing_of_its_addresses_unless_it_says_what(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read(monkeypatch, one=PAGER, two=replace(PAGER, name="pager-2")) == (["pager", "pager-2"], "")
    assert PAGER.shown("0123 456") == "…"
    assert tuple(KINDS.values())[: len(OWN)] == OWN


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Pager!"},
        {"name": "p" * 33},
        {"name": 7},
        {"name": "mail"},
        {"title": ""},
        {"title": "a\nb"},
        {"title": "x" * 41},
        {"takes": None},
        {"takes": "x" * 121},
        {"check": "https"},
        {"send": None},
        {"shown": "…"},
    ],
)
def test_a_malformed_entry_is_left_out_and_says_which_field(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
) -> None:
    taken, refused = read(monkeypatch, one=replace(PAGER, **changes))
    assert taken == []
    assert refused.startswith("The channel 'one' is left out: ")
    assert (next(iter(changes)) in refused) or "'mail' is taken" in refused


def test_of_two_entries_of_one_name_the_first_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, one=PAGER, two=PAGER)[0] == ["pager"]


def test_every_kind_hides_what_may_be_secret_and_knows_whether_it_signs() -> None:
    shown = {
        "mail": ("team@example.org", "team@example.org"),
        "webhook": ("https://me:word@example.org:8443/hook?key=s3cret", "https://example.org:8443/…"),
        "apprise": ("slack://T1JJ3T3L2/A1BRTD4JD/TIia", "slack://…"),
    }
    assert {name: KINDS[name].shown(target) for name, (target, _) in shown.items()} == {
        name: words for name, (_, words) in shown.items()
    }
    assert [kind.name for kind in OWN if kind.is_signed] == ["webhook"]


@pytest.mark.django_db
def test_a_channel_whose_package_is_gone_is_listed_without_its_address_and_tried_again(team: Team, owner: User) -> None:
    signed_in = client_of(owner)
    row = Channel.objects.create(team=team, name="on call", kind="pager", target="0123 456", created_by=owner)
    for address in ("/settings/channels/", f"/settings/channels/{row.pk}/"):
        words = assert_is_page(signed_in.get(address))
        assert "pager" in words
        assert "0123" not in words
    delivery = channels.test_channel(channel=row, by=owner)
    assert not deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == (DeliveryState.WAITING, 1)
    assert "install the package" in delivery.problem


@pytest.mark.django_db
def test_a_send_that_breaks_costs_its_message_a_try_and_nobody_else(
    team: Team, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(message: Message, target: str) -> None:
        raise ZeroDivisionError(target)

    monkeypatch.setitem(KINDS, "pager", replace(PAGER, send=send))
    row = channels.create_channel(team=team, by=owner, name="on call", kind="pager", target="0123")
    delivery = channels.test_channel(channel=row, by=owner)
    assert not deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, "0123" in delivery.problem) == (DeliveryState.WAITING, False)
