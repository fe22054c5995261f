"""The made-up bench document that pages and figures are tested with; see make_document.py."""

from pathlib import Path

import pytest

from farm.contract.document import Document
from farm.contract.document_cells import Cell

FIXTURE = Path(__file__).with_name("document.json")


@pytest.fixture(scope="session")
def document() -> Document:
    """One of everything a page must show: slower, equal, a twin, refused, crashed, bimodal, mixed placement."""
    return Document.model_validate_json(FIXTURE.read_text())


@pytest.fixture
def by_id(document: Document) -> dict[str, Cell]:
    return {cell.id: cell for cell in document.cells}


def address(cell_id: str) -> str:
    """Where a cell's page would be."""
    return f"/runs/1/cells/{cell_id}/"
