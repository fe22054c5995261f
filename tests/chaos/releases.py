"""A release of the farm as git keeps it, beside this checkout: its programs run out of a folder of their own."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tests.chaos.farm import ROOT

# of those since migrations began anew the first that passes its own tests; for clones without a tag of a release
FIRST: Final = "06b311c7d6d444ad4e12ebbc959b769f35029ab4"
# all that a database has not yet, in the order in which they are applied
NEW_MIGRATIONS: Final = """
import django; django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
executor = MigrationExecutor(connection)
for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()):
    print(migration.app_label, migration.name)
"""


class NoReleaseError(RuntimeError):
    """A release is not to be had here; the text says why and what to do."""


@dataclass(frozen=True)
class Release:
    """A checkout and how its programs are started."""

    name: str
    root: Path

    @classmethod
    def here(cls) -> Self:
        """This checkout."""
        return cls("here", ROOT)

    @classmethod
    def before(cls, folder: Path) -> Self:
        """The files of the newest release that this checkout goes on from, in a folder. Raises NoReleaseError."""
        return cls.unpacked(newest(), folder)

    @classmethod
    def unpacked(cls, commit: str, folder: Path) -> Self:
        """The files of a commit, in a folder. Raises NoReleaseError."""
        kept = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False)
        if kept.returncode:
            said = kept.stderr.decode(errors="replace").strip()[-200:]
            raise NoReleaseError(
                f"The release before, {commit[:12]}, is not in this clone ({said}): git fetch --unshallow gets it."
            )
        folder.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(folder)], input=kept.stdout, check=True)
        return cls(commit[:8], folder)

    def options(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Of Popen: its own modules come first, on this checkout's packages."""
        path = f"{Path(sys.executable).parent}:{environment['PATH']}"
        return {"cwd": self.root, "env": {**environment, "PYTHONPATH": str(self.root), "PATH": path}}

    def process(self, name: str) -> list[str]:
        """The command line of a process of the farm, as units and containers start it."""
        return [str(self.root / "deploy" / "process"), name]

    def run(self, *words: str, environment: Mapping[str, str], timeout_s: float = 120) -> str:
        """What `python WORDS…` prints. Raises AssertionError with what it said where it fails."""
        done = subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            **self.options(environment),
        )
        assert not done.returncode, f"{self.name}: {' '.join(words)}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        return str(done.stdout)


def newest() -> str:
    """The tag of the last release before this checkout, by its number; the first release where there is no tag."""
    words = ["git", "-C", str(ROOT), "tag", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-version:refname"]
    listed = subprocess.run([*words, "--list", "v[0-9]*"], capture_output=True, text=True, check=False).stdout.split()
    return listed[0] if listed else FIRST
