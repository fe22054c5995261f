"""Whose models go to whose machines: a team's admin consents, and whoever leaves takes their machines along."""

import pytest
from django.db import IntegrityError
from django.test import Client

from farm.accounts.memberships import remove_member, set_role
from farm.accounts.models import AuditEvent, Membership, Team, User
from farm.accounts.states import Role, Scope
from farm.base.refusals import Conflict, Missing, NotAllowed, Unprocessable
from farm.fleet import services as fleet
from farm.fleet.models import Lending, Node
from farm.fleet.states import LendingState, NodeHealth, NodeState
from farm.registry.models import Version
from farm.runs import services
from farm.runs.models import Block
from farm.runs.selectors.runs import progress
from farm.runs.states import BlockState
from tests.conftest import ApiOf, make_user
from tests.integration.node_api.calls import NodeClient
from tests.integration.runs.making import claim, first_block, make_node, make_run, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(db: None) -> Team:
    """Another team, with an admin of its own."""
    team = Team.objects.create(name="lab")
    make_user("head", team=team, role=Role.ADMIN)
    return team


@pytest.fixture
def head(lab: Team) -> User:
    return User.objects.get(username="head")


@pytest.fixture
def node(team: Team, member: User, lab: Team) -> Node:
    """A member's machine in “vision”; the member only looks in “lab”."""
    Membership.objects.create(team=lab, user=member, role=Role.VIEWER)
    return make_node(team, owner=member)


@pytest.fixture
def block(lab: Team, head: User, node: Node) -> Block:
    """A queued block of “lab”, planned for a machine of its own."""
    own = make_node(lab, owner=head, name="lab-1")
    block = first_block(make_run(make_version(lab), head))
    Node.objects.filter(pk=own.pk).update(health=NodeHealth.DRAINING)
    return block


def offered(node: Node, by: User) -> Lending:
    fleet.share(node=node, by=by, teams=["lab"])
    return Lending.objects.get()


def test_a_member_s_machine_gets_no_block_of_a_team_whose_admin_never_agreed(node: Node, member: User, block: Block):
    assert offered(node, member).words == "Waits for an admin of lab to agree."
    with pytest.raises(Conflict, match="does not measure for team “lab”"):
        claim(node, block)


def test_a_team_reads_that_a_node_online_is_not_lent_to_it_once_the_node_was_offered(
    node: Node, member: User, head: User, lab: Team, block: Block
) -> None:
    """ "No node is online", on a farm whose fleet page said that one is; a node of others is named once offered."""

    def refusal() -> str:
        with pytest.raises(Unprocessable) as refused:
            make_run(block.run.version, head)
        return str(refused.value)

    Node.objects.filter(name="lab-1").update(state=NodeState.OFFLINE)
    assert "No node that takes blocks of “lab” for cpu is online." in progress(block.run).words
    assert refusal() == "No node measures for this team yet: have one lent to it, or add a node, and plan again."
    fleet.decline(lending=offered(node, member), by=head)
    why = "bench-1 is online but not lent to “lab” (its owner offers it, an admin of “lab” agrees)"
    assert f"blocks for cpu now: {why}. To begin" in progress(block.run).words
    assert refusal() == f"No node measures for this team: {why}. Add a node, and plan again."
    Lending.objects.all().delete()
    Membership.objects.filter(user=head).delete()
    assert why in progress(block.run).words, "all that are left in “lab” are in “vision” too"


def test_a_team_without_members_hears_of_no_other_team_s_nodes(node: Node) -> None:
    """Every member of it was in every team: there were none."""
    assert not Node.objects.known_to(Team.objects.create(name="left")).exists()


def test_nobody_but_an_admin_of_the_receiving_team_agrees(node: Node, member: User, owner: User, lab: Team) -> None:
    lending = offered(node, member)
    for user in (member, owner, make_user("hand", team=lab, role=Role.MEMBER)):
        with pytest.raises(NotAllowed, match="Only an admin of team “lab”"):
            fleet.agree(lending=lending, by=user)
    assert Lending.objects.get().state == LendingState.ASKED


def test_once_the_admin_agrees_the_machine_measures_and_both_sides_read_why(
    node: Node, member: User, head: User, lab: Team, block: Block
) -> None:
    fleet.agree(lending=offered(node, member), by=head)
    assert claim(node, block).order.attempt == 1
    assert Lending.objects.get().words == "Measures for lab; head agreed."
    assert node.events.filter(kind="lending", text__contains="head agreed that bench-1 measures for lab").exists()
    said = AuditEvent.objects.get(verb="node agreed")
    assert (said.team, said.facts["key"]) == (lab, node.fingerprint)


def test_an_admin_of_both_teams_agrees_with_the_offer(node: Node, lab: Team, owner: User) -> None:
    Membership.objects.create(team=lab, user=owner, role=Role.ADMIN)
    assert offered(node, owner).state == LendingState.AGREED


