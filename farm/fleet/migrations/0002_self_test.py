from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='self_test_json',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='node',
            name='self_test_ms',
            field=models.FloatField(blank=True, null=True),
        ),
    ]
