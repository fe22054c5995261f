"""The book: README, CONTRIBUTING and docs/. Its links lead somewhere, and what it tells people to type is there."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands as commands_of_django
from django.core.management import load_command_class

from dashboard.documents import slug
from tests.conftest import PROJECT
from tests.stories import STORIES
from tests.unit.commands.test_help import EVERY

DOCS = PROJECT / "docs"
GENERATED = DOCS / "reference"
PAGES = sorted([*DOCS.rglob("*.md"), *PROJECT.glob("*.md")])
WRITTEN = [page for page in PAGES if GENERATED not in page.parents and page.name != "CHANGELOG.md"]
MAX_WORDS, MAX_WORDS_OF_CHANGES = 30_000, 2_000
INVENTORY = {
    title: lines.splitlines()
    for title, lines in re.findall(
        r"^# (.+)\n((?:(?!# ).*\n)*)", (PROJECT / "tests/inventory.txt").read_text(), re.MULTILINE
    )
}
# what stands for something in a command, where its type matters
STAND_INS = {"RUN": "12", "ALERT": "3", "TRIAL": "2"}
FILES = {".onnx", ".npz", ".json", ".yaml", ".csv", ".pt2", ".txt", ".pem", ".key"}
# other people's programs, whose options are theirs
FOREIGN = r"\b(?:docker|kubectl|uv|uvx|pip|createuser|createdb|git|pytest|curl|apt-get|ssh)\b"
# folders of a machine, which are no pages
FOLDERS = ("tmp", "usr", "sys", "proc", "run", "farm", "node", "dev", "etc", "simple")
GATES = (PROJECT / "deploy/gitlab-ci.yml", PROJECT / "onnxfarm/ci.py")
ROOTS = ("dashboard/", "deploy/", "docs/", "farm/", "onnxfarm/", "requirements/", "tests/", "worker/")


def named(page: Path) -> str:
    return page.relative_to(PROJECT).as_posix()


@cache
def anchors(page: Path) -> frozenset[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(slug(re.sub(r"\[(.*?)\]\(.*?\)|[`*]", r"\1", head)) for head in heads)


def blocks(page: Path) -> list[str]:
    """Each line of a block, lines that go on joined."""
    found = re.findall(r"^ *```[^\n]*\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line.strip() for block in found for line in block.replace("\\\n", " ").splitlines()]


def spans(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))


def code(page: Path) -> list[str]:
    return blocks(page) + spans(page)


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
def test_a_command_is_taken_as_it_is_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in blocks(page):
        for given in typed_in(line):
            must_be_taken(given, line)
    for line in spans(page):
        for given in typed_in(line):
            try:
                must_be_taken(given, line)
            except Exception as problem:
                # a sentence may leave out what a command is about, and what an option holds
                if type(problem).__name__ not in ("MissingParameter", "BadOptionUsage"):
                    raise


def typed_in(line: str) -> Iterator[list[str]]:
    """The words after `onnxfarm`; `pause|drain NODE` stands for two commands."""
    for typed in re.findall(r"(?<!namespace)(?:^|[\s/(]|-m onnxfarm\.main )onnxfarm ([a-z].*)", line):
        words = shlex.split(re.split(r" [#&;>]|\s+#|\s→| \[|, ", typed)[0])
        at = next((at for at, word in enumerate(words) if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word)), len(words))
        for word in words[at].split("|") if at < len(words) else [""]:
            yield [*words[:at], *filter(None, [word]), *words[at + 1 :]]


def must_be_taken(given: list[str], line: str) -> None:
    name = next((name for name in EVERY if f"{' '.join(given)} ".startswith(f"{name} ")), None)
    if name is None:
        assert any(known.startswith(f"{' '.join(given)} ") for known in EVERY), line  # a group of commands
        return
    rest = [STAND_INS.get(word, word) for word in given[len(name.split()) :]]
    for word in rest:
        if Path(word).suffix in FILES or word.isupper() or word == "…":
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            Path(word).touch()
    EVERY[name].make_context(line, rest)


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_a_command_of_manage_py_is_there_with_its_options(page: Path) -> None:
    for line in code(page):
        for name, rest in re.findall(r"manage\.py ([a-z_]+)([^#`;&|]*)", line):
            assert name in commands_of_django(), line
            made = load_command_class(commands_of_django()[name], name)
            known = {
                word for action in made.create_parser("manage.py", name)._actions for word in action.option_strings
            }
            assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= known, line


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_an_option_is_one_of_the_program_that_it_is_typed_for(page: Path) -> None:
    for line in code(page):
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", line))
        if options and not re.search(FOREIGN, line):
            assert options <= known_options(), line
            for program in re.findall(r"(?:-m |^)((?:tests|farm)\.[\w.]+|[a-z_.]+)(?= )|(deploy/[a-z-]+)", line):
                source = source_of(*program)
                if source and "onnxfarm " not in line:
                    assert [name for name in options if name not in source and f'"{name[2:]}"' not in source] == [], (
                        line
                    )


@cache
def known_options() -> frozenset[str]:
    """Of our commands, and what scripts and modules of the repository read."""
    files = [
        *PROJECT.glob("tests/**/*.py"),
        *PROJECT.glob("farm/**/*.py"),
        *filter(Path.is_file, PROJECT.glob("deploy/*")),
    ]
    read = [word for file in files for word in re.findall(r"--[a-z][a-z-]*", file.read_text())]
    return frozenset(["--help", *read, *re.findall(r"--[a-z][a-z-]*", " ".join(INVENTORY["commands"]))])


def source_of(module: str, script: str) -> str:
    """The text of a module or script, of a package all of it; results.md names a bench by its module alone."""
    path = PROJECT / (script or module.replace(".", "/"))
    found = [path, path.with_suffix(".py"), PROJECT / "tests/bench" / f"{module}.py", *path.glob("*.py")]
    return "".join(file.read_text() for file in found if file.is_file())


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_an_address_of_a_farm_is_one_that_it_has(page: Path) -> None:
    known = [
        *(f"/api/v1{line.split()[1]}" for line in INVENTORY["operations of /api/v1"] if line),
        *(line.split()[0] for line in INVENTORY["addresses"] if line),
    ]
    forms = [re.sub(r"<[^>]+>|\{[^}]+\}", "[^/]+", path.rstrip("/")).replace("…", ".*") for path in known]
    for line in code(page):
        for path in re.findall(r"(?:^|[ (\"'L]|farm\.example)(/[a-z][\w/.‹›-]+)", line):
            if path.split("/")[1] not in FOLDERS:
                assert any(
                    re.fullmatch(form, path.rstrip("./")) or (path.endswith("/") and form.startswith(path))
                    for form in forms
                ), line


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_a_variable_and_a_figure_of_the_farm_s_metrics_are_there(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(r"\bONNXFARM_[A-Z_]+[A-Z]", text)) <= set(INVENTORY["environment"])
    assert set(re.findall(r"\bGATE_[A-Z]+", text)) <= set(
        re.findall(r"GATE_[A-Z]+", "".join(file.read_text() for file in GATES))
    )
    sources = "".join(file.read_text() for file in PROJECT.glob("farm/**/*.py"))
    for name in re.findall(r"`(onnxfarm_[a-z_]+)`", text):
        assert f'"{name.removesuffix("_info")}' in sources, name


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


def test_each_part_of_the_results_names_a_command() -> None:
    parts = re.split(r"^## ", (DOCS / "results.md").read_text(), flags=re.MULTILINE)[1:]
    assert [part.splitlines()[0] for part in parts if "`" not in part] == ["What was missed"]


def test_the_book_is_short_enough_to_be_read() -> None:
    counts = {named(page): len(page.read_text(encoding="utf-8").split()) for page in WRITTEN}
    assert sum(counts.values()) <= MAX_WORDS, counts
    assert len((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8").split()) <= MAX_WORDS_OF_CHANGES
