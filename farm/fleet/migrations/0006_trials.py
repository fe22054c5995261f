"""Providers that nodes try where their owners allow it."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

KINDS = (
    *("enrolled", "approved", "online", "offline", "draining", "resumed", "quarantined", "retired", "secret_issued"),
    *("settings_changed", "refused", "lending", "renamed", "runtimes", "trial"),
)
OPEN = ("asked", "pending")


def _choices(*names: str) -> list[tuple[str, str]]:
    return [(name, name.replace("_", " ").title()) for name in names]


def _person() -> models.ForeignKey:
    key = models.ForeignKey(
        blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
    )
    return key


class Migration(migrations.Migration):
    dependencies = [("fleet", "0005_what_runtimes_load"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.AddField(
            "node",
            "trials_allowed",
            models.CharField(choices=_choices("ask", "allow", "never"), db_default="ask", default="ask", max_length=5),
        ),
        migrations.AddField("node", "understands_trials", models.BooleanField(db_default=False, default=False)),
        migrations.AlterField("nodeevent", "kind", models.CharField(choices=_choices(*KINDS), max_length=20)),
        migrations.CreateModel(
            "Trial",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("provider", models.CharField(max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=_choices("asked", "declined", "pending", "ready", "failed"),
                        default="asked",
                        max_length=8,
                    ),
                ),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("allowed_at", models.DateTimeField(blank=True, null=True)),
                ("begun_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("problem", models.CharField(blank=True, default="", max_length=1000)),
                ("answered_by", _person()),
                ("asked_by", _person()),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="trials", to="fleet.node"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["state"], name="fleet_trial_state")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(state__in=OPEN),
                        fields=("node", "provider"),
                        name="one_open_trial_per_provider",
                    )
                ],
            },
        ),
    ]
