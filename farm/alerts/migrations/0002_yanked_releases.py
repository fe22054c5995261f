from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alerts', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='release',
            name='is_yanked',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='release',
            name='yanked_because',
            field=models.CharField(blank=True, default='', max_length=200),
        ),
    ]
