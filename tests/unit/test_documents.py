"""The book: README, CONTRIBUTING and docs/. Its links lead somewhere, and what it tells people to type is there."""

import re
from functools import cache
from pathlib import Path

import pytest

from dashboard.documents import slug
from tests.conftest import PROJECT
from tests.stories import STORIES

DOCS = PROJECT / "docs"
GENERATED = DOCS / "reference"
PAGES = sorted([*DOCS.rglob("*.md"), *PROJECT.glob("*.md")])
WRITTEN = [page for page in PAGES if GENERATED not in page.parents and page.name != "CHANGELOG.md"]
MAX_WORDS, MAX_WORDS_OF_CHANGES = 30_000, 2_000
# commands and their options, as tests/inventory.py writes them
COMMANDS = {
    tuple(word for word in line.split() if word.islower() and not word.startswith("--")): set(
        re.findall(r"--[a-z-]+", line)
    )
    for line in (PROJECT / "tests/inventory.txt").read_text().split("\n# ")[0].splitlines()[1:]
    if line.startswith("onnxfarm")
}
ROOTS = ("dashboard/", "deploy/", "docs/", "farm/", "onnxfarm/", "requirements/", "tests/", "worker/")


def named(page: Path) -> str:
    return page.relative_to(PROJECT).as_posix()


@cache
def anchors(page: Path) -> frozenset[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(slug(re.sub(r"\[(.*?)\]\(.*?\)|[`*]", r"\1", head)) for head in heads)


def code(page: Path) -> list[str]:
    """Each line of a block, lines that go on joined, and each span between backticks."""
    text = page.read_text()
    blocks = re.findall(r"^ *```[^\n]*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()] + spans


def test_the_index_names_every_document() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", index))
    names = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(names - linked - {"README.md"}) == []


def test_each_how_to_begins_with_a_command() -> None:
    listed = (DOCS / "README.md").read_text().partition("## How-to")[2].partition("## Reference")[0]
    names = re.findall(r"\]\(([\w-]+\.md)\)", listed)
    assert len(names) >= 12
    assert [name for name in names if not re.match(r"# .+\n\n```", (DOCS / name).read_text())] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_a_command_that_people_are_told_to_type_is_there_with_its_options(page: Path) -> None:
    for line in code(page):
        for typed in re.findall(r"(?:^|&& |; |\.venv/bin/)onnxfarm ([a-z].*)", line):
            words = re.split(r" [#&|;]|\s+#|…\s", typed)[0].split()
            choices = [[word.split("|") for word in words[:size]] for size in (3, 2, 1)]
            names = [tuple(part[-1] for part in choice) for choice in choices]
            known = next((COMMANDS[("onnxfarm", *name)] for name in names if ("onnxfarm", *name) in COMMANDS), None)
            if known is None and any(command[1 : 1 + len(words)] == tuple(words) for command in COMMANDS):
                continue  # a group of commands
            assert known is not None, line
            told = {option.partition("=")[0] for option in re.findall(r"--[a-z][a-z-]*", " ".join(words))}
            assert told - known - {"--help"} == set(), line


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_a_path_of_the_repository_is_there(page: Path) -> None:
    for line in code(page):
        for word in re.findall(rf"(?:^|(?<=[\s'\"(=]))((?:{'|'.join(ROOTS)})[\w./*-]+)", line):
            path = word.rstrip(".,:")
            assert [*PROJECT.glob(path)] or path == "deploy/.env", line


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_a_story_and_a_module_that_prove_something_are_there(page: Path) -> None:
    for line in code(page):
        for name in re.findall(r"--long ([a-z][\w-]*)", line):
            assert name in {story.name for story in STORIES}, line
        for module in re.findall(r"-m ((?:tests|farm)\.[\w.]+)", line):
            path = PROJECT / module.replace(".", "/").rstrip("/…")
            assert path.is_dir() or path.with_suffix(".py").is_file() or module.endswith("."), line


def test_the_book_is_short_enough_to_be_read() -> None:
    counts = {named(page): len(page.read_text(encoding="utf-8").split()) for page in WRITTEN}
    assert sum(counts.values()) <= MAX_WORDS, counts
    assert len((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8").split()) <= MAX_WORDS_OF_CHANGES
