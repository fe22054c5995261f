"""A run may measure other versions in the same blocks, for a verdict on models."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0001_tables"), ("runs", "0003_resumed")]

    operations = [
        migrations.CreateModel(
            name="Beside",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField()),
                ("run", models.ForeignKey("runs.run", django.db.models.deletion.CASCADE, related_name="beside")),
                (
                    "version",
                    models.ForeignKey("registry.version", django.db.models.deletion.PROTECT, related_name="beside"),
                ),
            ],
            options={"ordering": ["run", "number"]},
        ),
        migrations.AddField(
            "cell",
            "beside",
            models.ForeignKey(
                "runs.beside",
                django.db.models.deletion.CASCADE,
                null=True,
                blank=True,
                db_index=False,
                related_name="cells",
            ),
        ),
        migrations.AddIndex(
            "cell",
            models.Index(condition=models.Q(("beside__isnull", False)), fields=["beside"], name="cells_of_other_versions"),
        ),
        migrations.AddConstraint(
            "beside", models.UniqueConstraint(fields=("run", "version"), name="one_version_beside_a_run")
        ),
    ]
