"""A node's log tells what was installed and evicted on it."""

from django.db import migrations, models

KINDS = (
    *("enrolled", "approved", "online", "offline", "draining", "resumed", "quarantined", "retired", "secret_issued"),
    *("settings_changed", "refused", "lending", "renamed", "runtimes"),
)


class Migration(migrations.Migration):
    dependencies = [("fleet", "0003_host")]

    operations = [
        migrations.AlterField(
            "nodeevent",
            "kind",
            models.CharField(choices=[(kind, kind.replace("_", " ").title()) for kind in KINDS], max_length=20),
        ),
    ]
