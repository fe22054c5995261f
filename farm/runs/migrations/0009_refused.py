"""A run whose cells were all refused ends as refused."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0008_doing")]

    operations = [
        migrations.AlterField(
            "run",
            "outcome",
            models.CharField(
                blank=True,
                choices=[
                    ("", "open"),
                    ("complete", "Complete"),
                    ("partial", "Partial"),
                    ("refused", "Refused"),
                    ("cancelled", "Cancelled"),
                ],
                default="",
                max_length=10,
            ),
        ),
    ]
