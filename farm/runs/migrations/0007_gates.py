"""A run knows the token of the gate that started it; what branches upload goes after a while."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_trials")]

    operations = [
        migrations.AddField(
            "run",
            "gate",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="accounts.token",
            ),
        ),
        migrations.AddField(
            "retentionrule",
            "branches_days",
            models.PositiveSmallIntegerField(blank=True, db_default=30, default=30, null=True),
        ),
    ]
