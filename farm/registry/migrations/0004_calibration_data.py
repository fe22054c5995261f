import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('registry', '0003_evaluation_data'),
    ]

    operations = [
        migrations.AddField(
            model_name='artifact',
            name='calibration',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.blob'),
        ),
        migrations.AddField(
            model_name='artifact',
            name='calibration_samples',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='artifact',
            name='calibration_problem',
            field=models.TextField(blank=True, default=''),
        ),
    ]
