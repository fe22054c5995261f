"""Kinds of channels and of changes may come from packages: their names are longer, and no list of them stands here."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0002_nodes_of_symptoms")]

    operations = [
        migrations.AlterField("channel", "kind", models.CharField(max_length=32)),
        migrations.AlterField("symptom", "kind", models.CharField(max_length=32)),
    ]
