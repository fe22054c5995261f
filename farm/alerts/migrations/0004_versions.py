"""A watch may compare each new version of a model with the one before."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0003_kinds_of_packages"), ("registry", "0001_tables")]

    operations = [
        migrations.AddField("watch", "compares_versions", models.BooleanField(default=False, db_default=False)),
        migrations.AddField(
            "watchround",
            "base",
            models.ForeignKey(
                "registry.version", django.db.models.deletion.CASCADE, null=True, blank=True, related_name="+"
            ),
        ),
    ]