@pytest.mark.parametrize(
    "how", ["decline", "take back", "leave lab", "leave vision", "look only", "deactivate", "delete"]
)
def test_a_machine_whose_team_or_owner_withdraws_loses_its_block_at_once(
    node: Node, team: Team, member: User, owner: User, head: User, lab: Team, block: Block, how: str
) -> None:
    lending = fleet.agree(lending=offered(node, member), by=head)
    claim(node, block)
    match how:
        case "decline":
            fleet.decline(lending=lending, by=head)
        case "take back":
            fleet.share(node=node, by=member, teams=[])
        case "leave lab":
            remove_member(team=lab, user=member, by=member)
        case "leave vision":
            remove_member(team=team, user=member, by=owner)
        case "look only":
            set_role(team=team, user=member, role=Role.VIEWER, by=owner)
        case "deactivate":
            User.objects.filter(pk=member.pk).update(is_active=False)
        case _:
            member.delete()
    services.sweep()
    block.refresh_from_db()
    assert (block.state, block.attempt) == (BlockState.QUEUED, 2)
    with pytest.raises(Conflict, match="does not measure for team “lab”"):
        claim(Node.objects.get(pk=node.pk), block)


def test_coming_back_revives_no_lending(node: Node, member: User, head: User, lab: Team, block: Block) -> None:
    fleet.agree(lending=offered(node, member), by=head)
    remove_member(team=lab, user=member, by=member)
    assert fleet.end_lapsed_lendings() == 1
    Membership.objects.create(team=lab, user=member)
    with pytest.raises(Conflict):
        claim(node, block)
    assert "has to be offered again" in Lending.objects.get().words


def test_a_lending_that_lapsed_is_offered_again_and_one_that_was_declined_is_not(
    node: Node, member: User, head: User, lab: Team
) -> None:
    fleet.decline(lending=offered(node, member), by=head)
    assert offered(node, member).state == LendingState.DECLINED
    fleet.agree(lending=Lending.objects.get(), by=head)
    remove_member(team=lab, user=member, by=member)
    fleet.end_lapsed_lendings()
    assert offered(node, member).state == LendingState.DECLINED, "whoever left the team cannot offer"
    Membership.objects.create(team=lab, user=member)
    lending = offered(node, member)
    assert lending.state == LendingState.ASKED
    assert fleet.agree(lending=lending, by=head).state == LendingState.AGREED


def test_an_offer_of_somebody_who_left_cannot_be_agreed_to(node: Node, member: User, head: User, lab: Team) -> None:
    lending = offered(node, member)
    remove_member(team=lab, user=member, by=member)
    with pytest.raises(Conflict, match="no longer in team “lab”"):
        fleet.agree(lending=lending, by=head)


def test_a_machine_is_put_aside_when_its_owner_leaves_and_comes_back_only_by_an_order(
    node: Node, team: Team, member: User, owner: User
) -> None:
    remove_member(team=team, user=member, by=owner)
    assert fleet.quarantine_nodes_without_owner() == 1
    node.refresh_from_db()
    assert node.health == NodeHealth.QUARANTINED
    assert "Its owner member left team vision" in node.health_reason
    with pytest.raises(Conflict, match="left team vision"):
        fleet.resume(node=node, by=owner)
    Membership.objects.create(team=team, user=member)
    assert fleet.quarantine_nodes_without_owner() == 0
    assert fleet.resume(node=node, by=owner).health == NodeHealth.ACTIVE


def test_a_machine_that_waits_is_not_approved_after_its_owner_left(team: Team, member: User, owner: User) -> None:
    node = make_node(team, owner=member, health=NodeHealth.PENDING)
    remove_member(team=team, user=member, by=owner)
    with pytest.raises(Conflict, match="left team vision"):
        fleet.approve(node=node, by=owner)


def test_a_code_of_somebody_who_left_lets_no_machine_in(team: Team, member: User, owner: User) -> None:
    _, code = fleet.invite(team=team, by=member)
    remove_member(team=team, user=member, by=owner)
    answer = NodeClient().enrol(code)
    assert (answer.status_code, answer.json()["code"]) == (403, "bad_code")
    assert not Node.objects.exists()


def test_the_secret_of_a_deactivated_owner_s_machine_opens_nothing(team: Team, owner: User) -> None:
    machine = NodeClient()
    machine.enrol(fleet.invite(team=team, by=owner, auto_approve=True)[1])
    machine.ask_for_secret()
    assert machine.hello().status_code == 200
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert machine.hello().status_code == 401


def test_the_files_of_a_block_are_closed_to_a_machine_that_the_team_no_longer_lets_measure(
    node: Node, member: User, head: User, block: Block
) -> None:
    lending = fleet.agree(lending=offered(node, member), by=head)
    lease = claim(node, block)
    assert services.find_claim_by_token(node=node, token=lease.token).is_current
    fleet.decline(lending=lending, by=head)
    with pytest.raises(NotAllowed, match="no longer measures for team “lab”"):
        services.find_claim_by_token(node=node, token=lease.token)


