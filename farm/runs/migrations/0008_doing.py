"""What a node does for a block stands at the block: it ends with the lease."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_gates")]

    operations = [
        migrations.AddField(
            "block",
            "doing",
            models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
    ]
