import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_share_links'),
        ('fleet', '0004_keep_noise_floors'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Lending',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('asked', 'Asked'), ('agreed', 'Agreed'), ('declined', 'Declined')], default='asked', max_length=8)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('answered_at', models.DateTimeField(blank=True, null=True)),
                ('reason', models.CharField(blank=True, default='', max_length=300)),
                ('answered_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lendings', to='fleet.node')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lendings', to='accounts.team')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['state'], name='fleet_lendi_state_942a0f_idx')],
                'constraints': [models.UniqueConstraint(fields=('node', 'team'), name='one_lending_per_team')],
            },
        ),
        migrations.AlterField(
            model_name='node',
            name='name',
            field=models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('^(?:[0-9]*[A-Za-z]|[0-9]+[ ._-])[A-Za-z0-9 ._-]*$', 'A node is not named by a number.')]),
        ),
        migrations.AlterField(
            model_name='nodeevent',
            name='kind',
            field=models.CharField(choices=[('enrolled', 'Enrolled'), ('approved', 'Approved'), ('online', 'Online'), ('offline', 'Offline'), ('draining', 'Draining'), ('resumed', 'Resumed'), ('quarantined', 'Quarantined'), ('retired', 'Retired'), ('secret_issued', 'Secret Issued'), ('settings_changed', 'Settings Changed'), ('refused', 'Refused'), ('lending', 'Lending'), ('renamed', 'Renamed')], max_length=20),
        ),
    ]
