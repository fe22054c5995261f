import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('registry', '0005_partial_upload'),
    ]

    operations = [
        migrations.AddField(
            model_name='variant',
            name='coverage',
            field=models.JSONField(default=list),
        ),
        migrations.CreateModel(
            name='VariantReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('making', 'Making'), ('ready', 'Ready'), ('failed', 'Failed')], default='pending', max_length=8)),
                ('reason_code', models.CharField(blank=True, max_length=40)),
                ('reason_text', models.TextField(blank=True)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('report_json', models.JSONField(blank=True, null=True)),
                ('variant', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='report', to='registry.variant')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['state', 'asked_at'], name='report_state_and_asked')],
            },
        ),
    ]
