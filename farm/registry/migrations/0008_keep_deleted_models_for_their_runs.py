from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0007_outlines")]

    operations = [
        migrations.AddField("model", "removed_at", models.DateTimeField(null=True, blank=True)),
        migrations.AddField("version", "removed_at", models.DateTimeField(null=True, blank=True)),
        migrations.RemoveConstraint("model", "one_model_per_team_and_name"),
        migrations.AddConstraint(
            "model",
            models.UniqueConstraint(
                fields=["team", "name"],
                condition=models.Q(removed_at__isnull=True),
                name="one_model_per_team_and_name",
            ),
        ),
    ]
