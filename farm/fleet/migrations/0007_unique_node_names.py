import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0006_ask_for_consent_and_rename_doubles'),
    ]

    operations = [
        # the table stays, empty, for the code that runs while this is applied; the next release drops it
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name='node', name='shared_with')],
        ),
        migrations.AddConstraint(
            model_name='node',
            constraint=models.UniqueConstraint(django.db.models.functions.text.Lower('name'), condition=models.Q(('health', 'retired'), _negated=True), name='one_node_per_name'),
        ),
    ]
