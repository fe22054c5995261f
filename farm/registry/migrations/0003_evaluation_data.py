import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('registry', '0002_reference_data'),
    ]

    operations = [
        migrations.CreateModel(
            name='EvaluationData',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('making', 'Making'), ('ready', 'Ready'), ('failed', 'Failed')], default='pending', max_length=8)),
                ('reason_code', models.CharField(blank=True, max_length=40)),
                ('reason_text', models.TextField(blank=True)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('recipe_json', models.JSONField(default=dict)),
                ('output', models.CharField(blank=True, default='', max_length=200)),
                ('samples', models.PositiveIntegerField(blank=True, null=True)),
                ('classes', models.PositiveIntegerField(blank=True, null=True)),
                ('data', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.blob')),
                ('given', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.blob')),
                ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='evaluation', to='registry.version')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['state', 'asked_at'], name='evaluation_state_and_asked')],
            },
        ),
    ]