def test_a_machine_without_walls_measures_what_its_owner_uploaded_whoever_asks(team: Team, member: User, owner: User):
    bare = make_node(team, owner=owner, name="bare", sandbox="none")
    theirs, mine = make_version(team, name="theirs"), make_version(team, name="mine")
    Version.objects.filter(pk=theirs.pk).update(uploaded_by=member)
    Version.objects.filter(pk=mine.pk).update(uploaded_by=owner)
    make_node(team, name="walled")
    with pytest.raises(Conflict, match="having no sandbox"):
        # its owner asks, and the upload is another's
        claim(bare, first_block(make_run(Version.objects.get(pk=theirs.pk), owner)))
    Block.objects.update(state=BlockState.DONE)
    # another asks, and the upload is its owner's
    assert claim(bare, first_block(make_run(Version.objects.get(pk=mine.pk), member))).order.attempt == 1


def test_a_second_machine_of_the_same_name_is_refused_with_the_way_out(team: Team, owner: User) -> None:
    make_node(team, owner=owner, name="bench-1")
    _, code = fleet.invite(team=team, by=owner)
    answer = NodeClient("Bench-1").enrol(code)
    assert (answer.status_code, answer.json()["code"]) == (409, "known_name")
    assert "--name" in answer.json()["hint"]
    # the code is not used up by it
    assert NodeClient("bench-2").enrol(code).status_code == 201


def test_of_two_machines_that_join_under_one_name_at_the_same_moment_one_is_told_why_not(
    team: Team, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_node(team, owner=owner, name="bench-1")
    _, code = fleet.invite(team=team, by=owner)
    # the other's row came after this one had looked
    monkeypatch.setattr("farm.fleet.services.enrolment._check_name_is_free", lambda name: None)
    answer = NodeClient("bench-1").enrol(code)
    assert (answer.status_code, answer.json()["code"]) == (409, "known_name")
    assert NodeClient("bench-2").enrol(code).status_code == 201


def test_the_database_itself_allows_one_node_a_name_and_a_retired_one_gives_it_free(team: Team, owner: User) -> None:
    first = make_node(team, owner=owner, name="bench-1")
    fleet.revoke(node=first, by=owner)
    make_node(team, owner=owner, name="bench-1")
    with pytest.raises(IntegrityError):
        make_node(team, owner=owner, name="BENCH-1")


@pytest.mark.parametrize("name", ["3", "007", "٣"])
def test_a_machine_named_by_a_number_is_refused(team: Team, owner: User, name: str) -> None:
    assert NodeClient(name).enrol(fleet.invite(team=team, by=owner)[1]).status_code == 422


@pytest.mark.parametrize("name", ["3a", "3-1", "rig 3", "x"])
def test_a_name_that_holds_more_than_a_number_is_taken(team: Team, owner: User, name: str) -> None:
    assert NodeClient(name).enrol(fleet.invite(team=team, by=owner)[1]).status_code == 201


def test_both_sides_find_and_answer_an_offer_over_the_api(
    api_of: ApiOf, node: Node, member: User, head: User, stranger: User
) -> None:
    theirs, ours = api_of(member, Scope.NODES), api_of(head, Scope.NODES)
    changed = theirs.patch(f"/api/v1/nodes/{node.pk}", {"teams": ["lab"]}, content_type="application/json")
    assert changed.status_code == 200, changed.content
    (line,) = ours.get("/api/v1/lendings").json()
    assert (line["node"], line["team"], line["state"]) == ("bench-1", "lab", "asked")
    assert line["fingerprint"] == node.fingerprint
    where = f"/api/v1/lendings/{line['id']}/agree"
    assert theirs.post(where).status_code == 403
    assert api_of(stranger, Scope.NODES).post(where).status_code == 404
    assert api_of(head, Scope.READ).post(where).status_code == 403
    assert ours.post(where).json()["state"] == "agreed"
    assert theirs.get("/api/v1/lendings").json()[0]["sentence"] == "Measures for lab; head agreed."
    assert ours.post(where).status_code == 409


def test_the_receiving_admin_reads_and_answers_on_the_fleet_page(node: Node, member: User, head: User) -> None:
    lending = offered(node, member)
    browser = Client()
    browser.force_login(head)
    page = browser.get("/fleet/").content.decode()
    assert "Waits for an admin of lab to agree." in page
    assert node.fingerprint in page
    answered = browser.post(f"/fleet/lendings/{lending.pk}/agree/", follow=True).content.decode()
    assert "Measures for lab; head agreed." in answered
    with pytest.raises(Missing):
        fleet.share(node=node, by=member, teams=["elsewhere", "lab"])
