"""The rule for migrations: each fits the code of the release before, which goes on running while it is applied.

So nothing that code reads or writes goes away or changes its name in one step, and every row that it inserts without a
new column gets a value from the database. CONTRIBUTING.md says how it is done instead.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.fields import NOT_PROVIDED

# of every app: it makes the tables, and there is no code of before
FIRST = "0001_tables"
IN_SQL = re.compile(r"\b(DROP|RENAME)\b", re.IGNORECASE)
REMOVES = (migrations.RemoveField, migrations.DeleteModel)
RENAMES = (migrations.RenameField, migrations.RenameModel, migrations.AlterModelTable)
# a migration that removes what no release since then reads or writes says which one stopped: `unused_since = "0.1.0"`
MARK = "unused_since"


def broken(path: Path, app: str, before: ProjectState, *, release: str) -> list[str]:
    """What a migration breaks the rule by, a sentence each with file and line."""
    migration = _loaded(path)(path.stem, app)
    lines = _lines(path)
    may_remove = _is_earlier(getattr(migration, MARK, ""), release)
    state = before.clone()
    found = []
    for number, operation in enumerate(migration.operations):
        for why in _broken(operation, app, state, may_remove=may_remove):
            found.append(f"{path.parent.parent.name}/migrations/{path.name}:{lines[number]}: {why}")
        operation.state_forwards(app, state)
    return found


def _broken(operation: Operation, app: str, state: ProjectState, *, may_remove: bool) -> Iterator[str]:
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        for inner in operation.database_operations:
            yield from _broken(inner, app, state, may_remove=may_remove)
    elif isinstance(operation, (*REMOVES, *RENAMES, migrations.RunSQL)):
        yield from () if may_remove else _gone(operation)
    elif isinstance(operation, migrations.AddField):
        field = operation.field
        if not (field.null or field.many_to_many or field.db_default is not NOT_PROVIDED):
            yield f"adds {_name(operation)} without null=True or db_default: code that runs inserts rows without it."
    elif isinstance(operation, migrations.AlterField):
        yield from _altered(operation, app, state)


def _gone(operation: Operation) -> Iterator[str]:
    if isinstance(operation, REMOVES):
        yield f"removes {_name(operation)}, which code that runs reads: take it out of the state a release before."
    elif isinstance(operation, RENAMES):
        yield f"renames {_name(operation)}, which code that runs reads by that name: add the new one beside it."
    elif IN_SQL.search(str(getattr(operation, "sql", ""))):
        yield f"drops or renames by SQL what code that runs may read: say {MARK} = “the release that stopped”."


def _altered(operation: migrations.AlterField, app: str, state: ProjectState) -> Iterator[str]:
    old: models.Field = state.models[app, operation.model_name_lower].fields[operation.name]
    new = operation.field
    if old.null and not new.null:
        yield f"makes {_name(operation)} non-null in one step: code that runs still writes NULL."
    if type(old) is not type(new):
        yield f"makes {_name(operation)} a {type(new).__name__}; to code that runs it is a {type(old).__name__}."
    elif (new.max_length or 0) < (old.max_length or 0):
        yield f"shortens {_name(operation)} to {new.max_length}: code that runs writes up to {old.max_length}."


def _name(operation: Operation) -> str:
    words = [getattr(operation, name, "") for name in ("model_name", "old_name", "name")]
    return ".".join(dict.fromkeys(word for word in words if word))


def _is_earlier(said: str, release: str) -> bool:
    from packaging.version import Version

    return bool(said) and Version(said) < Version(release)


def _loaded(path: Path) -> type[migrations.Migration]:
    spec = importlib.util.spec_from_file_location(f"read_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: type[migrations.Migration] = module.Migration
    return found


def _lines(path: Path) -> list[int]:
    """Where each of its operations begins."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == "operations" for name in node.targets):
            assert isinstance(node.value, ast.List), f"{path}: operations are not a plain list"
            return [one.lineno for one in node.value.elts]
    return []
