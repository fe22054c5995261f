from django.db import migrations, models

# newest pairs that count, as in farm.fleet.selectors.noise
HISTORY = 500


def count(apps, schema_editor):
    Node = apps.get_model("fleet", "Node")
    NullEstimate = apps.get_model("fleet", "NullEstimate")
    for number in list(Node.objects.values_list("pk", flat=True)):
        rows = NullEstimate.objects.filter(node=number).order_by("-id").values_list("verdict", flat=True)
        verdicts = list(rows[:HISTORY])
        alarms = sum(verdict in ("slower", "faster") for verdict in verdicts)
        Node.objects.filter(pk=number).update(null_pairs=len(verdicts), null_alarms=alarms)


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0002_self_test'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='null_alarms',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='node',
            name='null_pairs',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.RunPython(count, migrations.RunPython.noop),
    ]
