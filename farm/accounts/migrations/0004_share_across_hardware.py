from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_ticks'),
    ]

    operations = [
        migrations.AlterField(
            model_name='share',
            name='kind',
            field=models.CharField(choices=[('run', 'Run'), ('cell', 'Cell'), ('model', 'Model'), ('compare', 'Compare'), ('hardware', 'Hardware')], max_length=10),
        ),
    ]
