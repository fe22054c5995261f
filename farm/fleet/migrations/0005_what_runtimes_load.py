"""Nodes keep what releases were seen to load that are newer than the farm's table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0004_runtimes_in_the_log")]

    operations = [migrations.AddField("node", "loads", models.JSONField(db_default={}, default=dict))]
