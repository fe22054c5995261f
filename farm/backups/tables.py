"""Writes the rows of a model as lines of JSON, the same from SQLite and PostgreSQL, and inserts them again."""

import base64
import gzip
import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import IO, Any, Final
from uuid import UUID

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import DatabaseError, models
from django.db.models import BinaryField, JSONField, Model, Value

from farm.backups.problems import BackupError

# rows, and bytes of them, held in memory at once: a document takes megabytes, most other rows are small
ROWS_READ: Final = 200
ROWS_WRITTEN: Final = 1_000
BYTES_WRITTEN: Final = 8 << 20
MAX_LINE_BYTES: Final = 1 << 30

Columns = list["models.Field[Any, Any]"]


def write_rows(model: type[Model], target: IO[bytes]) -> int:
    """Write all rows of a model, in the order of their ids and compressed with gzip; return how many.

    A line with the names of the columns comes first. `target` stays open.
    """
    columns = [field.attname for field in model._meta.concrete_fields]
    rows = model._base_manager.order_by("pk").values_list(*columns)
    count = 0
    # without a time in the header, the same rows give the same bytes
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=4, mtime=0) as file:
        file.write(_dump_line({"columns": columns}))
        for row in rows.iterator(chunk_size=ROWS_READ):
            file.write(_dump_line(row))
            count += 1
    return count


def insert_rows(model: type[Model], source: IO[bytes]) -> int:
    """Insert the rows that `write_rows` wrote, under the ids that they had; return how many.

    Call inside a transaction: some rows may be inserted before an error.

    Raises BackupError for rows that cannot be read, do not fit the model, or that the database refuses.
    """
    label = model._meta.label_lower
    count = 0
    try:
        with gzip.GzipFile(fileobj=source, mode="rb") as file:
            columns = _find_columns(model, json.loads(file.readline(MAX_LINE_BYTES)))
            for batch in _read_batches(file):
                model._base_manager.bulk_create([_make_row(model, columns, json.loads(line)) for line in batch])
                count += len(batch)
    except (OSError, EOFError, ValueError, TypeError, ValidationError, FieldDoesNotExist) as problem:
        raise BackupError(
            f"The backup's rows of {label} cannot be read, after {count:,} of them: {problem}"
        ) from problem
    except DatabaseError as problem:
        hint = ""
        if "unique" in str(problem).lower():
            # somebody else has written such a row into the same database meanwhile
            hint = (
                " Does a farm still write here? End it, move its folder away, or take another database, and restore "
                "again."
            )
        raise BackupError(
            f"This database refuses the backup's rows of {label}, after {count:,} of them: {problem}.{hint}"
        ) from problem
    return count


def _find_columns(model: type[Model], head: dict[str, Any]) -> Columns:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    names = head["columns"]
    if sorted(names) != sorted(fields):
        raise ValueError(f"its columns are {', '.join(names)[:500]}, the model's {', '.join(fields)}")
    return [fields[name] for name in names]


def _read_batches(file: gzip.GzipFile) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    while line := file.readline(MAX_LINE_BYTES):
        batch.append(line)
        size += len(line)
        if size > BYTES_WRITTEN or len(batch) >= ROWS_WRITTEN:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _make_row(model: type[Model], columns: Columns, values: list[Any]) -> Model:
    if len(values) != len(columns):
        raise ValueError(f"a row has {len(values)} values for {len(columns)} columns")
    return model(**{field.attname: _read_value(field, value) for field, value in zip(columns, values, strict=True)})


def _read_value(field: "models.Field[Any, Any]", value: Any) -> Any:
    if isinstance(field, JSONField):
        # None alone is NULL to the database
        return Value(None, JSONField()) if value is None and not field.null else value
    if value is None:
        return None
    return base64.b64decode(value) if isinstance(field, BinaryField) else field.to_python(value)


def _dump_line(values: object) -> bytes:
    return json.dumps(values, default=_to_json, separators=(",", ":")).encode() + b"\n"


def _to_json(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Decimal | UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no line in a backup")
