"""Where the farm's documents lie: in a checkout beside its code, else with the environment's data."""

from pathlib import Path

import pytest

from dashboard import documents
from dashboard.templatetags import pages
from tests.conftest import PROJECT


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder that the farm runs from, with a folder `docs` in it."""
    (tmp_path / "docs").mkdir()
    return tmp_path


def test_a_checkout_shows_its_own_documents(code: Path) -> None:
    (code / "pyproject.toml").write_text("[project]\n")
    assert documents.root(code) == code / "docs"


def test_a_folder_docs_of_another_package_beside_an_installed_farm_is_not_shown(code: Path) -> None:
    assert documents.root(code) == documents.INSTALLED


def test_a_farm_without_documents_explains_no_word_and_a_page_says_the_bare_one(code: Path) -> None:
    (code / "pyproject.toml").write_text("[project]\n")
    assert documents.terms(code) == {}
    assert pages.term("a word of nobody") == "a word of nobody"


def test_the_image_of_the_server_carries_the_documents_that_its_pages_show() -> None:
    lines = (PROJECT / "deploy" / "containers" / "server.Containerfile").read_text().splitlines()
    assert "COPY docs docs" in lines
    assert "docs" not in (PROJECT / ".dockerignore").read_text().split()
