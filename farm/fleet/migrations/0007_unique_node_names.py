import django.db.models.functions.text
from django.db import migrations, models

from farm.fleet.migrations._doubles import rename_doubles


def rename_again(apps, schema_editor):
    """Names that processes of an older version let in since 0006."""
    rename_doubles(apps, schema_editor)
    if schema_editor.connection.vendor == "postgresql":
        # it changes no table of whose rows it has yet to look up what they refer to
        schema_editor.connection.check_constraints()


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0006_ask_for_consent_and_rename_doubles'),
    ]

    operations = [
        # the table stays, empty, for the code that runs while this is applied; the next release drops it
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name='node', name='shared_with')],
        ),
        migrations.RunPython(rename_again, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='node',
            constraint=models.UniqueConstraint(django.db.models.functions.text.Lower('name'), condition=models.Q(('health', 'retired'), _negated=True), name='one_node_per_name'),
        ),
    ]
