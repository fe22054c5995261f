"""The parts of cells that many points of a matrix share: program, session and workload."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel

from farm.contract.base import digest_json

# the indexes of a cell's parts: what runs it, its session, and what it is given
PROGRAM, SESSION, WORKLOAD = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some fields of a CellSpec. Parts are compared by identity; those with equal fields have equal digests."""

    fields: Mapping[str, Any]
    # the matrix's values for it in words, by axis
    words: dict[str, str]
    digest: str

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], words: dict[str, str]) -> Self:
        """Make the part of these fields, with the digest of their values."""
        plain = {
            name: value.model_dump(mode="json") if isinstance(value, BaseModel) else value
            for name, value in fields.items()
        }
        return cls(fields, words, digest_json(plain))
