"""What was shared and how nodes were called before consent was asked for: kept, and said in each node's log."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

BEFORE = [("fleet", "0004_keep_noise_floors")]
BETWEEN = [("fleet", "0006_ask_for_consent_and_rename_doubles")]
AFTER = [("fleet", "0007_unique_node_names")]


@pytest.fixture
def executor(transactional_db: None) -> MigrationExecutor:
    return MigrationExecutor(connection)


def test_shares_become_offers_and_doubles_get_names_of_their_own(executor: MigrationExecutor) -> None:
    latest = executor.loader.graph.leaf_nodes()
    try:
        executor.migrate(BEFORE)
        old = executor.loader.project_state(BEFORE).apps
        team = old.get_model("accounts", "Team").objects.create(name="vision")
        lab = old.get_model("accounts", "Team").objects.create(name="lab")
        owner = old.get_model("accounts", "User").objects.create(username="owner")
        Node = old.get_model("fleet", "Node")
        known = [("rig", "active"), ("Rig", "active"), ("rig-2", "active"), ("3", "active"), ("rig", "retired")]
        for number, (name, health) in enumerate(known):
            Node.objects.create(team=team, owner=owner, name=name, public_key=f"{number}", health=health)
        Node.objects.order_by("pk")[0].shared_with.add(lab)
        executor = MigrationExecutor(connection)
        executor.migrate(AFTER)
        new = executor.loader.project_state(AFTER).apps
        nodes = list(new.get_model("fleet", "Node").objects.order_by("pk"))
        assert [node.name for node in nodes] == ["rig", "Rig-3", "rig-2", "node-3", "rig"]
        lending = new.get_model("fleet", "Lending").objects.get()
        assert (lending.node_id, lending.team_id, lending.state, lending.asked_by_id) == (
            nodes[0].pk,
            lab.pk,
            "asked",
            owner.pk,
        )
        said = list(new.get_model("fleet", "NodeEvent").objects.order_by("pk").values_list("text", flat=True))
        assert said == [
            "rig was shared with lab without being asked; an admin there has to agree now.",
            "Rig is called Rig-3 from now on: another node has that name.",
            "3 is called node-3 from now on: a number is no name.",
        ]
    finally:
        MigrationExecutor(connection).migrate(latest)


def test_a_double_that_an_older_process_let_in_between_the_two_steps_is_renamed_too(
    executor: MigrationExecutor,
) -> None:
    latest = executor.loader.graph.leaf_nodes()
    try:
        executor.migrate(BETWEEN)
        old = executor.loader.project_state(BETWEEN).apps
        team = old.get_model("accounts", "Team").objects.create(name="vision")
        owner = old.get_model("accounts", "User").objects.create(username="owner")
        Node = old.get_model("fleet", "Node")
        for number, name in enumerate(["rig", "Rig", "7"]):
            Node.objects.create(team=team, owner=owner, name=name, public_key=f"{number}", health="active")
        executor = MigrationExecutor(connection)
        executor.migrate(AFTER)
        new = executor.loader.project_state(AFTER).apps
        assert [node.name for node in new.get_model("fleet", "Node").objects.order_by("pk")] == [
            "rig",
            "Rig-2",
            "node-7",
        ]
    finally:
        MigrationExecutor(connection).migrate(latest)
