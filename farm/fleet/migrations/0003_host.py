"""Nodes say which of them share a machine."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0002_margins_of_metrics")]

    operations = [
        migrations.AddField("node", "host", models.CharField(blank=True, db_default="", default="", max_length=16)),
    ]
