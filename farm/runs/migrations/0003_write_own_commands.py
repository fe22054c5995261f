"""The commands in stored documents, which nodes had worded, are written from the cells; packages are checked."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from pydantic import ValidationError

from farm.contract.base import FILE_NAME
from farm.contract.cells import CellSpec
from farm.contract.packages import is_pinned
from farm.rules.cells.commands import diverge_command, repeat_command

BATCH = 200
# no document holds this character: as JSON it is escaped
_MARK = "\x00number "
_NUMBER = re.compile(r'"\\u0000number ([^"]+)"')
SpecOf = Callable[[str], CellSpec | None]


def write(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Correct cells, finished documents and answers, and write those that change."""
    _write_cells(apps.get_model("runs", "CellDocument").objects.defer("operators"), apps)
    _write_documents(apps.get_model("runs", "FinishedDocument").objects, apps)
    _write_answers(apps.get_model("runs", "Divergence").objects.exclude(body=""))


def _write_cells(rows: Any, apps: StateApps) -> None:
    arms = apps.get_model("runs", "Arm").objects

    # cells of a block follow each other
    @lru_cache(maxsize=4)
    def specs_of(block: int) -> SpecOf:
        return _specs(arms.filter(block=block))

    for row in _batched(rows.select_related("arm__block__run__version__artifact")):
        cell = json.loads(row.body)
        _correct(cell, specs_of(row.arm.block_id), main=row.arm.block.run.version.artifact.main)
        body = json.dumps(cell, ensure_ascii=False, separators=(",", ":"))
        if cell != json.loads(row.body):
            rows.filter(pk=row.pk).update(body=body)


def _write_documents(rows: Any, apps: StateApps) -> None:
    for row in _batched(rows.select_related("run__version__artifact")):
        before = gzip.decompress(bytes(row.body))
        document = _parsed(before)
        specs = _specs(apps.get_model("runs", "Arm").objects.filter(block__run=row.run))
        for cell in document.get("cells", ()):
            _correct(cell, specs, main=row.run.version.artifact.main)
        if document != _parsed(before):
            text = _NUMBER.sub(r"\1", json.dumps(document, ensure_ascii=False, indent=2))
            rows.filter(pk=row.pk).update(body=gzip.compress(text.encode(), compresslevel=5, mtime=0))


def _parsed(text: bytes) -> Any:
    """A document whose numbers are texts with a mark in front, so that each is written again as it was: `4e-7`."""
    return json.loads(text, parse_float=lambda number: f"{_MARK}{number}")


def _write_answers(rows: Any) -> None:
    for row in _batched(rows.select_related("arm__cell", "against__cell", "arm__block__run__version__artifact")):
        document = json.loads(row.body)
        part = (document.get("found") or {}).get("part")
        if part is None:
            continue
        main = row.arm.block.run.version.artifact.main
        spec = _spec(row.arm.cell.spec_json)
        against = _spec(row.against.cell.spec_json) if row.against is not None else None
        is_known = bool(part.get("command")) and (against is not None or row.against is None)
        own = diverge_command(spec, main, against=against and against.runtime, has_inputs=True) if spec else ""
        files = [name for name in part.get("files", ()) if re.fullmatch(FILE_NAME, name)]
        part |= {"main": main, "command": own if is_known else "", "files": files}
        rows.filter(pk=row.pk).update(body=json.dumps({**document, "model": main}, ensure_ascii=False))


def _correct(cell: dict[str, Any], spec_of: SpecOf, *, main: str) -> None:
    """The cell of a document with the farm's own words for what people copy."""
    spec = spec_of(cell["id"])
    packages = cell.get("packages") or {}
    cell["packages"] = {name: version for name, version in packages.items() if is_pinned(name, version)}
    cell["repeat_command"] = repeat_command(spec, main) if spec is not None else ""
    for part in (cell.get("parity") or {}, *(cell.get("engines") or ())):
        if part.get("command"):
            against = spec_of(part["cell"]) if "cell" in part else None
            is_known = spec is not None and (against is not None or "cell" not in part)
            part["command"] = _diverge(spec, against, main) if is_known else ""


def _specs(arms: Any) -> SpecOf:
    """What each of these arms measured, by its name, read when it is asked for."""
    known = dict(arms.values_list("name", "cell__spec_json"))
    return lambda name: _spec(known[name]) if name in known else None


def _spec(plain: Any) -> CellSpec | None:
    try:
        return CellSpec.model_validate(plain)
    except ValidationError:
        # a runtime that matrices take no more
        return None


def _diverge(spec: CellSpec | None, against: CellSpec | None, main: str) -> str:
    return diverge_command(spec, main, against=against and against.runtime) if spec is not None else ""


def _batched(rows: Any) -> Iterator[Any]:
    numbers = list(rows.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(numbers), BATCH):
        yield from rows.filter(pk__in=numbers[start : start + BATCH])


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_divergence")]

    operations = [migrations.RunPython(write, migrations.RunPython.noop)]
