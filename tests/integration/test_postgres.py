"""The tests of leases, orders, locks and migrating on a real PostgreSQL; others: `deploy/test --postgres`."""

import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT
from tests.postgres import SKIPPED

FILES = ["test_leases.py", "test_sweep.py", "test_orders.py", "test_locks.py", "test_migrating.py"]


@pytest.mark.skipif("ONNXFARM_TEST_DATABASE_URL" in os.environ, reason="these tests run on PostgreSQL already")
def test_leases_orders_and_locks_hold_on_postgresql() -> None:
    files = [f"tests/integration/runs/{name}" for name in FILES]
    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    words = [sys.executable, "-m", "tests.postgres", sys.executable, "-m", "pytest", *quiet, *files]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ONNXFARM_", "PYTEST_"))}
    done = subprocess.run(words, cwd=PROJECT, env=environment, check=False, capture_output=True, text=True, timeout=280)
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
