"""Rows as Parquet, where the server has pyarrow: it is an extra, since no page and no node needs it."""

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum

from farm.base.refusals import Unprocessable

MEDIA_TYPE = "application/vnd.apache.parquet"


def parquet_of(rows: Sequence[Mapping[str, object]]) -> bytes:
    """The rows as one file, a column a name, empty texts as nulls. Raises Unprocessable without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Unprocessable(
            "Parquet is not available: pyarrow is not installed on the farm's server.",
            code="no_pyarrow",
            hint="An administrator can install it: pip install 'onnxfarm[parquet]'. CSV and JSON have the same rows.",
        ) from None
    table = pyarrow.Table.from_pylist([{name: _plain(value) for name, value in row.items()} for row in rows])
    target = io.BytesIO()
    pyarrow.parquet.write_table(table, target)
    return target.getvalue()


def _plain(value: object) -> object:
    """Numbers and moments as they are, anything else as text."""
    if value is None or value == "":
        return None
    if isinstance(value, Enum):
        return str(value.value)
    return value if isinstance(value, bool | int | float | str | datetime) else str(value)
