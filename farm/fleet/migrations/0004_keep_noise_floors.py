from django.db import migrations, models

from farm.rules.comparing import margins

# newest pairs that count, as in farm.fleet.selectors.noise
HISTORY = 500


def keep(apps, schema_editor):
    Node = apps.get_model("fleet", "Node")
    NullEstimate = apps.get_model("fleet", "NullEstimate")
    for number in list(Node.objects.values_list("pk", flat=True)):
        rows = NullEstimate.objects.filter(node=number).order_by("-id")
        pairs = list(rows.values_list("log_ratios", "estimate", "block")[:HISTORY])
        margin = margins.margin_from_null([estimate for _, estimate, _ in pairs])
        floor = margins.noise_floor([ratios for ratios, _, _ in pairs], margin=margin)
        if pairs:
            Node.objects.filter(pk=number).update(
                null_deviation=floor.deviation if floor else None,
                null_margin=floor.margin if floor else None,
                null_block=max(block for _, _, block in pairs),
            )


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0003_count_null_pairs'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='null_block',
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='node',
            name='null_deviation',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='node',
            name='null_margin',
            field=models.FloatField(null=True),
        ),
        migrations.RunPython(keep, migrations.RunPython.noop),
    ]
