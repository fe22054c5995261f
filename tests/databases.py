"""A migrated SQLite database, kept as the shared runtimes are: making it takes 5 s of processor time, a copy none."""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import django

PROJECT = Path(__file__).parents[1]


def copy_migrated(to: Path) -> None:
    """Copies one with the tables of this code's migrations and no rows but theirs."""
    shutil.copyfile(_kept(), to)


def _kept() -> Path:
    """The file for these migrations; whoever needs it first makes it, and others wait."""
    folder = Path(tempfile.gettempdir()) / f"onnxfarm-test-databases-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    migrations = sorted((PROJECT / "farm").glob("*/migrations/*.py"))
    digest = hashlib.sha256(django.__version__.encode() + b"".join(path.read_bytes() for path in migrations))
    kept = folder / f"{digest.hexdigest()[:16]}.sqlite3"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=folder) as home:
                own = {"DJANGO_SETTINGS_MODULE": "farm.config.settings", "ONNXFARM_HOME": home}
                command = [sys.executable, "-m", "django", "migrate", "--no-input", "--verbosity", "0"]
                subprocess.run(command, env=os.environ | own, cwd=PROJECT, check=True)
                whole = Path(home, "whole.sqlite3")
                with sqlite3.connect(Path(home, "db.sqlite3")) as database:
                    database.execute("VACUUM INTO ?", [str(whole)])
                database.close()
                whole.rename(kept)
    return kept
