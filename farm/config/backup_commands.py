"""`onnxfarm farm backup FILE` and `restore FILE`: writes a farm to one file, and restores it from there.

In a checkout: `python -m farm.config.backup_commands`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from farm.config.embedded.plan import NotPossibleError, lock_home
from farm.rules.wording.numbers import size

EXIT_INFRASTRUCTURE = 3
# the file in the farm's folder that has the token for this machine's terminals
TOKEN = "token"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, print its result or error, and return its exit status: 0, or 3 if it failed."""
    parser = argparse.ArgumentParser(prog="onnxfarm farm", description=__doc__)
    parser.add_argument("what", choices=("backup", "restore"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    options = parser.parse_args(argv)
    os.environ["ONNXFARM_HOME"] = str(options.home.resolve())
    os.environ["DJANGO_SETTINGS_MODULE"] = "farm.config.settings"
    import django

    from farm.backups.problems import BackupError

    try:
        if options.what == "backup" and not options.home.is_dir():
            raise BackupError(f"There is no farm in {options.home}: name its folder with --home, or in ONNXFARM_HOME.")
        django.setup()
        result = _back_up(options.file) if options.what == "backup" else _restore(options.file)
    except (BackupError, NotPossibleError, OSError) as problem:
        print(f"onnxfarm: {problem}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    print(result)
    return 0


def _back_up(file: Path) -> str:
    from django.conf import settings

    from farm.backups.creation import make_backup

    result = make_backup(file, node_identity=settings.HOME / "node" / "node.json")
    text = (
        f"Backed up {result.rows:,} rows and {result.files:,} files in {file} ({size(result.bytes)}). "
        "It opens the farm: keep it private."
    )
    names_by_problem = {
        "not in the store (or removed meanwhile)": result.missing,
        "with another content than named by": result.damaged,
    }
    lost = [f"{len(names):,} {problem}: {names[0]}" for problem, names in names_by_problem.items() if names]
    return f"{text}\nThe database names files that it could not take along: {'; '.join(lost)}." if lost else text


def _restore(file: Path) -> str:
    from django.conf import settings

    from farm.backups.restoration import RestorePaths, restore_backup

    home = settings.HOME
    paths = RestorePaths(home / "secret_key", home / "node" / "node.json", fixed_key=settings.ENVIRONMENT.secret_key)
    with lock_home(home):
        result = restore_backup(file, paths=paths)
    text = (
        f"Restored {result.rows:,} rows and {result.files:,} files, as they were at {result.taken_at}. Start the farm. "
        f"A backup holds no tokens: those in use stay valid, and `onnxfarm serve` writes a new one to {home / TOKEN}."
    )
    if not result.left_out:
        return text
    count = f"{len(result.left_out):,} files that the database names"
    return f"{text}\n{count} were not in the backup: {result.left_out[0]}."


if __name__ == "__main__":
    sys.exit(main())
