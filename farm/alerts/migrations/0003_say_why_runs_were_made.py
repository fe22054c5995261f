"""Runs of before get the reason that watches and investigations know of them."""

from django.db import migrations

REASONS = {"since_when": "bisection", "work_around": "work-around"}


def say_why(apps, schema_editor):
    runs = apps.get_model("runs", "Run").objects.filter(reason="")
    rounds = apps.get_model("alerts", "WatchRound").objects
    runs.filter(pk__in=rounds.filter(run__isnull=False).values("run")).update(reason="watch")
    runs.filter(pk__in=rounds.filter(confirming__isnull=False).values("confirming")).update(reason="confirmation")
    for one in apps.get_model("alerts", "Investigation").objects.iterator():
        made = {one.run_id, *(step.get("run") for step in one.steps)} - {None}
        runs.filter(pk__in=made).update(reason=REASONS.get(one.kind, ""))


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0002_yanked_releases"),
        ("runs", "0012_say_why_there_is_a_run"),
    ]

    operations = [migrations.RunPython(say_why, migrations.RunPython.noop)]
