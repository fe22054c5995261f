"""What the farm's processes hold in memory: pages are in the web process alone, and beat is no second copy of ticks."""

import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from farm.config.beat import BeatThread
from farm.config.celery import app
from tests.conftest import PROJECT

GATEWAY = """
import farm.config.asgi as asgi
from django.urls import get_resolver
get_resolver(asgi.URLCONF).check()
"""
WORKER = """
from farm.config.celery import app
app.loader.import_default_modules()
assert "runs.tick" in app.tasks
"""
# what shows pages, what answers the people's API, and what signs people in
PAGES = {"dashboard.urls", "dashboard.views.home", "farm.api.api", "farm.config.urls", "plotly", "requests", "jwt"}


@pytest.mark.parametrize("process", [GATEWAY, WORKER], ids=["gateway", "worker"])
def test_a_process_that_shows_no_page_has_not_loaded_one(process: str) -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(PROJECT)}
    script = f"import json, sys\n{process}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=False, cwd=PROJECT
    )
    assert done.returncode == 0, done.stderr.decode()
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "farm.runs.models" in loaded
    assert loaded & PAGES == set()


def test_beat_is_a_thread_of_the_worker_that_ticks() -> None:
    worker = SimpleNamespace(app=app, steps=[])
    assert isinstance(BeatThread(worker, ticking=True).create(worker), threading.Thread)
    assert BeatThread(worker, ticking=True).include_if(worker)
    assert not BeatThread(worker).include_if(worker)
