"""A chaos farm on small file systems of its own leaves no folder behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.postgres import SKIPPED

# what __main__ does around its faults; nothing is started
FARM = """
import sys
from pathlib import Path
from tests.chaos.farm import ChaosFarm
from tests.postgres import SKIPPED, NoPostgresError
try:
    farm = ChaosFarm(Path(sys.argv[1]), agents=2, is_postgres=sys.argv[2] == "postgres", can_fill=True)
except NoPostgresError as problem:
    print(problem, file=sys.stderr)
    sys.exit(SKIPPED)
print(farm.disk, farm.disk.is_mount())
farm.stop()
farm.remove()
"""


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_folders_that_small_file_systems_were_mounted_on_are_removed(tmp_path: Path, database: str) -> None:
    options = ["-m"] if os.geteuid() == 0 else ["-rm"]
    able = shutil.which("unshare") and not subprocess.run(["unshare", *options, "true"], check=False).returncode
    if not able:
        pytest.skip("a mount namespace is not allowed here")
    folder = tmp_path / "farm"
    folder.mkdir()
    words = ["unshare", *options, sys.executable, "-c", FARM, str(folder), database]
    done = subprocess.run(words, cwd=PROJECT, check=False, capture_output=True, text=True, timeout=60)
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    disk, was_mounted = done.stdout.split()
    assert was_mounted == "True"
    assert (folder.exists(), Path(disk).exists()) == (False, False)
