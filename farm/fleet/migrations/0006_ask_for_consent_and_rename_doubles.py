from django.db import migrations

from farm.fleet.migrations._doubles import rename_doubles


def ask_for_consent(apps, schema_editor):
    """Nobody was asked before: what was shared is offered now, and waits for an admin of the other team."""
    Node = apps.get_model("fleet", "Node")
    Lending = apps.get_model("fleet", "Lending")
    NodeEvent = apps.get_model("fleet", "NodeEvent")
    through = Node.shared_with.through
    for shared in through.objects.select_related("node", "team").order_by("pk"):
        node, team = shared.node, shared.team
        _, is_new = Lending.objects.get_or_create(node=node, team=team, defaults={"asked_by_id": node.owner_id})
        if is_new:
            text = f"{node.name} was shared with {team.name} without being asked; an admin there has to agree now."
            NodeEvent.objects.create(node=node, kind="lending", text=text, facts={"team": team.pk})
    through.objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0005_lendings'),
    ]

    operations = [
        migrations.RunPython(ask_for_consent, migrations.RunPython.noop),
        migrations.RunPython(rename_doubles, migrations.RunPython.noop),
    ]
