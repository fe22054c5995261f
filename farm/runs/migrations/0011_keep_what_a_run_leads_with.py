from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0010_add_the_budget_glance")]

    operations = [
        migrations.AddField("run", "lead", models.JSONField(null=True, blank=True)),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["id"], condition=models.Q(is_concluded=True, lead__isnull=True), name="runs_without_a_lead"
            ),
        ),
    ]
