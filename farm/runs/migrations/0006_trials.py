"""A cell may wait for a node to try its provider."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_way_out"), ("fleet", "0006_trials")]

    operations = [
        migrations.AddField(
            "cell",
            "trial",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="fleet.trial",
            ),
        ),
    ]
