"""Mutants of the farm's own code: is each small change in what decides caught by the tests of its own room?

    python -m tests.bench.code_mutants --seed 32 [--each 8] [--room leases] [--list] > mutants.jsonl

Draws by seed, for each room, places where one operator, number or condition decides, changes one at a time in a copy
of the working tree and runs the room's tests until one fails. A JSON line each. Numbers at the top of a module are
choices, of which tests hold that they bind: they are not changed. EQUIVALENT names the mutants that change nothing
anybody can see, with the reason; another is drawn for each.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
MAX_S = 600.0


@dataclass(frozen=True)
class Room:
    """Code that decides, and the tests that hold it."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


def _rules(names: str) -> tuple[str, ...]:
    return tuple(f"tests/unit/rules/test_{name}.py" for name in names.split())


ROOMS = {
    "verdicts": Room(
        (
            *(
                "farm/rules/comparing/verdicts.py",
                "farm/rules/comparing/[fmru]*s.py",
                "farm/rules/comparing/unpaired.py",
            ),
            *("farm/rules/comparing/sides.py", "farm/rules/judging/*verdicts.py", "farm/rules/judging/com*.py"),
        ),
        _rules(
            "verdicts margins flips multiplicity repeats unpaired sides metric_verdicts judging node_verdicts "
            "confounders simulated hardware timings"
        ),
    ),
    "refusals": Room(
        ("farm/rules/planning/*refusals.py", "farm/rules/planning/*_problems.py"),
        _rules(
            "planning fed scenarios planning_fleet genai points compiled memory_limits simulated opset_axis plug_ins "
            "distributions prompts sustained recipes cell_matrices"
        ),
    ),
    "leases": Room(
        ("farm/runs/services/l*s.py", "farm/runs/services/st*s.py", "farm/runs/models/block.py"),
        (
            *("tests/integration/runs/test_leases.py", "tests/integration/runs/test_stuck_or_lost.py"),
            *("tests/integration/runs/test_orders.py", "tests/integration/runs/test_client_api.py"),
            *("tests/integration/runs/test_locks.py", "tests/integration/fleet/test_lending.py"),
        ),
    ),
    "quotas": Room(
        (
            *("farm/api/rates.py", "farm/api/doors.py", "farm/api/bodies.py", "farm/runs/services/node_files.py"),
            *("farm/registry/services/uploads.py", "farm/registry/services/resumption.py"),
        ),
        (
            *("tests/unit/test_door.py", "tests/integration/runs/test_filling_the_store.py"),
            *("tests/integration/registry/test_resumable.py", "tests/integration/registry/test_uploads.py"),
            "tests/integration/node_api/test_doors.py",
        ),
    ),
    "permissions": Room(
        (
            *(
                "farm/accounts/models/*.py",
                "farm/accounts/selectors.py",
                "farm/accounts/services.py",
                "farm/api/auth.py",
            ),
            *("farm/fleet/selectors/nodes.py", "farm/runs/selectors/backlog.py", "farm/runs/models/run.py"),
        ),
        (
            *("tests/integration/accounts/test_accounts.py", "tests/integration/accounts/test_people.py"),
            *("tests/integration/runs/test_leases.py", "tests/integration/fleet/test_lending.py"),
            *("tests/integration/dashboard/test_shares.py", "tests/integration/api/test_frame.py"),
            *("tests/integration/accounts/test_openid.py", "tests/integration/api/test_scopes.py"),
            "tests/integration/access/test_access.py",
        ),
    ),
}
# name of the mutant → why nobody can see it
EQUIVALENT: dict[str, str] = {}

OTHERS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    function: str
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.function}: {self.before} → {self.after}"


