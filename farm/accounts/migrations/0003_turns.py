"""Teams say who comes first on their nodes, and how many minutes a day are measured for them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_linked_accounts")]

    operations = [
        migrations.AddField("team", "puts_people_first", models.BooleanField(db_default=True, default=True)),
        migrations.AddField("team", "daily_minutes", models.PositiveIntegerField(blank=True, null=True)),
    ]
