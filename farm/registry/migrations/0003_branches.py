"""A version may come from a branch, as gates of pull requests upload them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0002_package_indexes")]

    operations = [
        migrations.AddField("version", "branch", models.CharField(blank=True, db_default="", default="", max_length=255)),
        migrations.AddField("version", "commit", models.CharField(blank=True, db_default="", default="", max_length=64)),
        migrations.AddField("version", "sent_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("blob", "swept_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("version", "is_kept", models.BooleanField(db_default=False, default=False)),
    ]
