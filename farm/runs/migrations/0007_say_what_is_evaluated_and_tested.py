from django.db import migrations, models


class Migration(migrations.Migration):
    """What was asked of rows that are given up with the next two migrations gets columns of its own.

    The defaults are the database's, so that the code that still runs can go on inserting.
    """

    dependencies = [("runs", "0006_read_traces_in_the_workshop")]

    operations = [
        migrations.AddField("arm", "is_evaluated", models.BooleanField(default=False, db_default=False)),
        migrations.AddIndex(
            "arm", models.Index(fields=["block"], condition=models.Q(is_evaluated=True), name="evaluated_arms")
        ),
        migrations.AddField("comparison", "is_tested", models.BooleanField(default=False, db_default=False)),
    ]
