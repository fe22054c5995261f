"""Each stored trace names the file of its team that it is, so that nobody removes it as unused."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

BATCH = 500


def name_files(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Traces whose file is gone name none."""
    blobs, traces = apps.get_model("registry", "Blob"), apps.get_model("runs", "Trace")
    rows = traces.objects.filter(blob=None).values_list("pk", "sha256", "attempt__block__run__team")
    for pk, sha256, team in rows.iterator(chunk_size=BATCH):
        own = blobs.objects.filter(team=team, sha256=sha256).values_list("pk", flat=True).first()
        if own is not None:
            traces.objects.filter(pk=pk).update(blob=own)


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_count_files_of_attempts")]
    operations = [migrations.RunPython(name_files, migrations.RunPython.noop)]
