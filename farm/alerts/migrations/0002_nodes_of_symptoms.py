"""Symptoms name their node, so that one alert may have several."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import OuterRef, Subquery


def name_nodes(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Every alert of before has one node, which is that of its symptoms."""
    alerts = apps.get_model("alerts", "Alert").objects.filter(pk=OuterRef("alert_id"))
    apps.get_model("alerts", "Symptom").objects.update(node=Subquery(alerts.values("node")[:1]))


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_tables")]

    operations = [
        migrations.AddField("symptom", "node", models.CharField(blank=True, db_default="", default="", max_length=64)),
        migrations.RunPython(name_nodes, migrations.RunPython.noop),
        migrations.RemoveConstraint("symptom", "one_symptom_per_kind"),
        migrations.AddConstraint(
            "symptom",
            models.UniqueConstraint(fields=("alert", "node", "series", "kind"), name="one_symptom_per_kind"),
        ),
    ]
