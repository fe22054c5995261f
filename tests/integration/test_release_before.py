"""Each migration that the release before has not, under that release: its own tests pass on the database it leaves.

Which release that is and which migrations are new is asked of git and of the database, so that a new one is found by
itself. All of them at once in the suite; one after the other in `bash deploy/test --long upgrade`, which does the same
to real processes while they are used.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.releases import NEW_MIGRATIONS, NoReleaseError, Release
from tests.postgres import Cluster

pytestmark = pytest.mark.timeout(2400)
# of the release before: a run from its start to its documents
SMOKE = "tests/integration/runs/test_a_block_from_start_to_end.py"
# its pages, teams and their members, watches and alerts: once, on the last migration
PAGES = (
    "tests/integration/dashboard/test_run_page.py",
    "tests/integration/dashboard/test_team_pages.py",
    "tests/integration/dashboard/test_watch_pages.py",
)
# its tests on a database that is there, and that other code migrated further
SETTINGS = """
from tests.settings import *
DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
"""
KINDS = ["sqlite", *(["postgresql"] if "ONNXFARM_TEST_DATABASE_URL" in os.environ else [])]


class Earlier:
    """The release before with a database of its own."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.release = Release.before(folder / "before")
        self.home = folder / "home"
        (self.home / "settings").mkdir(parents=True)
        (self.home / "settings" / "kept_settings.py").write_text(SETTINGS)
        own = {"ONNXFARM_HOME": str(self.home), "ONNXFARM_DATABASE_URL": database_url}
        told = {"DJANGO_SETTINGS_MODULE": "farm.config.settings", "ONNXFARM_HOST_LOCK": str(self.home / "lock")}
        foreign = ("ONNXFARM_", "DJANGO_", "PYTEST_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.environment = kept | own | told
        tests = {"ONNXFARM_TEST_HOME": str(self.home), "ONNXFARM_TEST_HOME_OF": ""}
        if database_url:
            tests["ONNXFARM_TEST_DATABASE_URL"] = database_url
        self._tests = self.release.options(self.environment | tests)
        self._tests["env"]["PYTHONPATH"] += f":{self.home / 'settings'}"

    def smoke(self, *more: str) -> tuple[int, str]:
        """How its own tests end on the database as it is, and their last words."""
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-x"]
        words += ["--ds", "kept_settings", "--reuse-db", SMOKE, *more]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, **self._tests)
        return done.returncode, (done.stdout + done.stderr)[-3000:]

    def migrate(self, *words: str, by: Release) -> None:
        by.run("manage.py", "migrate", "--no-input", *words, environment=self.environment)

    def new_migrations(self) -> list[str]:
        return Release.here().run("-c", NEW_MIGRATIONS, environment=self.environment).splitlines()


@pytest.fixture(params=KINDS)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Earlier]:
    try:
        if request.param == "sqlite":
            yield Earlier(tmp_path, "")
        else:
            with Cluster() as cluster:
                yield Earlier(tmp_path, cluster.url)
    except NoReleaseError as why:
        pytest.skip(str(why))


@pytest.mark.slow
def test_the_release_before_works_on_all_new_migrations(earlier: Earlier) -> None:
    earlier.migrate(by=earlier.release)
    earlier.migrate(by=Release.here())
    assert earlier.new_migrations() == []
    code, said = earlier.smoke()
    assert code == 0, f"{earlier.release.name} does not work on this release's database:\n{said}"


@pytest.mark.long
def test_the_release_before_works_on_each_new_migration(earlier: Earlier) -> None:
    earlier.migrate(by=earlier.release)
    new = earlier.new_migrations()
    for line in new:
        earlier.migrate(*line.split(), by=Release.here())
        code, said = earlier.smoke(*(PAGES if line == new[-1] else ()))
        assert code == 0, f"{earlier.release.name} does not work on {line}:\n{said}"
    assert earlier.new_migrations() == []


@pytest.mark.long
def test_a_column_that_is_taken_away_is_found(earlier: Earlier) -> None:
    earlier.migrate(by=earlier.release)
    order = "from django.db import connection; connection.cursor().execute('ALTER TABLE runs_run DROP COLUMN seed')"
    Release.here().run("manage.py", "shell", "-c", order, environment=earlier.environment)
    code, said = earlier.smoke()
    assert code == 1, said
    assert "seed" in said
