"""What the plan refused says what to change."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_beside")]

    operations = [
        migrations.AddField("cell", "way_out", models.JSONField(blank=True, null=True)),
    ]
