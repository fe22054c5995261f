import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The code knows the emptied tables and columns no more; the next release drops them.

    Until then they are there for code that still runs while the database is migrated. Without the constraints it may
    write them, and the new code may remove an arm and insert a cell, with neither knowing of the other.
    """

    dependencies = [("runs", "0008_keep_each_figure_once")]

    operations = [
        migrations.AlterField(
            "measurement",
            "arm",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="measurements",
                to="runs.arm",
                db_constraint=False,
            ),
        ),
        migrations.AlterField(
            "parityreport",
            "arm",
            models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="parity_report",
                to="runs.arm",
                db_constraint=False,
            ),
        ),
        migrations.AlterField("cell", "parity", models.CharField(max_length=14, blank=True, default="", null=True)),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("Measurement"),
                migrations.DeleteModel("ParityReport"),
                migrations.RemoveField("cell", "p50_ms"),
                migrations.RemoveField("cell", "parity"),
                migrations.RemoveField("comparison", "ratio"),
                migrations.RemoveField("comparison", "ci_low"),
                migrations.RemoveField("comparison", "ci_high"),
            ]
        ),
    ]