def mutants_of(file: str) -> Iterator[Mutant]:
    """All of one file: every operator, number and condition inside its functions, changed one at a time."""
    tree = ast.parse((PROJECT / file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    nested = {inner for outer in functions for inner in ast.walk(outer) if inner is not outer and inner in functions}
    for function in [node for node in functions if node not in nested]:
        for node in [node for statement in function.body for node in ast.walk(statement)]:
            if isinstance(node, ast.expr | ast.If):
                shown = node.test if isinstance(node, ast.If) else node
                before = ast.unparse(shown)
                for _ in changes_of(node):
                    after = ast.unparse(node.test if isinstance(node, ast.If) else node)
                    yield Mutant(file, node.lineno, function.name, before, after, ast.unparse(tree))


def changes_of(node: ast.AST) -> Iterator[None]:
    """Changes the node in place, each time it is asked for the next change, and puts it right again."""
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            yield from _with(node.ops, number, OTHERS[type(operator)]())
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in OTHERS:
        yield from _with(node, "op", OTHERS[type(node.op)]())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield from _with(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from _with(node, "value", node.value + 1)
    elif isinstance(node, ast.If) and not isinstance(node.test, ast.Compare):
        yield from _with(node, "test", ast.UnaryOp(ast.Not(), node.test))


def _with(holder: object, place: str | int, value: object) -> Iterator[None]:
    kept = holder[place] if isinstance(holder, list) else getattr(holder, place)
    _put(holder, place, value)
    yield
    _put(holder, place, kept)


def _put(holder: object, place: str | int, value: object) -> None:
    if isinstance(holder, list):
        holder[place] = value
    else:
        setattr(holder, place, value)


def drawn(name: str, *, seed: int, each: int) -> list[Mutant]:
    """The room's mutants, drawn by seed, without those that are known to change nothing."""
    files = sorted(
        {str(path.relative_to(PROJECT)) for pattern in ROOMS[name].sources for path in PROJECT.glob(pattern)}
    )
    known = sorted(
        (mutant for file in files for mutant in mutants_of(file)), key=lambda mutant: (mutant.name, mutant.line)
    )
    random.Random(f"{seed} {name}").shuffle(known)
    return [mutant for mutant in known if mutant.name not in EQUIVALENT][:each]


def caught(mutant: Mutant, tests: tuple[str, ...], *, copy: Path) -> dict[str, object]:
    """Whether the tests see the mutant: which one first, after how many seconds."""
    path = copy / mutant.file
    sound = path.read_text(encoding="utf-8")
    path.write_text(mutant.text, encoding="utf-8")
    options = ("-q", "-x", "--no-migrations", "-p", "no:cacheprovider")
    # files that name the function first
    tests = tuple(sorted(tests, key=lambda file: mutant.function not in (copy / file).read_text(encoding="utf-8")))
    command = [sys.executable, "-m", "pytest", *options, *tests]
    before, began = os.times(), time.monotonic()
    try:
        ended = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=MAX_S, check=False)
    except subprocess.TimeoutExpired:
        return {"by": "", "why": f"nothing failed in {MAX_S:.0f} s"}
    finally:
        path.write_text(sound, encoding="utf-8")
    after = os.times()
    failed = [line.split(" ")[1] for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    processor_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "by": failed[0] if failed else "",
        "seconds": round(time.monotonic() - began, 1),
        "processor_s": round(processor_s, 1),
    }


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=32)
    parser.add_argument("--each", type=int, default=8, help="mutants of each room")
    parser.add_argument("--room", choices=ROOMS, action="append", help="these alone")
    parser.add_argument("--only", default="", help="mutants whose name has this in it")
    parser.add_argument("--list", action="store_true", help="name them, and run nothing")
    options = parser.parse_args()
    head = _git("rev-parse", "--short", "HEAD").strip()
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="onnxfarm-mutants-") as folder:
        copy = Path(folder) / "onnxfarm"
        files = _git("ls-files", "-z")
        for file in files.split("\0")[:-1] if not options.list else []:
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / file, copy / file, follow_symlinks=False)
        for room in options.room or ROOMS:
            for mutant in drawn(room, seed=options.seed, each=options.each):
                if options.only not in mutant.name:
                    continue
                drawn_from = {"seed": options.seed, "commit": head}
                told = {"room": room, "mutant": mutant.name, "at": f"{mutant.file}:{mutant.line}", **drawn_from}
                if not options.list:
                    told |= caught(mutant, ROOMS[room].tests, copy=copy)
                    survivors += not told["by"]
                print(json.dumps(told, ensure_ascii=False), flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
