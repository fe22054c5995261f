"""Rules of which every kind alerts name none, so that kinds which come later alert too."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# all that there were, when rules were kept with their names
KNOWN = {"parity", "failed", "slower", "placement", "ttft", "session", "first", "memory", "growth"}


def name_no_kinds(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    watches = apps.get_model("alerts", "Watch").objects
    for watch in watches.only("rule_json"):
        rule = dict(watch.rule_json)
        if set(rule.get("kinds") or ()) >= KNOWN:
            del rule["kinds"]
            watches.filter(pk=watch.pk).update(rule_json=rule)


class Migration(migrations.Migration):
    dependencies = [("alerts", "0004_versions")]

    operations = [migrations.RunPython(name_no_kinds, migrations.RunPython.noop)]
