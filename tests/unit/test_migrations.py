"""Migrations fit the release that still runs while they are applied."""

import tomllib
from pathlib import Path

import pytest
from django.apps import apps
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from tests.conftest import PROJECT
from tests.migrations import FIRST, broken

APPS = ("accounts", "alerts", "fleet", "registry", "runs")
RELEASE = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
TOP = """from django.db import migrations, models


class Migration(migrations.Migration):
"""


def test_every_new_migration_fits_the_release_before() -> None:
    loader = MigrationLoader(None)
    ours = {config.label: Path(config.path) for config in apps.get_app_configs() if config.name.startswith("farm.")}
    found = []
    for app, name in sorted(loader.graph.nodes):
        if app in ours and name > FIRST:
            before = loader.project_state((app, name), at_end=False)
            found += broken(ours[app] / "migrations" / f"{name}.py", app, before, release=RELEASE)
    assert found == []
    assert {app for app in ours if (app, FIRST) in loader.graph.nodes} == set(APPS)


def state() -> ProjectState:
    made = ProjectState()
    fields = {"id": models.AutoField(primary_key=True), "name": models.CharField(max_length=40)}
    migrations.CreateModel("Thing", [*fields.items(), ("note", models.TextField(null=True))]).state_forwards(
        "shop", made
    )
    return made


def said(tmp_path: Path, operation: str, *, mark: str = "") -> list[str]:
    (folder := tmp_path / "shop" / "migrations").mkdir(parents=True)
    path = folder / "0002_next.py"
    path.write_text(f"{TOP}{mark}    operations = [\n        {operation},\n    ]\n")
    return broken(path, "shop", state(), release="0.2.0")


@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        ("migrations.RemoveField('thing', 'note')", "removes thing.note, which code that runs reads"),
        ("migrations.DeleteModel('thing')", "removes thing"),
        ("migrations.RenameField('thing', 'name', 'title')", "renames thing.name"),
        ("migrations.RenameModel('Thing', 'Item')", "renames Thing"),
        ("migrations.AlterModelTable('thing', 'other')", "renames thing"),
        (
            "migrations.AddField('thing', 'size', models.IntegerField(default=0))",
            "adds thing.size without null=True or",
        ),
        ("migrations.AlterField('thing', 'note', models.TextField())", "makes thing.note non-null in one step"),
        ("migrations.AlterField('thing', 'name', models.CharField(max_length=20))", "shortens thing.name to 20"),
        ("migrations.AlterField('thing', 'name', models.IntegerField())", "makes thing.name a IntegerField"),
        ("migrations.RunSQL('alter table shop_thing drop column note')", "drops or renames by SQL"),
        (
            "migrations.SeparateDatabaseAndState(database_operations=[migrations.RemoveField('thing', 'note')])",
            "removes thing.note",
        ),
    ],
)
def test_what_breaks_the_rule_is_named_with_file_and_line(tmp_path: Path, operation: str, sentence: str) -> None:
    [found] = said(tmp_path, operation)
    assert found.startswith("shop/migrations/0002_next.py:6: ")
    assert sentence in found


@pytest.mark.parametrize(
    ("operation", "mark"),
    [
        ("migrations.AddField('thing', 'size', models.IntegerField(null=True))", ""),
        ("migrations.AddField('thing', 'size', models.IntegerField(db_default=0))", ""),
        ("migrations.AddField('thing', 'others', models.ManyToManyField('shop.Thing'))", ""),
        ("migrations.AlterField('thing', 'name', models.CharField(max_length=80))", ""),
        ("migrations.RunSQL('create index shop_name on shop_thing (name)')", ""),
        ("migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField('thing', 'note')])", ""),
        ("migrations.RemoveField('thing', 'note')", "    unused_since = '0.1.0'\n"),
    ],
)
def test_what_fits_is_let_through(tmp_path: Path, operation: str, mark: str) -> None:
    assert said(tmp_path, operation, mark=mark) == []


def test_nothing_is_removed_in_the_release_that_stopped_reading_it(tmp_path: Path) -> None:
    assert said(tmp_path, "migrations.RemoveField('thing', 'note')", mark="    unused_since = '0.2.0'\n") != []
