"""Nodes keep the margin of each metric, by that metric's own A/A pairs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0001_tables")]

    operations = [
        migrations.AddField("node", "null_margins", models.JSONField(db_default={}, default=dict)),
        migrations.AddField("nullestimate", "metrics", models.JSONField(db_default={}, default=dict)),
    ]
