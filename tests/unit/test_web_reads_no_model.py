"""The web and gateway processes have no means to read a model: they never load what parses one."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

# what reads models, and our own walk over their bytes; what runs in the child only imports onnx itself
PARSERS = {"onnx", "onnxruntime", "google.protobuf", "ml_dtypes", "farm.rules.tracing.outlines", "farm.workshop.arrays"}
SHOWN = """
import json, sys
import {process}
import django.urls
django.urls.get_resolver().check()
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("process", ["farm.config.wsgi", "farm.config.asgi"])
def test_a_process_that_answers_requests_has_not_loaded_what_parses_a_model(process: str) -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", SHOWN.format(process=process)],
        env=environment,
        capture_output=True,
        check=False,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr.decode()
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "django.urls" in loaded
    assert loaded & PARSERS == set()
