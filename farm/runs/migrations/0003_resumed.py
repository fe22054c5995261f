"""A run that goes on stands in the queue from then on."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_reported")]

    operations = [
        migrations.AddField("run", "resumed_at", models.DateTimeField(blank=True, null=True)),
    ]
